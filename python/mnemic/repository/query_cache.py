"""A bounded cache of the vectors of queries."""

import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

QUERY_CACHE = 1024
"""Queries whose vectors are kept, unless a memory is opened with another number."""

MAX_BYTES = 16 * 2**20
"""Maximum bytes of kept texts and vectors: 1,024 queries of 3,072 dimensions are 12 MB."""

_OVERHEAD = 512  # bytes of an entry beside its text and its numbers


class QueryCache:
    """Keeps the vectors of the queries used last, by their text.

    Thread-safe. The arrays are shared and read-only.

    Args:
        size: Maximum number of queries; 0 keeps none.
        max_bytes: Maximum bytes of texts and vectors.
    """

    def __init__(self, size: int = QUERY_CACHE, max_bytes: int = MAX_BYTES) -> None:
        self._size = size
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def used_bytes(self) -> int:
        """Estimate of the bytes in use."""
        return self._bytes

    def get(self, text: str) -> NDArray[np.float32] | None:
        """Return the vectors of a query, shape (chunks, dimensions), or None."""
        if not self._size:
            return None
        with self._lock:
            found = self._vectors.get(text)
            if found is not None:
                self._vectors.move_to_end(text)
            return found

    def put(self, text: str, vectors: NDArray[np.float32]) -> None:
        """Keep a copy of the vectors of a query; the least recently used ones make room."""
        if not self._size or _bytes_of(text, vectors) > self._max_bytes:
            return
        kept = vectors.copy()
        kept.flags.writeable = False
        with self._lock:
            self._drop(text)
            self._vectors[text] = kept
            self._bytes += _bytes_of(text, kept)
            while len(self._vectors) > self._size or self._bytes > self._max_bytes:
                self._drop(next(iter(self._vectors)))

    def _drop(self, text: str) -> None:
        vectors = self._vectors.pop(text, None)
        if vectors is not None:
            self._bytes -= _bytes_of(text, vectors)


def _bytes_of(text: str, vectors: NDArray[np.float32]) -> int:
    return 4 * len(text) + vectors.nbytes + _OVERHEAD
