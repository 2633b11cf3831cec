"""Reports how far the index of active memories is loaded."""

from collections.abc import Generator
from contextlib import contextmanager

from mnemic.arrays import Float32Array, Int64Array
from mnemic.model import Scope
from mnemic.model.rows import Record
from mnemic.protocols import Clock
from mnemic.reporting.progress import Progress, Report, reporting
from mnemic.store import Store
from mnemic.store.base import BatchSink


class LoadProgress:
    """Reports loads of an agent's index.

    Args:
        store: The store.
        agent_id: The agent.
        progress: A program's choice.
        clock: Gives the time.
    """

    def __init__(self, store: Store, agent_id: str, progress: Progress, clock: Clock) -> None:
        self._store = store
        self._scope = Scope(agent_id, all_users=True)
        self._progress = progress
        self._now = clock

    @classmethod
    def of(
        cls, store: Store, agent_id: str, progress: Progress | None, clock: Clock
    ) -> "LoadProgress | None":
        """Return one for a program's choice; None where it wants none."""
        if progress is None or progress is False:
            return None
        return cls(store, agent_id, progress, clock)

    @contextmanager
    def counted(self, sink: BatchSink, *, has_vectors: bool) -> Generator[BatchSink, None, None]:
        """Yield a sink that passes batches on to another one, and reports them."""
        total = self._store.stats(self._scope, now=self._now()).active_entries
        with reporting(self._progress, "loading") as report:
            yield _CountedSink(sink, report, total, parts=2 if has_vectors else 1)
            report(total, total)


class _CountedSink:
    """Passes batches on; a memory counts for one part when its record is read, then its vectors."""

    def __init__(self, sink: BatchSink, report: Report, total: int, *, parts: int) -> None:
        self._sink = sink
        self._report = report
        self._total = total
        self._parts = parts
        self._done = 0

    def add_records(self, records: list[Record]) -> None:
        self._sink.add_records(records)
        self._add(len(records))

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        self._sink.add_vectors(rows, vectors)
        self._add(len(rows))

    def _add(self, number: int) -> None:
        self._done += number
        self._report(min(self._done // self._parts, self._total), self._total)
