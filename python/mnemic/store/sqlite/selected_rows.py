"""The rows that a write for many entries is for, decided inside its transaction."""

from collections.abc import Sequence
from typing import Any

import apsw

from mnemic.errors import AmbiguousIdError
from mnemic.model import Scope
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.sqlite import filter_sql
from mnemic.store.sqlite.reads import matching_rows
from mnemic.store.sqlite.sql import AMONG, USER_KEY, Condition, fetch, in_scope, json_array
from mnemic.store.values import Criteria

_ANY: Condition = ("1", [])


def selected(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition = _ANY,
) -> Condition:
    """Return the condition of the selected entries of a scope.

    Args:
        connection: In the transaction that writes.
        codec: Codec of the entries.
        scope: The scope.
        criteria: The entries.
        state: A further condition.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    where, values = _scoped(connection, scope, criteria)
    where, values = f"{where} AND {state[0]}", [*values, *state[1]]
    if criteria.expression is None:
        return where, values
    sql, bound, is_exact = filter_sql.narrowed(criteria.expression)
    where, values = f"{where} AND ({sql})", [*values, *bound]
    if is_exact:
        return where, values
    rows = matching_rows(connection, codec, criteria.expression, where, values)
    # The sign keeps the planner from the index of the agent, which would read all of its rows.
    return f"{AMONG} AND +agent_id = ?", [json_array(rows), scope.agent_id]


def _scoped(connection: apsw.Connection, scope: Scope, criteria: Criteria) -> Condition:
    """Return the condition of the scope, and of the ids if there are any."""
    where, values = in_scope(scope)
    if criteria.ids is None:
        return where, values
    ids, bound = filter_sql.among_ids(criteria.ids)
    where, values = f"{where} AND {ids}", [*values, bound]
    if scope.all_users:
        _check_unambiguous(connection, scope, where, values)
        return where, values
    return f"{where} AND {USER_KEY} = ?", [*values, scope.user_id or ""]


def _check_unambiguous(
    connection: apsw.Connection, scope: Scope, where: str, values: Sequence[Any]
) -> None:
    sql = (
        f"SELECT id FROM agent_memory_entries WHERE {where} "
        "GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1"
    )
    for (entry_id,) in fetch(connection, sql, values):
        raise AmbiguousIdError(
            f"several users of agent {scope.agent_id!r} have a memory with id {uuid_of(entry_id)}; "
            "name the user_id in place of all_users=True"
        )
