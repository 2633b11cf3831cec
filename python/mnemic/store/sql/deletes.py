"""The deletions of the stores in SQL, and their undoing; what may go for the quotas of a write."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

from mnemic.model import Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.eviction import Eviction, Write
from mnemic.store.operations import Delete, ForgetAgent, Purge, Restore, SoftDelete
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, in_scope
from mnemic.store.sql.lists import Rows, numbers_of, of_rows, selected, set_column
from mnemic.store.sql.reads import number_of, used_bytes
from mnemic.store.sql.sealing import delete_keys
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.values import MarkedIds


def soft_delete(on: SqlSession, codec: RowCodec, wanted: SoftDelete) -> MarkedIds:
    """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
    agent_id, ids = wanted.agent_id, wanted.criteria.ids
    rows = selected(on, codec, wanted.scope, wanted.criteria)
    present = rows.also("forgotten_at IS NULL", [])
    marked = on.dialect.mark_deleted(on, agent_id, present, to_microseconds(wanted.now))
    changes = [
        Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in sorted(marked)
    ]
    now = _logged(on, agent_id, changes)
    if ids is None or len(now) == len(ids):
        return MarkedIds(now)
    found = on.fetch(f"SELECT id FROM {ENTRIES} {rows.hint} WHERE {rows.where}", rows.values)
    with on.dialect.reading_stored("a memory's id"):
        return MarkedIds(now, {uuid_of(entry_id) for (entry_id,) in found}.difference(now))


def restore(on: SqlSession, codec: RowCodec, wanted: Restore) -> list[UUID]:
    """Take selected entries back that were deleted since `oldest`; return their ids."""
    is_due = "forgotten_at >= ? AND (expires_at IS NULL OR expires_at > ?)"
    times = [to_microseconds(wanted.oldest), to_microseconds(wanted.now)]
    which = selected(on, codec, wanted.scope, wanted.criteria, (is_due, times))
    restored = set_column(on, which, "forgotten_at", None)
    changes = [Change(row, entry_id, "restore", user_id) for row, entry_id, user_id in restored]
    return _logged(on, wanted.agent_id, changes)


def delete(on: SqlSession, codec: RowCodec, wanted: Delete, limit: int | None = None) -> list[UUID]:
    """Delete the selected entries of a scope permanently, or some; return their ids."""
    which = selected(on, codec, wanted.scope, wanted.criteria)
    return _delete(on, codec, wanted.agent_id, which, limit)


def purge(on: SqlSession, codec: RowCodec, wanted: Purge, limit: int | None) -> list[UUID]:
    """Delete permanently what was deleted or expired before `oldest`; return the ids."""
    where, values = in_scope(wanted.scope)
    last = to_microseconds(wanted.oldest) - 1
    latest = last if wanted.expired is None else max(last, to_microseconds(wanted.expired))
    deleted: list[UUID] = []
    for moment, bound in (("forgotten_at", last), ("expires_at", latest)):
        due = Rows(f"{where} AND {moment} <= ?", [*values, bound])
        deleted += _delete(on, codec, wanted.agent_id, due, limit)
    return deleted


def forget_agent(
    on: SqlSession, codec: RowCodec, wanted: ForgetAgent, limit: int | None
) -> list[UUID]:
    """Destroy the keys of an agent, and delete its entries; return their ids."""
    delete_keys(on, wanted.agent_id)
    everyone = Scope(wanted.agent_id, all_users=True)
    return delete(on, codec, Delete(everyone), limit)


def _delete(
    on: SqlSession, codec: RowCodec, agent_id: str, which: Rows, limit: int | None
) -> list[UUID]:
    if limit is not None:
        which = of_rows(on.dialect, agent_id, numbers_of(on, which, limit))
    return _logged(on, agent_id, _removed(on, codec, which))


def remove(on: SqlSession, codec: RowCodec, agent_id: str, rows: Sequence[int]) -> list[Change]:
    """Delete rows, with vectors and links, in ascending order; the caller logs that."""
    if not rows:
        return []
    return _removed(on, codec, of_rows(on.dialect, agent_id, rows))


def _removed(on: SqlSession, codec: RowCodec, which: Rows) -> list[Change]:
    where, values, hint = which
    returned = f"row, id, user_id, {codec.content_size_sql}"
    sql = f"DELETE FROM {ENTRIES} {hint} WHERE {where} RETURNING {returned}"
    return [
        Change(row, entry_id, "delete", user_id, -size)
        for row, entry_id, user_id, size in sorted(on.fetch(sql, values))
    ]


def _logged(on: SqlSession, agent_id: str, changes: Sequence[Change]) -> list[UUID]:
    """Log changes; return the ids of their entries."""
    if changes:
        log_changes(on, agent_id, changes)
    return ids_of(on, changes)


def ids_of(on: SqlSession, changes: Iterable[Change]) -> list[UUID]:
    """Return the ids of changed entries.

    Raises:
        StoreCorruptError: If one is invalid.
    """
    with on.dialect.reading_stored("a memory's id"):
        return [uuid_of(change.entry_id) for change in changes]


_ORDER: Final = (
    "ended_at IS NULL, ended_at, status <> 2, importance, access_count, "
    "coalesce(last_accessed_at, created_at), created_at, id"
)
"""The order of `Eviction.candidates`, in SQL."""

_ENDED_AT: Final = "coalesce(forgotten_at, CASE WHEN expires_at <= ? THEN expires_at END)"
"""When an entry was deleted or has expired, in SQL; NULL for one that is present."""

_IS_EVICTABLE: Final = "(ended_at IS NOT NULL OR (importance < 1 AND importance <= ?))"
"""Condition, in SQL, of entries that may go for one of an importance."""


class SqlEviction(Eviction):
    """Reads and deletes what may go for a write; see `Eviction`.

    Args:
        on: In the transaction of the write.
        codec: Codec of the entries.
        write: The write.
    """

    def __init__(self, on: SqlSession, codec: RowCodec, write: Write) -> None:
        super().__init__(write)
        self._on = on
        self._codec = codec

    def used_bytes(self, scope: Scope) -> int:
        """Return the bytes of the contents of an agent or a user."""
        return used_bytes(self._on, scope)

    def number_of(self, scope: Scope) -> int:
        """Return the number of entries of an agent or a user."""
        return number_of(self._on, scope)

    def least_importance(self, user_id: str | None, rows: Sequence[int]) -> float | None:
        """Return the least importance of rows of a user."""
        where, values = in_scope(Scope(self.write.agent_id, user_id))
        among = self._on.dialect.among("row")
        sql = f"SELECT min(importance) FROM {ENTRIES} WHERE {where} AND {among}"
        least = self._on.value(sql, (*values, rows))
        return None if least is None else float(least)

    def candidates(
        self, user_id: str | None, kept: Collection[int], least: float | None, number: int
    ) -> list[Columns]:
        """Return the first rows of a user that may go, with the bytes of each."""
        where, values = in_scope(Scope(self.write.agent_id, user_id))
        size = self._codec.content_size_sql
        sql = (
            f"SELECT row, size FROM (SELECT *, {size} AS size, {_ENDED_AT} AS ended_at "
            f"FROM {ENTRIES} WHERE {where}) AS own WHERE {_IS_EVICTABLE} "
            f"AND NOT ({self._on.dialect.among('row')}) ORDER BY {_ORDER} LIMIT ?"
        )
        return self._on.fetch(sql, (self.write.now, *values, least, list(kept), number))

    def remove(self, rows: Sequence[int]) -> list[Change]:
        """Delete rows."""
        return remove(self._on, self._codec, self.write.agent_id, rows)
