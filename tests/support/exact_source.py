"""The core's exact scan as a candidate source: the example of the contract."""

import numpy as np

from mnemic._core import VectorMap
from mnemic.arrays import Float32Array, Int64Array
from mnemic.index.base import RowSet
from mnemic.threads.locks import InnerLock


class ExactSource:
    """Proposes the nearest rows, found by a scan of all vectors.

    A vector's id in the map is its row; those of further chunks are negative numbers, as rows never
    are. One lock guards both, so searches wait for each other.

    Args:
        dim: Dimension of the vectors.
    """

    is_exact = True

    def __init__(self, dim: int) -> None:
        self._map = VectorMap(dim)
        self._lock = InnerLock()
        self._chunks: dict[int, list[int]] = {}  # ids of further chunks by row
        self._row_of: dict[int, int] = {}
        self._last_id = -1  # which the map reserves

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors; see `CandidateSource`."""
        return self._map.nbytes

    def add(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors of rows; see `CandidateSource`."""
        with self._lock:
            self._drop(rows)
            is_first = np.ones(len(rows), np.bool_)
            is_first[1:] = rows[1:] != rows[:-1]
            ids = rows.copy()
            for at in np.flatnonzero(~is_first):
                ids[at] = self._new_chunk(int(rows[at]))
            self._map.upsert(ids, vectors)

    def remove(self, rows: Int64Array) -> None:
        """Remove rows; see `CandidateSource`."""
        with self._lock:
            self._drop(rows)

    def nearest(self, vectors: Float32Array, k: int, selected: RowSet | None) -> Int64Array:
        """Return the nearest rows; see `CandidateSource`."""
        with self._lock:
            allow = None if selected is None else self._ids_of(selected)
            further = sum(map(len, self._chunks.values()))
            # Of k rows, all chunks may come before the first of the next row.
            ids, _ = self._map.search(vectors, k=k + further, allow=allow, combine="max")
            rows = np.array([self._row_of.get(one, one) for one in ids.tolist()], np.int64)
        _, first = np.unique(rows, return_index=True)
        return rows[np.sort(first)][:k]

    def _drop(self, rows: Int64Array) -> None:
        chunks = [one for row in rows.tolist() for one in self._chunks.pop(row, ())]
        for one in chunks:
            del self._row_of[one]
        self._map.remove(np.concatenate([rows, np.array(chunks, np.int64)]))

    def _new_chunk(self, row: int) -> int:
        self._last_id -= 1
        self._chunks.setdefault(row, []).append(self._last_id)
        self._row_of[self._last_id] = row
        return self._last_id

    def _ids_of(self, selected: RowSet) -> Int64Array:
        rows = selected.to_rows()
        with_chunks = np.array(list(self._chunks), np.int64)
        with_chunks = with_chunks[selected.contains(with_chunks)].tolist()
        chunks = [one for row in with_chunks for one in self._chunks[row]]
        return np.concatenate([rows, np.array(chunks, np.int64)])
