"""Builds a map of vectors while they are still being read."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mnemic._core import VectorMap

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


class Loader:
    """Takes vectors in parts and puts them into a new map, in a thread of its own.

    At most two parts exist at a time, so a large memory is never held twice.

    Args:
        dim: Dimension of the vectors.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._vectors: VectorMap | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._part: Future[Any] | None = None

    def take(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Put rows, shape (n,), and their vectors, shape (n, dim), into the map, soon."""
        if self._vectors is None or self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - often not needed

            self._vectors = VectorMap(self._dim, metric="cosine")
            self._thread = ThreadPoolExecutor(1, "mnemic-loader")
        self._finish_part()
        self._part = self._thread.submit(self._vectors.upsert, rows, vectors)

    def loaded(self) -> VectorMap | None:
        """Return the map with all that was taken, or None if nothing was."""
        self._finish_part()
        return self._vectors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _finish_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.result()
