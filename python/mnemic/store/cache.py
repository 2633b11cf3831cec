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
        position, kept = self._kept(keys, drive(self._store.position(self._agent_id)))
        found = _detached(kept, scope, now)
        missing = [entry_id for entry_id in ids if entry_id.bytes not in kept]
        if missing:
            read = drive(self._store.get(scope, missing, now=now))
            found |= self._keep(position, {key.bytes: entry for key, entry in read.items()})
        return {key: found[key.bytes] for key in ids if key.bytes in found}

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
        position, kept = self._kept(rows, position)
        found = _detached(kept, scope, now)
        missing = {row: key for key, row in rows.items() if key not in kept}
        if missing:
            read = drive(self._store.get_rows(scope, list(missing), now=now))
            found |= self._keep(position, {missing[row]: entry for row, entry in read.items()})
        return found

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
        entries, known = self._entries, self._position
        if entries and position.seq != known.seq:
            touched = drive(self._store.touched_since(self._agent_id, known.seq))
            if touched is None:
                entries.clear()
            else:
                self._drop(entry_id.bytes for entry_id in touched)
        if entries and position.accesses != known.accesses:  # which are no changes (C158)
            self._drop(drive(self._store.accessed_since(self._agent_id, known.accesses)).ids)
        self._position = position

    def _drop(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._entries.pop(key, None)

    def _keep(
        self, position: Position, read: Mapping[bytes, MemoryEntry]
    ) -> dict[bytes, MemoryEntry]:
        """Keep entries that were read after a position; not if others were dropped meanwhile.

        Returns:
            What the caller may have of them.
        """
        detached = {key: entry.detached() for key, entry in read.items()}
        with self._lock:
            if position != self._position:
                return detached
            entries = self._entries
            for key, entry in read.items():
                if not entry.sensitive:
                    entries[key] = entry
                    entries.move_to_end(key)
            while len(entries) > self._size:
                entries.popitem(last=False)
        return detached


def _detached(
    entries: Mapping[bytes, MemoryEntry], scope: Scope, now: datetime
) -> dict[bytes, MemoryEntry]:
    return {
        key: entry.detached()
        for key, entry in entries.items()
        if scope.has(entry) and entry.is_living(now)
    }
