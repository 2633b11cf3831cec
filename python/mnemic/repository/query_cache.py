"""A bounded cache of the vectors of queries."""

from collections import OrderedDict
from typing import TypeAlias

from mnemic.arrays import Float32Array
from mnemic.model import Scope
from mnemic.threads.locks import InnerLock

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


class QueryCache:
    """Keeps the vectors of the queries used last, by user and text.

    Thread-safe. The arrays are shared and read-only.

    Args:
        size: Maximum number of queries; 0 keeps none.
        max_bytes: Maximum bytes of texts and vectors.
    """

    def __init__(self, size: int = QUERY_CACHE, max_bytes: int = MAX_BYTES) -> None:
        self._size = size
        self._max_bytes = max_bytes
        self._lock = InnerLock()
        self._vectors: OrderedDict[Key, Float32Array] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def used_bytes(self) -> int:
        """Estimate of the bytes in use."""
        return self._bytes

    def get(self, key: Key) -> Float32Array | None:
        """Return the vectors of a query, shape (chunks, dimensions), or None."""
        if not self._size:
            return None
        with self._lock:
            found = self._vectors.get(key)
            if found is not None:
                self._vectors.move_to_end(key)
            return found

    def put(self, key: Key, vectors: Float32Array) -> None:
        """Keep a copy of the vectors of a query; the least recently used ones make space."""
        if not self._size or _bytes_of(key, vectors) > self._max_bytes:
            return
        kept = vectors.copy()
        kept.flags.writeable = False
        with self._lock:
            self._drop(key)
            self._vectors[key] = kept
            self._bytes += _bytes_of(key, kept)
            while len(self._vectors) > self._size or self._bytes > self._max_bytes:
                self._drop(next(iter(self._vectors)))

    def _drop(self, key: Key) -> None:
        vectors = self._vectors.pop(key, None)
        if vectors is not None:
            self._bytes -= _bytes_of(key, vectors)


def _bytes_of(key: Key, vectors: Float32Array) -> int:
    return 4 * (len(key[0] or "") + len(key[2])) + vectors.nbytes + _OVERHEAD
