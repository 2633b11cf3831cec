"""Accesses in the file: written in groups, and read since a position."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mnemic.errors import MnemicError
from mnemic.store.pending_accesses import AccessFlush, RowAccesses
from mnemic.store.sqlite.change_log import position
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import fetch
from mnemic.store.values import AccessedRows

_MAX_COUNT = 2**63 - 1
_COUNT = (
    # A sum above the largest integer would be a REAL, and fail with all accesses written beside it.
    f"UPDATE agent_memory_entries SET access_count = min(access_count, {_MAX_COUNT} - ?1) + ?1, "
    "last_accessed_at = max(ifnull(last_accessed_at, ?2), ?2), access_seq = ?3 "
    "WHERE agent_id = ?4 AND row = ?5"
)
_ADVANCE = "UPDATE agent_memory_agents SET accesses = accesses + 1 WHERE agent_id = ?"
# The index is named, because the planner would read all rows of an agent.
_SINCE = (
    "SELECT row, last_accessed_at, access_count FROM agent_memory_entries "
    "INDEXED BY agent_memory_entries_by_access WHERE agent_id = ? AND access_seq > ?"
)


def accesses_since(connection: GuardedConnection, agent_id: str, accesses: int) -> AccessedRows:
    """Return the accesses written after a number of access writes, also of deleted entries."""
    now = position(connection, agent_id)
    since = accesses if accesses <= now.accesses else 0
    rows = fetch(connection, _SINCE, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


def write_accesses(connection: GuardedConnection, accesses: RowAccesses) -> None:
    """Write accesses; entries that no longer exist are skipped."""
    agents = {agent_id for agent_id, _ in accesses}
    connection.executemany(_ADVANCE, [(agent_id,) for agent_id in agents])
    written = {agent_id: position(connection, agent_id).accesses for agent_id in agents}
    connection.executemany(
        _COUNT,
        [
            (number, last, written[agent_id], agent_id, row)
            for (agent_id, row), (number, last) in accesses.items()
        ],
    )


class _FailedJob(NamedTuple):
    """A job's error, after which its transaction goes on."""

    error: MnemicError


class AfterAccesses:
    """A job that sees all accesses recorded before it: they are written in its transaction.

    If the job is refused it is undone alone: the accesses are no part of it.

    Args:
        flush: The accesses.
        job: The job.
        finish: Turns its result into the future's.
    """

    def __init__(
        self,
        flush: AccessFlush,
        job: Callable[[GuardedConnection], Any],
        finish: Callable[[Any], Any],
    ) -> None:
        self._flush = flush
        self._job = job
        self._finish = finish

    def __call__(self, connection: GuardedConnection) -> Any:
        """Write the accesses and run the job."""
        write_accesses(connection, self._flush.taken())
        connection.savepoint()
        try:
            result = self._job(connection)
        except MnemicError as error:
            connection.undo()
            return _FailedJob(error)
        connection.release()
        return result

    def finish(self, result: Any) -> Any:
        """Return the future's result, or raise the job's error."""
        if isinstance(result, _FailedJob):
            raise result.error
        return self._finish(result)
