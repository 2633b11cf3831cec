"""SQL statements on the users of an agent."""

import apsw

from mnemic.model import UserUsage
from mnemic.store.filter_sql import Condition, text_after
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.sql import IS_ACTIVE, fetch

_OF_USER = "entry.agent_id = wall.agent_id AND entry.user_id IS nullif(wall.user_key, '')"
# A user's row stays when the last entry goes.
_USERS = (
    "SELECT nullif(user_key, ''), (SELECT count(*) FROM agent_memory_entries AS entry "
    f"INDEXED BY agent_memory_entries_by_user WHERE {_OF_USER} AND {IS_ACTIVE}), used_bytes "
    "FROM agent_memory_walls AS wall WHERE wall.agent_id = ? AND {where} "
    "AND EXISTS (SELECT 1 FROM agent_memory_entries AS entry "
    f"INDEXED BY agent_memory_entries_by_user WHERE {_OF_USER}) "
    "ORDER BY user_key LIMIT ? OFFSET ?"
)


def users(
    connection: apsw.Connection,
    agent_id: str,
    prefix: str | None,
    *,
    limit: int,
    offset: int,
    now: int,
) -> list[UserUsage]:
    """Return the users who have entries, and what these take."""
    where, values = _begins_with(prefix or "")
    found = fetch(connection, _USERS.format(where=where), (now, agent_id, *values, limit, offset))
    with reading_stored("a user"):
        return [UserUsage(*columns) for columns in found]


def _begins_with(prefix: str) -> Condition:
    """Return the condition of users whose ids begin with a text: a range of the key."""
    if not prefix:
        return "1", []
    end = text_after(prefix)
    if end is None:
        return "user_key >= ?", [prefix]
    return "user_key >= ? AND user_key < ?", [prefix, end]
