"""A bounded cache of the vectors of queries."""

from typing import TypeAlias

from mnemic.arrays import Float32Array
from mnemic.model import Scope
from mnemic.threads.single_flight import Bounds, SingleFlightCache

QUERY_CACHE = 1024
"""Queries whose vectors are kept, unless a memory is opened with another number."""

MAX_BYTES = 16 * 2**20
"""Maximum bytes of kept texts and vectors: 1,024 queries of 3,072 dimensions are 12 MB."""

_OVERHEAD = 512  # bytes of an entry beside its text and its numbers


Key: TypeAlias = tuple[str | None, bool, str]
"""User, whether all users, and text of a query."""


def key_of(scope: Scope, text: str) -> Key:
    """Return the key of a query: no user's answers depend on the queries of another."""
    return scope.user_id, scope.all_users, text


class QueryCache(SingleFlightCache[Key, Float32Array]):
    """Keeps the vectors of the queries used last, shape (chunks, dimensions), by user and text.

    The arrays are shared and read-only.

    Args:
        size: Maximum number of queries; 0 keeps none.
        max_bytes: Maximum bytes of texts and vectors.
    """

    def __init__(self, size: int = QUERY_CACHE, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(Bounds(size, max_bytes, max_bytes), _bytes_of)

    def put(self, key: Key, value: Float32Array, revision: int = 0) -> None:
        """Keep a copy of the vectors of a query."""
        kept = value.copy()
        kept.flags.writeable = False
        super().put(key, kept, revision)


def _bytes_of(key: Key, vectors: Float32Array) -> int:
    return 4 * (len(key[0] or "") + len(key[2])) + vectors.nbytes + _OVERHEAD
