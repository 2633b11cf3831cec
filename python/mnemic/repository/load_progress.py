"""Reports how far the index of active memories is loaded."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from mnemic.arrays import Float32Array, Int64Array
from mnemic.model import Scope
from mnemic.model.rows import Record
from mnemic.protocols import Clock
from mnemic.reporting.progress import Progress, reporting
from mnemic.store import Store
from mnemic.store.operations import ScopeStatistics
from mnemic.store.values import BatchSink


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
        """Yield a sink that passes batches on to another one, and reports them.

        A memory counts for one part when its record is read, then its vectors.
        """
        total = self._store.read(ScopeStatistics(self._scope, now=self._now())).active_entries
        parts, done = 2 if has_vectors else 1, 0
        with reporting(self._progress, "loading") as report:

            def seen(number: int) -> None:
                nonlocal done
                done += number
                report(min(done // parts, total), total)

            yield WatchedSink(sink, seen)
            report(total, total)


class WatchedSink:
    """Passes batches to another sink, and calls a function with the rows of each.

    Args:
        sink: Receives the batches.
        seen: Gets the number of rows; what it raises ends the load.
    """

    def __init__(self, sink: BatchSink, seen: Callable[[int], None]) -> None:
        self._sink = sink
        self._seen = seen

    def restart(self) -> None:
        """Pass on that all rows are read anew."""
        self._sink.restart()

    def add_records(self, records: list[Record]) -> None:
        """Pass on records."""
        self._sink.add_records(records)
        self._seen(len(records))

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Pass on vectors."""
        self._sink.add_vectors(rows, vectors)
        self._seen(len(rows))
