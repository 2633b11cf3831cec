"""Accesses: gathered in memory, written down now and then (C090)."""

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

import apsw

_COUNT = (
    "UPDATE agent_memory_entries SET access_count = access_count + ?, "
    "last_accessed_at = max(ifnull(last_accessed_at, ?), ?) WHERE agent_id = ? AND id = ?"
)
_ADVANCE = "UPDATE agent_memory_agents SET accesses = accesses + 1 WHERE agent_id = ?"


class _Accesses(NamedTuple):
    number: int
    last: int


class PendingAccesses:
    """Accesses that are not written down yet. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, bytes], _Accesses] = {}

    def note(self, agent_id: str, ids: Iterable[UUID], now: int) -> bool:
        """Take note of accesses; return whether these are the first that wait."""
        with self._lock:
            is_first = not self._pending
            for entry_id in ids:
                key = agent_id, entry_id.bytes
                number, last = self._pending.get(key, (0, now))
                self._pending[key] = _Accesses(number + 1, max(last, now))
            return is_first and bool(self._pending)

    def drop(self, agent_id: str, ids: Iterable[UUID]) -> None:
        """Forget accesses of entries that were deleted: their ids may be given again."""
        with self._lock:
            for entry_id in ids:
                self._pending.pop((agent_id, entry_id.bytes), None)

    def are_waiting(self) -> bool:
        """Return whether there is anything to write down."""
        return bool(self._pending)

    def writing(self) -> Callable[[apsw.Connection], None]:
        """Return a job that writes down what waits when it first runs; it may run twice."""
        taken: dict[tuple[str, bytes], _Accesses] = {}

        def write(connection: apsw.Connection) -> None:
            if not taken:
                with self._lock:
                    taken.update(self._pending)
                    self._pending.clear()
            _write(connection, taken)

        return write


def _write(connection: apsw.Connection, accesses: dict[tuple[str, bytes], _Accesses]) -> None:
    """Write accesses down; entries that are gone are passed over."""
    connection.executemany(
        _COUNT,
        [
            (number, last, last, agent_id, entry_id)
            for (agent_id, entry_id), (number, last) in accesses.items()
        ],
    )
    agents = {agent_id for agent_id, _ in accesses}
    connection.executemany(_ADVANCE, [(agent_id,) for agent_id in agents])
