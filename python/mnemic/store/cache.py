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
        self._entries: OrderedDict[bytes, MemoryEntry] = OrderedDict()
        self._position = Position(0, 0)

    def get(self, scope: Scope, ids: Sequence[UUID], now: datetime) -> dict[UUID, MemoryEntry]:
        """Return the living entries of these ids that a scope has."""
        keys = [entry_id.bytes for entry_id in ids]
        position, found = self._kept(keys, drive(self._store.position(self._agent_id)))
        missing = [entry_id for entry_id in ids if entry_id.bytes not in found]
        if missing:
            read = drive(self._store.get(scope, missing, now=now))
            self._keep(position, read.values())
            found |= {entry_id.bytes: entry for entry_id, entry in read.items()}
        there = ((key, found[key.bytes]) for key in ids if key.bytes in found)
        return {key: entry.detached() for key, entry in there if _is_there(entry, scope, now)}

    def get_rows(
        self, scope: Scope, rows: Mapping[bytes, int], now: datetime, position: Position
    ) -> dict[bytes, MemoryEntry]:
        """Return the living entries of these ids, whose rows are known, that a scope has.

        Args:
            scope: Where to look.
            rows: By the ids' 16 bytes.
            now: What has expired by now is left out.
            position: That of the store, looked up a moment ago.
        """
        position, found = self._kept(rows, position)
        missing = [row for key, row in rows.items() if key not in found]
        if missing:
            read = drive(self._store.get_rows(scope, missing, now=now))
            self._keep(position, read.values())
            found |= {entry.id.bytes: entry for entry in read.values()}
        return {
            key: entry.detached() for key, entry in found.items() if _is_there(entry, scope, now)
        }

    def _kept(
        self, keys: Iterable[bytes], position: Position
    ) -> tuple[Position, dict[bytes, MemoryEntry]]:
        """Return what is known of these ids, and as of when."""
        with self._lock:
            if position != self._position:
                self._step_to(position)
            entries, found = self._entries, {}
            for key in keys:
                entry = entries.get(key)
                if entry is not None:
                    found[key] = entry
                    entries.move_to_end(key)
            return self._position, found

    def _step_to(self, position: Position) -> None:
        touched = None
        if position.accesses == self._position.accesses and self._entries:
            touched = drive(self._store.touched_since(self._agent_id, self._position.seq))
        # Accesses are no changes, and who was accessed is not told: all are read again (C158).
        if touched is None:
            self._entries.clear()
        else:
            for entry_id in touched:
                self._entries.pop(entry_id.bytes, None)
        self._position = position

    def _keep(self, position: Position, entries: Iterable[MemoryEntry]) -> None:
        """Keep entries that were read after a position; not if others were dropped meanwhile."""
        with self._lock:
            if position != self._position:
                return
            for entry in entries:
                if not entry.sensitive:
                    key = entry.id.bytes
                    self._entries[key] = entry
                    self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


def _is_there(entry: MemoryEntry, scope: Scope, now: datetime) -> bool:
    return scope.has(entry) and entry.is_living(now)
