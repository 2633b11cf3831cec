"""Deletes entries to make space for a write, in its transaction."""

from collections.abc import Collection, Sequence
from typing import Any

from mnemic.model import Scope
from mnemic.store.changes import Change
from mnemic.store.eviction import SqlEvictionReads, Write, in_order, rows_to_evict
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.change_log import used_by_user, used_bytes
from mnemic.store.sqlite.deletes import remove
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.selected_rows import selected
from mnemic.store.sqlite.sql import AMONG, Columns, fetch, in_scope, integers, json_array
from mnemic.store.values import Selection


def evict_entries(connection: GuardedConnection, codec: RowCodec, write: Write) -> list[Change]:
    """Delete entries so that a write keeps to its quotas; the caller logs that with the write.

    Raises:
        StorageQuotaExceededError: See `rows_to_evict`.
    """
    reads = SqlEvictionReads(_Sql(connection), codec, write)
    rows = rows_to_evict(reads, write)
    return in_order(_remove_rows(connection, codec, write.agent_id, rows), rows)


def remove_others(
    connection: GuardedConnection, codec: RowCodec, which: Selection, kept: Collection[int]
) -> list[Change]:
    """Delete the selected entries but those of some rows; the caller logs that."""
    where, values = selected(connection, codec, *which)
    found = fetch(connection, f"SELECT row FROM agent_memory_entries WHERE {where}", values)
    rows = [row for row in integers([row for (row,) in found]) if row not in kept]
    return _remove_rows(connection, codec, which.scope.agent_id, rows)


def _remove_rows(
    connection: GuardedConnection, codec: RowCodec, agent_id: str, rows: Sequence[int]
) -> list[Change]:
    if not rows:
        return []
    # The sign keeps the planner from the indexes of the agent, which would read all of its rows.
    return remove(connection, codec, f"{AMONG} AND +agent_id = ?", (json_array(rows), agent_id))


class _Sql:
    """See `EvictionSql`."""

    table = "agent_memory_entries"
    mark = "?"
    among = AMONG

    def __init__(self, connection: GuardedConnection) -> None:
        self._connection = connection

    def fetch(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        return fetch(self._connection, sql, values)

    def rows(self, rows: Sequence[int]) -> str:
        return json_array(rows)

    def in_scope(self, scope: Scope) -> Condition:
        return in_scope(scope)

    def used_bytes(self, scope: Scope) -> int:
        if scope.all_users:
            return used_bytes(self._connection, scope.agent_id)
        return used_by_user(self._connection, scope.agent_id, scope.user_id)
