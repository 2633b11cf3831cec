"""Accesses in the stores in SQL: written in groups, and read since a position."""

from typing import Final

from mnemic.store.accesses import RowAccesses
from mnemic.store.operations import AccessesSince
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import AGENTS, position
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.session import SqlSession
from mnemic.store.values import AccessedRows, LogPosition

_MAX_COUNT: Final = 2**63 - 1
_ADVANCE: Final = (
    f"UPDATE {AGENTS} SET accesses = accesses + 1 WHERE agent_id = ? RETURNING seq, accesses"
)
_COUNT: Final = (
    f"UPDATE {ENTRIES} SET access_count = "
    # SQLite would make a REAL of a larger sum, and PostgreSQL refuse all accesses beside it.
    f"CASE WHEN access_count > {_MAX_COUNT} - ? THEN {_MAX_COUNT} ELSE access_count + ? END, "
    "last_accessed_at = CASE WHEN last_accessed_at > ? THEN last_accessed_at ELSE ? END, "
    "access_seq = ? WHERE agent_id = ? AND row = ?"
)


def accesses_since(on: SqlSession, codec: RowCodec, wanted: AccessesSince) -> AccessedRows:
    """Return the accesses written after a number of access writes, also of deleted entries."""
    del codec
    agent_id, accesses = wanted.agent_id, wanted.accesses
    now = position(on, agent_id)
    since = accesses if accesses <= now.accesses else 0
    # The index is named, because the planner of SQLite would read all rows of an agent.
    sql = (
        f"SELECT row, last_accessed_at, access_count FROM {ENTRIES} "
        f"{on.dialect.by_index('access')} WHERE agent_id = ? AND access_seq > ?"
    )
    rows = on.fetch(sql, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


def write_accesses(on: SqlSession, accesses: RowAccesses) -> dict[str, LogPosition]:
    """Write accesses; return the positions of their agents. Those of deleted entries are lost."""
    positions = {
        agent_id: LogPosition(*on.dialect.integers(found))
        for agent_id in {agent_id for agent_id, _ in accesses}
        for found in on.fetch(_ADVANCE, (agent_id,))
    }
    written = {agent_id: position.accesses for agent_id, position in positions.items()}
    on.run_all(
        _COUNT,
        [
            (number, number, last, last, written[agent_id], agent_id, row)
            for (agent_id, row), (number, last) in accesses.items()
            if agent_id in written
        ],
    )
    return positions
