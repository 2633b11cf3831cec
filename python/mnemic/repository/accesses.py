"""Counts accesses: in the indexes at once, in the store a little later."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from mnemic.errors import StoreFullError
from mnemic.model import MemoryEntry
from mnemic.model.filter import Criteria, references
from mnemic.model.rows import Access
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.repository.index_sync import IndexSet
from mnemic.repository.settings import Settings
from mnemic.store import Store
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import arrived

_MICROSECOND = timedelta(microseconds=1)

MAX_SPACED = 16_384
"""Rows from which on those with an expired interval are dropped."""


class AccessSpacing:
    """Decides which accesses count if those of one memory must be an interval apart.

    Callers hold `lock` while they call `due` and record the accesses.

    Attributes:
        lock: Serialises decisions.
    """

    def __init__(self) -> None:
        self.lock = InnerLock()
        self._counted: dict[int, int] = {}

    def due(self, accessed: Mapping[int, int | None], now: int, interval: int) -> list[int]:
        """Return the rows of which an access counts now, and record it as counted.

        Args:
            accessed: Last known access of each row; None is never.
            now: Microseconds since 1970 in UTC, like all times here.
            interval: Minimum microseconds between two accesses that count.
        """
        if len(self._counted) > MAX_SPACED:
            lately = {row: at for row, at in self._counted.items() if now - at < interval}
            self._counted = lately
        rows = [
            row
            for row, last in accessed.items()
            if all(at is None or now - at >= interval for at in (last, self._counted.get(row)))
        ]
        self._counted.update(dict.fromkeys(rows, now))
        return rows


class AccessCounter:
    """Counts accesses of one agent's memories.

    Args:
        settings: The options of the memory: whether accesses are counted at all, and written.
        store: Where they are written to.
        agent_id: Whose memories.
        indexes: Rankings by accesses use a new one at once.
    """

    def __init__(self, settings: Settings, store: Store, agent_id: str, indexes: IndexSet) -> None:
        self._store = store
        self._agent_id = agent_id
        self._indexes = indexes
        self._now = settings.clock
        self._is_tracking = settings.track_access
        self._can_write = not settings.read_only
        self._spacing = AccessSpacing()

    async def write_for(self, criteria: Criteria) -> None:
        """Write the accesses counted so far if a filter tests them."""
        if criteria.expression is not None and references(
            criteria.expression, "access_count", "last_accessed_at"
        ):
            await self.write()

    def record(self, rows: Sequence[int]) -> None:
        """Count one access of each row; nothing where accesses are not tracked."""
        if self._is_tracking and rows:
            self.count(rows, self._now())

    def record_spaced(self, accessed: Mapping[int, datetime | None], interval: timedelta) -> None:
        """Count accesses, but none within an interval after the last one that counted.

        Of concurrent calls one counts. Accesses through another opening of the file are known once
        they are in the store.

        Args:
            accessed: The last access of each row, as the caller read it; None is never.
            interval: How long no further access counts.
        """
        if not (self._is_tracking and accessed):
            return
        last = {row: None if at is None else to_microseconds(at) for row, at in accessed.items()}
        with self._spacing.lock:
            for sync in self._indexes.built():
                for row, at in zip(last, sync.accesses.last(list(last)), strict=True):
                    last[row] = _later(last[row], at)
            now = self._now()
            rows = self._spacing.due(last, to_microseconds(now), interval // _MICROSECOND)
            if rows:
                self.count(rows, now)

    def count(self, rows: Sequence[int], now: datetime) -> None:
        """Count one access of each row at a time, whether or not accesses are tracked."""
        for sync in self._indexes.built():  # before they may be on disk
            sync.accesses.record(rows, to_microseconds(now))
        self._store.touch(self._agent_id, rows, now)

    def show_pending(self, entries: Mapping[int, MemoryEntry]) -> None:
        """Add accesses that the store has not begun to write to memories that no caller holds."""
        pending = self._store.accesses.of(self._agent_id, entries)
        for row, (number, last) in pending.items():
            entry, at = entries[row], from_microseconds(last)
            latest = max(at, entry.last_accessed_at or at)
            entry.record_accesses(latest, entry.access_count + number)

    async def write(self) -> None:
        """Write accesses that are still in memory to the store, unless its disk is full."""
        if self._can_write:
            with suppress(StoreFullError):  # what is read next is a little behind
                await arrived(self._store.write_accesses())


def show_accesses(entries: Mapping[int, MemoryEntry], accesses: Iterable[Access]) -> None:
    """Show accesses that are not in the store yet, in memories that no caller holds."""
    for row, last, count in accesses:
        entry = entries.get(row)
        if entry is not None and count > entry.access_count:
            entry.record_accesses(None if last is None else from_microseconds(last), count)


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
