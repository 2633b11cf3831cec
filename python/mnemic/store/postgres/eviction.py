"""Deletes entries to make space for a write, in its transaction."""

from collections.abc import Collection, Sequence
from typing import Any

from mnemic.model import Scope
from mnemic.store.changes import Change
from mnemic.store.eviction import SqlEvictionReads, Write, in_order, rows_to_evict
from mnemic.store.postgres.change_log import used_by_user, used_bytes
from mnemic.store.postgres.selected_rows import selected
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import AMONG, ENTRIES, in_scope
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Condition
from mnemic.store.values import Selection


def evict_entries(session: Session, codec: RowCodec, write: Write) -> list[Change]:
    """Delete entries so that a write keeps to its quotas; the caller logs that with the write.

    Raises:
        StorageQuotaExceededError: See `rows_to_evict`.
    """
    reads = SqlEvictionReads(_Sql(session), codec, write)
    rows = rows_to_evict(reads, write)
    return in_order(remove(session, codec, write.agent_id, rows), rows)


def remove_others(
    session: Session, codec: RowCodec, which: Selection, kept: Collection[int]
) -> list[Change]:
    """Delete the selected entries but those of some rows; the caller logs that."""
    rows = [row for row in selected(session, codec, *which) if row not in kept]
    return remove(session, codec, which.scope.agent_id, rows)


def remove(session: Session, codec: RowCodec, agent_id: str, rows: Sequence[int]) -> list[Change]:
    """Delete rows, with vectors and links, in ascending order; the caller logs that."""
    if not rows:
        return []
    deleted = session.fetch(
        f"DELETE FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} "
        f"RETURNING row, id, user_id, {codec.content_size_sql}",
        (agent_id, list(rows)),
    )
    return [
        Change(row, entry_id, "delete", user_id, -size)
        for row, entry_id, user_id, size in sorted(deleted)
    ]


class _Sql:
    """See `EvictionSql`."""

    table = ENTRIES
    mark = "%s"
    among = AMONG

    def __init__(self, session: Session) -> None:
        self._session = session

    def fetch(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        return self._session.fetch(sql, values)

    def rows(self, rows: Sequence[int]) -> list[int]:
        return list(rows)

    def in_scope(self, scope: Scope) -> Condition:
        return in_scope(scope)

    def used_bytes(self, scope: Scope) -> int:
        if scope.all_users:
            return used_bytes(self._session, scope.agent_id)
        return used_by_user(self._session, scope.agent_id, scope.user_id)
