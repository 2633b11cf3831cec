"""Cache of the entries read last, so that a repeated read needs only two numbers of the store."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, TypeAlias
from uuid import UUID

from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Access
from mnemic.model.timestamps import from_microseconds
from mnemic.store.contract import Store
from mnemic.store.operations import AccessesSince, ChangedRows, EntriesById, EntriesByRow
from mnemic.store.values import EntryRow, LogPosition
from mnemic.threads.locks import InnerLock

CACHED_ENTRIES = 1000

MAX_SHARE = 4
"""A read of more than a fourth of the cache is not kept: it would evict what is read often, and
keeping it takes a copy and two look-ups for each entry."""

_UNKNOWN: Final = LogPosition(-1, -1)

_Name: TypeAlias = tuple[str | None, bytes]
"""Name of an entry of one agent: its user, and the 16 bytes of its id."""


class EntryCache:
    """One agent's entries, evicted by least recent use; never older than the store.

    Before each read the agent's position is compared: entries changed since by any process are
    dropped, and those read since get their new accesses. Sensitive entries are never cached.

    Args:
        store: Source of the entries.
        agent_id: The agent.
        size: Maximum number of entries.
    """

    def __init__(self, store: Store, agent_id: str, size: int = CACHED_ENTRIES) -> None:
        self._store = store
        self._agent_id = agent_id
        self._size = size
        self._lock = InnerLock()
        self._entries: OrderedDict[int, MemoryEntry] = OrderedDict()
        self._rows: dict[_Name, int] = {}
        self._position = LogPosition(0, 0)

    def get(self, scope: Scope, ids: Sequence[UUID], now: datetime) -> dict[UUID, EntryRow]:
        """Return the active entries with these ids in a scope, and their rows.

        Raises:
            AmbiguousIdError: If the scope is of all users, and several have an active entry with
                one id.
        """
        if scope.all_users:  # only the store can detect an id of several users
            read = self._store.read(EntriesById(scope, ids, now=now))
            return {key: EntryRow(row, entry.detached()) for key, (row, entry) in read.items()}
        names = {entry_id: (scope.user_id, entry_id.bytes) for entry_id in ids}
        position = self._store.position(self._agent_id)
        with self._lock:
            position = self._followed(position)
            rows = {name: self._rows[name] for name in names.values() if name in self._rows}
            kept = self._use(rows.values())
        found = _detached(kept, scope, now)
        missing = [entry_id for entry_id, name in names.items() if name not in rows]
        if missing:
            read = self._store.read(EntriesById(scope, missing, now=now))
            found |= self._insert(position, dict(read.values()))
            rows |= {names[key]: row for key, (row, _) in read.items()}
        located = ((key, rows.get(name)) for key, name in names.items())
        return {key: EntryRow(row, found[row]) for key, row in located if row in found}

    def get_rows(
        self,
        scope: Scope,
        rows: Iterable[int],
        now: datetime,
        position: LogPosition,
        *,
        deadline: float | None = None,
    ) -> dict[int, MemoryEntry]:
        """Return the active entries of these rows in a scope.

        Args:
            scope: The scope.
            rows: In any order.
            now: Entries expired by now are omitted.
            position: The store's position, read a moment ago.
            deadline: Limit of the read, in seconds of `time.monotonic()`; None is no limit.
        """
        wanted, begun = list(rows), time.monotonic()
        with self._lock:
            position = self._followed(position)
            kept = self._use(wanted)
        found = _detached(kept, scope, now)
        missing = [row for row in wanted if row not in kept]
        if missing:
            read = self._store.read(EntriesByRow(scope, missing, now=now), deadline=deadline)
            # Rows of an older position, where the store became unreachable just now, are not kept.
            is_stale = self._store.stale_since(self._agent_id, begun) is not None
            is_kept = MAX_SHARE * len(missing) <= self._size and not is_stale
            found |= self._insert(position, read) if is_kept else read
        return found

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._drop(list(self._entries))

    def _followed(self, position: LogPosition) -> LogPosition:
        """Follow the store to a position; return where the cache is, or a position of no cache.

        While the store cannot be read, entries of an older position are used, and none are kept.
        """
        if position == self._position:
            return position
        if self._store.stale_since(self._agent_id) is not None:
            return _UNKNOWN
        self._advance(position)
        return self._position

    def _use(self, rows: Iterable[int]) -> dict[int, MemoryEntry]:
        entries, found = self._entries, {}
        for row in rows:
            entry = entries.get(row)
            if entry is not None:
                found[row] = entry
                entries.move_to_end(row)
        return found

    def _advance(self, position: LogPosition) -> None:
        entries, known = self._entries, self._position
        if entries and position.seq != known.seq:
            touched = self._store.read(ChangedRows(self._agent_id, known.seq))
            self._drop(list(entries) if touched is None else touched)
        if entries and position.accesses != known.accesses:  # which are no changes
            self._renew_accesses(
                self._store.read(AccessesSince(self._agent_id, known.accesses)).rows
            )
        self._position = position

    def _renew_accesses(self, accesses: Iterable[Access]) -> None:
        """Replace entries by copies with these accesses; a reader may be copying the old ones."""
        entries = self._entries
        for row, last, count in accesses:
            entry = entries.get(row)
            if entry is None:
                continue
            try:
                at = None if last is None else from_microseconds(last)
                entries[row] = entry.with_accesses(at, count)
            except (OverflowError, TypeError, ValueError):  # damaged, which a read reports
                self._drop([row])

    def _drop(self, rows: Iterable[int]) -> None:
        for row in rows:
            entry = self._entries.get(row)
            if entry is not None:
                # The name first, and it may be missing: a KeyboardInterrupt leaves no name alone,
                # which would stand for a memory that is not there.
                self._rows.pop(_name(entry), None)
                del self._entries[row]

    def _insert(
        self, position: LogPosition, read: Mapping[int, MemoryEntry]
    ) -> dict[int, MemoryEntry]:
        """Cache entries read after a position, unless others were dropped meanwhile.

        Returns:
            Copies for the caller.
        """
        detached = {row: entry.detached() for row, entry in read.items()}
        with self._lock:
            if position != self._position:
                return detached
            entries = self._entries
            for row, entry in read.items():
                if not entry.hides_content:
                    entries[row] = entry
                    entries.move_to_end(row)
                    self._rows[_name(entry)] = row
            if len(entries) > self._size:
                self._drop(list(islice(entries, len(entries) - self._size)))
        return detached


def _name(entry: MemoryEntry) -> _Name:
    return entry.user_id, entry.id.bytes


def _detached(
    entries: Mapping[int, MemoryEntry], scope: Scope, now: datetime
) -> dict[int, MemoryEntry]:
    return {
        row: entry.detached()
        for row, entry in entries.items()
        if scope.has(entry) and entry.is_active(now)
    }
