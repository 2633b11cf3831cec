"""Accesses on their way to an index: buffered ones of this process, and those of the store."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from mnemic.errors import StoreError
from mnemic.model.rows import RowBatch
from mnemic.repository.agent_index import AgentIndex
from mnemic.store import LogPosition
from mnemic.store.operations import AccessesSince
from mnemic.threads.locks import InnerLock, Lock

MAX_BUFFERED = 4096
"""Accesses from which on writing all to the store is faster than adding each to an index."""

Accesses: TypeAlias = tuple[int, int]
"""Number of accesses, and the last one, in microseconds since 1970 in UTC."""


class IndexAccesses:
    """Accesses of the rows of an index, collected until a ranking needs them. Thread-safe.

    Args:
        index: The index.

    Attributes:
        moving: Held while accesses are taken from the buffer to the index.
        written: Number of the store's access writes that the index contains, at least.
    """

    def __init__(self, index: AgentIndex) -> None:
        self._index = index
        self.written = 0
        self.moving = Lock()
        self._lock = InnerLock()
        self._rows: list[tuple[Sequence[int], int]] = []
        self._number = 0
        self._were_dropped = False

    def record(self, rows: Sequence[int], now: int) -> None:
        """Buffer accesses before the store gets them: rankings use them at once.

        Args:
            rows: Rows of memories in any state.
            now: Microseconds since 1970 in UTC.
        """
        if not self._index.is_loaded:
            return  # they come with the full load
        with self._lock:  # merged when taken: most searches do not need them
            self._rows.append((rows, now))
            self._number += len(rows)
            if self._number > MAX_BUFFERED:
                self._drop()

    def last(self, rows: Sequence[int]) -> list[int | None]:
        """Return the last access of rows known to the index, buffered ones included."""
        if not self._index.is_loaded:
            return [None] * len(rows)
        self.push()
        known = self._index.native.core.accesses(list(rows))
        return [None if access is None else access[0] for access in known]

    def push(self) -> None:
        """Apply the buffered accesses to the index, so that they need not be on disk first."""
        with self.moving:  # a concurrent caller waits for the accesses taken here
            with self._lock:
                calls, self._rows, self._number = self._rows, [], 0
            if calls:
                added = [(row, last, number) for row, (number, last) in _merged(calls).items()]
                self._index.native.change_accesses(added, adds=True)

    def drop(self) -> None:
        """Drop the buffered accesses; they will be read from the store."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        self._rows, self._number, self._were_dropped = [], 0, True

    def restart(self, written: int) -> None:
        """Begin again with rows that contain so many access writes of the store, at least."""
        self.written = written
        self.drop()

    def catch_up(self, position: LogPosition) -> None:
        """Apply all accesses to an index that has all changes.

        Args:
            position: Where the store stood at last.
        """
        with self._lock:
            were_dropped, self._were_dropped = self._were_dropped, False
        if were_dropped:
            self.write()
            position = self._index.store.known_position(self._index.agent_id)
        self.push()
        if position.accesses != self.written:
            self.pull()

    def pull(self) -> None:
        """Apply what the store has."""
        index = self._index
        with index.lock:
            seq = index.native.seq
            accessed = index.store.read(AccessesSince(index.agent_id, self.written))
            self.push()  # they may be in what was read, and count once
            index.native.change_accesses(accessed.rows, adds=False)
            # Rows that the index lacks come with their stored accesses: then all is read again.
            if seq is not None and seq >= accessed.position.seq:
                self.written = accessed.position.accesses

    def write(self) -> None:
        """Write pending accesses; if the store is busy, what is read next is a little behind."""
        if self._index.settings.can_write:
            with suppress(StoreError):  # a store that cannot be read raises there
                self._index.store.write_accesses().result()

    def are_in(self, batch: RowBatch) -> bool:
        """Return whether a batch adds or restores rows whose accesses are not on disk yet."""
        rows = [record[0] for record in batch.records]
        known = self._index.native.core.accesses(rows)
        new = [row for row, access in zip(rows, known, strict=True) if access is None]
        return bool(new) and self._index.store.accesses.has(self._index.agent_id, new)


def _merged(calls: Iterable[tuple[Sequence[int], int]]) -> dict[int, Accesses]:
    added: dict[int, Accesses] = {}
    for rows, now in calls:
        for row in rows:
            number, last = added.get(row, (0, now))
            added[row] = number + 1, max(last, now)
    return added
