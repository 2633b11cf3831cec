"""Marks of changes, by which a snapshot of an index recognises the history it was made from."""

import apsw

from mnemic.store.sqlite.change_log import reaches_back
from mnemic.store.sqlite.sql import fetch, integers
from mnemic.store.values import ChangeMark

_SEALED = (
    "SELECT row FROM agent_memory_entries INDEXED BY agent_memory_entries_by_seal "
    "WHERE agent_id = ? AND is_encrypted <> 0"
)

_MARK = (
    "SELECT seq, nonce FROM agent_memory_changes WHERE agent_id = ?1 AND seq = "
    "ifnull(?2, (SELECT seq FROM agent_memory_agents WHERE agent_id = ?1))"
)
_HAS_CHANGE = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_changes "
    "WHERE agent_id = ? AND seq = ? AND nonce = ?)"
)
_REMOVES_CONTENT = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_changes WHERE agent_id = ? AND seq > ? "
    "AND kind IN ('delete', 'replace', 'update'))"
)


def change_mark(connection: apsw.Connection, agent_id: str, seq: int | None) -> ChangeMark | None:
    """Return the mark of a change, of the last one for None; None if the log has no such change."""
    found = fetch(connection, _MARK, (agent_id, seq))
    return ChangeMark(*integers(found[0])) if found else None


def has_change(connection: apsw.Connection, agent_id: str, seq: int, nonce: int) -> bool:
    """Return whether the log has a change with this number and nonce."""
    return bool(fetch(connection, _HAS_CHANGE, (agent_id, seq, nonce))[0][0])


def has_removed_since(connection: apsw.Connection, agent_id: str, since: int) -> bool:
    """Return whether content may have been deleted or overwritten after a change."""
    if not reaches_back(connection, agent_id, since):
        return True
    return bool(fetch(connection, _REMOVES_CONTENT, (agent_id, since))[0][0])


def sealed_rows(connection: apsw.Connection, agent_id: str) -> list[int]:
    """Return the rows of an agent's sealed entries, in any state."""
    return integers([row for (row,) in fetch(connection, _SEALED, (agent_id,))])
