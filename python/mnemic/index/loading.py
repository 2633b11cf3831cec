"""Builds an index while its rows are still being read."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from mnemic._core import MemoryIndex
from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.errors import MnemicError, NonFiniteVectorError, StoreCorruptError
from mnemic.index.base import CandidateSource, HeldSource, RowSet, SourceState
from mnemic.model.rows import Access, Record, RowBatch
from mnemic.reporting.logs import logger
from mnemic.threads.locks import settling

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_log = logger(__name__)


class SourceGuard:
    """Passes changes and questions to a source, and drops it when a change fails.

    Args:
        source: The source.
    """

    def __init__(self, source: CandidateSource) -> None:
        self._source: CandidateSource | None = source
        self._has_reported = False

    @property
    def is_open(self) -> bool:
        """Whether the source is in use."""
        return self._source is not None

    @property
    def nbytes(self) -> int:
        """Bytes that the source holds, partly estimated."""
        return 0 if self._source is None else self._source.nbytes

    @property
    def state(self) -> SourceState | None:
        """What the source has done; None if it was dropped."""
        source = self._source
        if source is None:
            return None
        state: SourceState | None = getattr(source, "state", None)
        return SourceState(type(source).__name__) if state is None else state

    def hold(self) -> HeldSource | None:
        """Hold the source for a file; None if it has changes to bring in, or cannot be saved."""
        hold = getattr(self._source, "hold", None)
        held: HeldSource | None = None if hold is None else hold()
        return held

    def close(self) -> None:
        """End what the source does in the background."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def apply(self, batch: "RowBatch") -> None:
        """Pass on a batch of changes."""
        if batch.removed:
            self._change(lambda source: source.remove(np.array(batch.removed, np.int64)))
        if batch.vectors is not None:
            self.add(np.array(batch.embedded, np.int64), batch.vectors)

    def add(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Pass on vectors of rows."""
        if len(rows):
            self._change(lambda source: source.add(rows, vectors))

    def nearest(self, vectors: Float32Array, k: int, selected: RowSet | None) -> Int64Array | None:
        """Return the source's proposals; None if it has failed, or what it returns is no rows."""
        source = self._source
        if source is None:
            return None
        try:
            rows = np.asarray(source.nearest(vectors, k, selected))
        except Exception as error:  # noqa: BLE001 - the exact ranking answers
            self._report("cannot answer", error)
            return None
        is_sound = rows.ndim == 1 and (rows.dtype.kind in "iu" or not len(rows))
        return rows.astype(np.int64)[:k] if is_sound else None

    def _change(self, change: Callable[[CandidateSource], None]) -> None:
        if self._source is None:
            return
        try:
            change(self._source)
        except Exception as error:  # noqa: BLE001 - the rows are in the index
            self._source = None  # out of step: it would miss memories forever
            self._report("cannot apply a change, and is not used until the next full load", error)

    def _report(self, problem: str, error: Exception) -> None:
        """Log the first failure; its message may hold what the source was given."""
        if not self._has_reported:
            self._has_reported = True
            _log.warning("A candidate source %s: %s", problem, type(error).__name__)


def put(index: MemoryIndex, batch: RowBatch) -> None:
    """Apply a batch of changes to an index of the core.

    Raises:
        StoreCorruptError: If a record or vector cannot have been stored.
    """
    _checked(
        lambda: index.apply(
            batch.records,
            batch.embedded,
            batch.vectors if batch.embedded else None,
            batch.removed,
            batch.linked,
            batch.links,
        )
    )


def raise_accesses(index: MemoryIndex, accesses: Sequence[Access]) -> None:
    """Raise accesses of rows in an index of the core.

    Raises:
        StoreCorruptError: If a value cannot have been stored.
    """
    _checked(lambda: index.raise_accesses(list(accesses)))


def _checked(put_into_index: Callable[[], None]) -> None:
    """Convert the core's refusals to StoreCorruptError: stored values were valid."""
    try:
        put_into_index()
    except (OverflowError, TypeError, ValueError) as error:
        is_ours = isinstance(error, MnemicError)
        if is_ours and not isinstance(error, NonFiniteVectorError):
            raise
        # Python's own error of a text that is none carries the text.
        problem = str(error) if is_ours else type(error).__name__
    else:
        return
    raise StoreCorruptError(
        f"a stored memory cannot be read ({problem}); the file is damaged; keep it, and restore "
        "a backup"
    )


def ignore(_: int) -> None:
    """Take no notice of rows."""


class Loader:
    """Receives rows in batches and adds them to a new index, in a thread of its own.

    At most two batches exist at a time, so a large memory is never held twice.

    Args:
        make_index: Makes an empty index.
        make_source: Makes an empty candidate source, which gets the same vectors, or returns None.
        seen: Gets the number of rows of each batch; what it raises ends the load.
    """

    def __init__(
        self,
        make_index: Callable[[], MemoryIndex],
        make_source: Callable[[], SourceGuard | None] = lambda: None,
        seen: Callable[[int], object] = ignore,
    ) -> None:
        self._seen = seen
        self._make_index = make_index
        self._make_source = make_source
        self._source: SourceGuard | None = None
        self._index: MemoryIndex | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._part: Future[Any] | None = None

    def restart(self) -> None:
        """Begin another index: all rows are read anew."""
        if self._source is not None:
            self._submit(self._source.close)
        self._index, self._source = None, None

    def add_records(self, records: list[Record]) -> None:
        """Queue records for the index."""
        index = self._core_index()
        self._submit(lambda: _checked(lambda: index.load(records, [], None)))
        self._seen(len(records))

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Queue vectors, shape (n, dim), of rows, shape (n,), for the index."""
        index = self._core_index()
        self._submit(lambda: _checked(lambda: index.load([], rows, vectors)))
        source = self._source
        if source is not None:
            self._submit(lambda: source.add(rows, vectors))
        self._seen(len(rows))

    def finish(self) -> tuple[MemoryIndex, SourceGuard | None]:
        """Return the index with all batches, ready for searches, and its candidate source."""
        index = self._core_index()
        self._finish_part()
        index.apply([], [], None, [])  # builds what loading deferred
        return index, self._source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _core_index(self) -> MemoryIndex:
        if self._index is None:
            self._index, self._source = self._make_index(), self._make_source()
        return self._index

    def _submit(self, work: Callable[[], object]) -> None:
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - often not needed

            self._thread = ThreadPoolExecutor(1, "mnemic-loader")
        self._finish_part()
        with settling():
            self._part = self._thread.submit(work)

    def _finish_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.result()
