"""A candidate source behind an index: its failures cost time, never an answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.index.candidates import CandidateSource, HeldSource, RowSet, SourceState
from mnemic.reporting.logs import logger

if TYPE_CHECKING:
    from mnemic.model.rows import RowBatch

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
