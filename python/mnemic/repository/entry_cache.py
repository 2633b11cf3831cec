"""The entries read last, so that reading them again asks the store for two numbers only."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeAlias
from uuid import UUID

from mnemic.model import MemoryEntry, Scope
from mnemic.store.base import Located, LogPosition, Store
from mnemic.sync_bridge import run_sync

CACHED_ENTRIES = 1000

_Name: TypeAlias = tuple[str | None, bytes]
"""What an entry of one agent is known by: its user, and the 16 bytes of its id."""


class EntryCache:
    """One agent's entries, least recently used first to go; always as new as the store.

    Before each answer the agent's change number is looked up, and what was changed since, by
    whatever process, is dropped. Sensitive entries are never kept.

    Args:
        store: Where entries come from.
        agent_id: Whose they are.
        size: How many at most.
    """

    def __init__(self, store: Store, agent_id: str, size: int = CACHED_ENTRIES) -> None:
        self._store = store
        self._agent_id = agent_id
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, MemoryEntry] = OrderedDict()
        self._rows: dict[_Name, int] = {}
        self._position = LogPosition(0, 0)

    def get(self, scope: Scope, ids: Sequence[UUID], now: datetime) -> dict[UUID, Located]:
        """Return the living entries of these ids that a scope has, and their rows.

        Raises:
            AmbiguousIdError: If the scope is of all users, and several have a living entry of one.
        """
        if scope.all_users:  # whether an id is several users' only the store knows
            read = run_sync(self._store.located(scope, ids, now=now))
            return {key: Located(row, entry.detached()) for key, (row, entry) in read.items()}
        names = {entry_id: (scope.user_id, entry_id.bytes) for entry_id in ids}
        position, rows, kept = self._cached_by_name(
            names.values(), run_sync(self._store.position(self._agent_id))
        )
        found = _detached(kept, scope, now)
        missing = [entry_id for entry_id, name in names.items() if name not in rows]
        if missing:
            read = run_sync(self._store.located(scope, missing, now=now))
            found |= self._insert(position, dict(read.values()))
            rows |= {names[key]: row for key, (row, _) in read.items()}
        located = ((key, rows.get(name)) for key, name in names.items())
        return {key: Located(row, found[row]) for key, row in located if row in found}

    def get_rows(
        self, scope: Scope, rows: Iterable[int], now: datetime, position: LogPosition
    ) -> dict[int, MemoryEntry]:
        """Return the living entries of these rows that a scope has.

        Args:
            scope: Where to look.
            rows: In any order.
            now: What has expired by now is left out.
            position: That of the store, looked up a moment ago.
        """
        wanted = list(rows)
        position, kept = self._cached(wanted, position)
        found = _detached(kept, scope, now)
        missing = [row for row in wanted if row not in kept]
        if missing:
            read = run_sync(self._store.get_rows(scope, missing, now=now))
            found |= self._insert(position, read)
        return found

    def _cached(
        self, rows: Iterable[int], position: LogPosition
    ) -> tuple[LogPosition, dict[int, MemoryEntry]]:
        """Return what is known of these rows, and as of when."""
        with self._lock:
            if position != self._position:
                self._advance(position)
            return self._position, self._use(rows)

    def _cached_by_name(
        self, names: Iterable[_Name], position: LogPosition
    ) -> tuple[LogPosition, dict[_Name, int], dict[int, MemoryEntry]]:
        """Return the rows that are known of these names, and what `_cached` returns of them."""
        with self._lock:
            if position != self._position:
                self._advance(position)
            rows = {name: self._rows[name] for name in names if name in self._rows}
            return self._position, rows, self._use(rows.values())

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
            touched = run_sync(self._store.changed_rows_since(self._agent_id, known.seq))
            self._drop(list(entries) if touched is None else touched)
        if entries and position.accesses != known.accesses:  # which are no changes
            accessed = run_sync(self._store.accesses_since(self._agent_id, known.accesses))
            self._drop(row for row, *_ in accessed.rows)
        self._position = position

    def _drop(self, rows: Iterable[int]) -> None:
        for row in rows:
            entry = self._entries.pop(row, None)
            if entry is not None:
                del self._rows[_name(entry)]

    def _insert(
        self, position: LogPosition, read: Mapping[int, MemoryEntry]
    ) -> dict[int, MemoryEntry]:
        """Keep entries that were read after a position; not if others were dropped meanwhile.

        Returns:
            What the caller may have of them.
        """
        detached = {row: entry.detached() for row, entry in read.items()}
        with self._lock:
            if position != self._position:
                return detached
            entries = self._entries
            for row, entry in read.items():
                if not entry.sensitive:
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
