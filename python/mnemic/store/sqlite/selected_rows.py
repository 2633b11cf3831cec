"""The rows that a write for many entries is for, decided inside its transaction."""

from collections.abc import Sequence
from uuid import UUID

from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.store.duplicates import check_unambiguous
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.filters import narrowed
from mnemic.store.sql.lists import matching_rows
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import AMONG, fetch, in_scope, integers, json_array

_ANY: Condition = ("1", [])
# Joined in this order and by this index: the planner would read all entries of the user.
_ROWS_OF_IDS = (
    "SELECT row, id FROM (SELECT DISTINCT unhex(value, '-') AS wanted FROM json_each(?)) "
    "CROSS JOIN agent_memory_entries INDEXED BY agent_memory_entries_by_id ON id = wanted WHERE 1"
)


def selected(
    connection: GuardedConnection,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition = _ANY,
) -> Condition:
    """Return the condition of the selected entries of a scope.

    Args:
        connection: In the transaction that writes.
        codec: Codec of the entries; those that it cannot read match no filter.
        scope: The scope.
        criteria: The entries.
        state: A further condition.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    where, values = in_scope(scope)
    if criteria.ids is not None:
        where, values = _of_rows(scope, _rows_of_ids(connection, scope, criteria.ids))
    where, values = f"{where} AND {state[0]}", [*values, *state[1]]
    if criteria.expression is None:
        return where, values
    where = f"{where} AND {codec.is_visible_sql}"
    sql, bound, is_exact = narrowed(connection.dialect, criteria.expression, seals=codec.seals)
    where, values = f"{where} AND ({sql})", [*values, *bound]
    if not is_exact:
        rows = matching_rows(connection, codec, criteria.expression, (where, values))
        return _of_rows(scope, rows)
    # Read once: a write repeats its condition, and this one may scan all entries of the user.
    found = fetch(connection, f"SELECT row FROM agent_memory_entries WHERE {where}", values)
    return _of_rows(scope, integers([row for (row,) in found]))


def _of_rows(scope: Scope, rows: Sequence[int]) -> Condition:
    """Return the condition of rows that are known to be in a scope."""
    # The sign keeps the planner from the indexes of the agent, which would read all of its rows.
    return f"{AMONG} AND +agent_id = ?", [json_array(rows), scope.agent_id]


def _rows_of_ids(connection: GuardedConnection, scope: Scope, ids: Sequence[UUID]) -> list[int]:
    """Return the rows of the entries of a scope that have one of these ids, in any state."""
    where, values = in_scope(scope)
    found = fetch(connection, f"{_ROWS_OF_IDS} AND {where}", (list(ids), *values))
    if scope.all_users:
        check_unambiguous(scope, [entry_id for _, entry_id in found])
    return integers([row for row, _ in found])
