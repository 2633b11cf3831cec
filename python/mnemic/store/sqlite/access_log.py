"""Accesses: collected in memory, written to the file in groups."""

import threading
from collections.abc import Iterable
from typing import TypeAlias

import apsw

from mnemic.store.base import AccessedRows
from mnemic.store.sqlite.change_log import position
from mnemic.store.sqlite.sql import fetch

_COUNT = (
    "UPDATE agent_memory_entries SET access_count = access_count + ?, "
    "last_accessed_at = max(ifnull(last_accessed_at, ?), ?), access_seq = ? "
    "WHERE agent_id = ? AND row = ?"
)
_ADVANCE = "UPDATE agent_memory_agents SET accesses = accesses + 1 WHERE agent_id = ?"
# The index is named, because the planner would read all rows of an agent.
_SINCE = (
    "SELECT row, last_accessed_at, access_count FROM agent_memory_entries "
    "INDEXED BY agent_memory_entries_by_access WHERE agent_id = ? AND access_seq > ?"
)

MAX_UNMERGED = 1024
"""Calls after which recorded accesses are merged by row."""

_Accesses: TypeAlias = tuple[int, int]
"""Number of accesses, and time of the last one."""


class PendingAccesses:
    """Accesses that are not written yet. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[tuple[str, tuple[int, ...], int]] = []
        self._pending: dict[tuple[str, int], _Accesses] = {}
        self._is_scheduled = False  # whether a submitted job will take them
        self._in_flight: set[FlushAccesses] = set()  # jobs that took accesses and have not ended

    def add(self, agent_id: str, rows: Iterable[int], now: int) -> bool:
        """Record accesses; return whether a job must be submitted to write them."""
        touched = tuple(rows)
        with self._lock:
            if touched:
                self._calls.append((agent_id, touched, now))
            if len(self._calls) >= MAX_UNMERGED:
                self._merge_calls()
            is_due = self._is_anything_pending() and not self._is_scheduled
            self._is_scheduled = self._is_scheduled or is_due
            return is_due

    def is_pending(self) -> bool:
        """Return whether anything is not on disk; accesses in flight are, after the next job."""
        return bool(self._is_anything_pending() or self._in_flight)

    def has(self, agent_id: str, rows: Iterable[int]) -> bool:
        """Return whether accesses of any of these entries may not be on disk yet."""
        with self._lock:
            self._merge_calls()
            return bool(self._in_flight) or any((agent_id, row) in self._pending for row in rows)

    def _is_anything_pending(self) -> bool:
        return bool(self._calls or self._pending)

    def _merge_calls(self) -> None:
        """Count accesses by row; ten times as slow as recording them, so no caller waits for it."""
        pending, calls, self._calls = self._pending, self._calls, []
        for agent_id, rows, now in calls:
            for row in rows:
                key = agent_id, row
                number, last = pending.get(key, (0, now))
                pending[key] = number + 1, max(last, now)

    def flush_job(self) -> "FlushAccesses":
        """Return a job that writes the accesses pending at its first run."""
        return FlushAccesses(self)

    def take(self, job: "FlushAccesses") -> dict[tuple[str, int], _Accesses]:
        """Return the pending accesses, which the job writes from now on."""
        with self._lock:
            self._merge_calls()
            taken, self._pending = self._pending, {}
            self._is_scheduled = False
            if taken and not job.has_ended:  # a cancelled call ends before its job may run
                self._in_flight.add(job)
            return taken

    def end(self, job: "FlushAccesses") -> None:
        """Record that a job has ended; a job that never ran must be submitted again."""
        with self._lock:
            job.has_ended = True
            self._in_flight.discard(job)
            self._is_scheduled = False


class FlushAccesses:
    """A job that writes the accesses pending at its first run; it may run twice.

    Args:
        accesses: The pending accesses.

    Attributes:
        has_ended: Whether the job has ended.
    """

    def __init__(self, accesses: PendingAccesses) -> None:
        self.has_ended = False
        self._accesses = accesses
        self._taken: dict[tuple[str, int], _Accesses] = {}

    def __call__(self, connection: apsw.Connection) -> None:
        """Write the accesses taken in the first run."""
        if not self._taken:
            self._taken = self._accesses.take(self)
        _write(connection, self._taken)

    def ended(self) -> None:
        """Record, once, that the transaction is on disk or has failed."""
        self._accesses.end(self)


def accesses_since(connection: apsw.Connection, agent_id: str, accesses: int) -> AccessedRows:
    """Return the accesses written after a number of access writes, also of deleted entries."""
    now = position(connection, agent_id)
    since = accesses if accesses <= now.accesses else 0
    rows = fetch(connection, _SINCE, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


def _write(connection: apsw.Connection, accesses: dict[tuple[str, int], _Accesses]) -> None:
    """Write accesses; entries that no longer exist are skipped."""
    agents = {agent_id for agent_id, _ in accesses}
    connection.executemany(_ADVANCE, [(agent_id,) for agent_id in agents])
    written = {agent_id: position(connection, agent_id).accesses for agent_id in agents}
    connection.executemany(
        _COUNT,
        [
            (number, last, last, written[agent_id], agent_id, row)
            for (agent_id, row), (number, last) in accesses.items()
        ],
    )
