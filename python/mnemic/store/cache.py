"""The entries read last, so that reading them again asks the store for two numbers only (R082)."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from mnemic.model import MemoryEntry, Scope
from mnemic.store.base import Position, Store
from mnemic.waiting import drive

CACHED_ENTRIES = 1000


class EntryCache:
    """One agent's entries, least recently used first to go; always as new as the store.

    Before each answer the agent's change number is looked up, and what was changed since, by
    whatever process, is dropped. Sensitive entries are never kept (C101).

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
        self._entries: OrderedDict[UUID, MemoryEntry] = OrderedDict()
        self._position = Position(0, 0)

    def get(self, scope: Scope, ids: Sequence[UUID], now: datetime) -> dict[UUID, MemoryEntry]:
        """Return the living entries of these ids that a scope has."""
        position, found = self._kept(ids)
        missing = [entry_id for entry_id in ids if entry_id not in found]
        if missing:
            read = drive(self._store.get(scope, missing, now=now))
            self._keep(position, read.values())
            found |= read
        return {
            entry_id: found[entry_id].detached()
            for entry_id in ids
            if entry_id in found and _is_there(found[entry_id], scope, now)
        }

    def get_rows(
        self, scope: Scope, rows: Mapping[UUID, int], now: datetime
    ) -> dict[UUID, MemoryEntry]:
        """Return the living entries of these ids, whose rows are known, that a scope has."""
        position, found = self._kept(rows)
        missing = [row for entry_id, row in rows.items() if entry_id not in found]
        if missing:
            read = drive(self._store.get_rows(scope, missing, now=now))
            self._keep(position, read.values())
            found |= {entry.id: entry for entry in read.values()}
        return {
            entry_id: entry.detached()
            for entry_id, entry in found.items()
            if _is_there(entry, scope, now)
        }

    def _kept(self, ids: Iterable[UUID]) -> tuple[Position, dict[UUID, MemoryEntry]]:
        """Return what is known, and as of when."""
        position = drive(self._store.position(self._agent_id))
        with self._lock:
            if position != self._position:
                self._step_to(position)
            found = {}
            for entry_id in ids:
                entry = self._entries.get(entry_id)
                if entry is not None:
                    found[entry_id] = entry
                    self._entries.move_to_end(entry_id)
            return self._position, found

    def _step_to(self, position: Position) -> None:
        touched = None
        if position.accesses == self._position.accesses and self._entries:
            touched = drive(self._store.touched_since(self._agent_id, self._position.seq))
        # Accesses are no changes, and who was accessed is not told: all are read again (C158).
        for entry_id in list(self._entries) if touched is None else touched:
            self._entries.pop(entry_id, None)
        self._position = position

    def _keep(self, position: Position, entries: Iterable[MemoryEntry]) -> None:
        """Keep entries that were read after a position; not if others were dropped meanwhile."""
        with self._lock:
            if position != self._position:
                return
            for entry in entries:
                if not entry.sensitive:
                    self._entries[entry.id] = entry
                    self._entries.move_to_end(entry.id)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


def _is_there(entry: MemoryEntry, scope: Scope, now: datetime) -> bool:
    return scope.has(entry) and entry.is_living(now)
