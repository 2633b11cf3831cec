"""Accesses: gathered in memory, written down now and then (C090)."""

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
# Named, because the planner would read all rows of an agent.
_SINCE = (
    "SELECT row, last_accessed_at, access_count FROM agent_memory_entries "
    "INDEXED BY agent_memory_entries_by_access WHERE agent_id = ? AND access_seq > ?"
)

MAX_UNMERGED = 1024
"""How many calls may have noted accesses before these are added up."""

_Accesses: TypeAlias = tuple[int, int]
"""How many there were, and when the last was."""


class PendingAccesses:
    """Accesses that are not written down yet. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[tuple[str, tuple[int, ...], int]] = []
        self._pending: dict[tuple[str, int], _Accesses] = {}
        self._is_scheduled = False  # whether a job is on its way that takes them
        self._in_flight: set[FlushAccesses] = set()  # have taken some, and have not ended

    def add(self, agent_id: str, rows: Iterable[int], now: int) -> bool:
        """Take note of accesses; return whether a job must be handed in to write them down."""
        noted = tuple(rows)
        with self._lock:
            if noted:
                self._calls.append((agent_id, noted, now))
            if len(self._calls) >= MAX_UNMERGED:
                self._merge_calls()
            is_due = self._is_anything_pending() and not self._is_scheduled
            self._is_scheduled = self._is_scheduled or is_due
            return is_due

    def is_pending(self) -> bool:
        """Return whether anything is not on disk yet; what is on its way is after the next job."""
        return bool(self._is_anything_pending() or self._in_flight)

    def has(self, agent_id: str, rows: Iterable[int]) -> bool:
        """Return whether accesses of any of these entries may not be on disk yet."""
        with self._lock:
            self._merge_calls()
            return bool(self._in_flight) or any((agent_id, row) in self._pending for row in rows)

    def _is_anything_pending(self) -> bool:
        return bool(self._calls or self._pending)

    def _merge_calls(self) -> None:
        """Count by entry, which takes ten times as long as noting, and no caller waits for."""
        pending, noted, self._calls = self._pending, self._calls, []
        for agent_id, rows, now in noted:
            for row in rows:
                key = agent_id, row
                number, last = pending.get(key, (0, now))
                pending[key] = number + 1, max(last, now)

    def flush_job(self) -> "FlushAccesses":
        """Return a job that writes down what waits when it first runs."""
        return FlushAccesses(self)

    def take(self, job: "FlushAccesses") -> dict[tuple[str, int], _Accesses]:
        """Return what waits, which a job is to write down from now on."""
        with self._lock:
            self._merge_calls()
            taken, self._pending = self._pending, {}
            self._is_scheduled = False
            if taken and not job.has_ended:  # a cancelled call ends before its job may run
                self._in_flight.add(job)
            return taken

    def end(self, job: "FlushAccesses") -> None:
        """Note that a job has ended; one that never ran is to be handed in once more."""
        with self._lock:
            job.has_ended = True
            self._in_flight.discard(job)
            self._is_scheduled = False


class FlushAccesses:
    """A job that writes down what waits when it first runs; it may run twice.

    Args:
        accesses: Where it waits.

    Attributes:
        has_ended: Whether nobody follows it any more.
    """

    def __init__(self, accesses: PendingAccesses) -> None:
        self.has_ended = False
        self._accesses = accesses
        self._taken: dict[tuple[str, int], _Accesses] = {}

    def __call__(self, connection: apsw.Connection) -> None:
        """Write down what waits, or what the first run took."""
        if not self._taken:
            self._taken = self._accesses.take(self)
        _write(connection, self._taken)

    def ended(self) -> None:
        """Take note, once, that the transaction is on disk or has failed."""
        self._accesses.end(self)


def accesses_since(connection: apsw.Connection, agent_id: str, accesses: int) -> AccessedRows:
    """Return what was accessed since accesses were written so often, forgotten entries too."""
    now = position(connection, agent_id)
    since = accesses if accesses <= now.accesses else 0
    rows = fetch(connection, _SINCE, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


def _write(connection: apsw.Connection, accesses: dict[tuple[str, int], _Accesses]) -> None:
    """Write accesses down; entries that are gone are passed over."""
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
