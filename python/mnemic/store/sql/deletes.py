"""The deletions of the stores in SQL, and their undoing."""

from abc import ABC
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from mnemic.model import Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import single
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, in_scope, with_id
from mnemic.store.sql.opened import OpenedSql
from mnemic.store.sql.sealing import delete_keys
from mnemic.store.sql.selected_rows import Rows, numbers_of, of_rows, selected
from mnemic.store.sql.session import SqlSession

_MARK: Final = f"UPDATE {ENTRIES} SET forgotten_at = ? WHERE agent_id = ? AND row = ?"


class SqlDeletes(OpenedSql, ABC):
    """Deletes entries and restores them; see `Store` and `BulkWrites`."""

    def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> Future[bool | None]:
        """Mark an entry as deleted; see `Store.soft_delete`."""
        where, values = with_id(self._dialect, scope, entry_id)
        sql = f"SELECT row, user_id, forgotten_at FROM {ENTRIES} WHERE {where}"
        time = to_microseconds(now)

        def work(on: SqlSession) -> bool | None:
            found = single(on.fetch(sql, values), scope, entry_id)
            if found is None:
                return None
            row, user_id, forgotten_at = found
            if forgotten_at is not None:
                return False
            on.run(_MARK, (time, scope.agent_id, row))
            changed = Change(row, entry_id.bytes, "forget", user_id)
            log_changes(on, scope.agent_id, [changed])
            return True

        return self._write(scope.agent_id, work)

    def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> Future[bool]:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        where, values = with_id(self._dialect, scope, entry_id)
        sql = (
            f"SELECT row, user_id FROM {ENTRIES} WHERE {where} "
            "AND forgotten_at >= ? AND (expires_at IS NULL OR expires_at > ?)"
        )
        times = to_microseconds(oldest), to_microseconds(now)

        def work(on: SqlSession) -> bool:
            found = single(on.fetch(sql, (*values, *times)), scope, entry_id)
            if found is None:
                return False
            row, user_id = found
            on.run(_MARK, (None, scope.agent_id, row))
            changed = Change(row, entry_id.bytes, "restore", user_id)
            log_changes(on, scope.agent_id, [changed])
            return True

        return self._write(scope.agent_id, work)

    def delete(self, scope: Scope, entry_id: UUID) -> Future[list[UUID]]:
        """Delete an entry permanently, marked as deleted or not; return its id."""
        where, values = with_id(self._dialect, scope, entry_id)

        def work(on: SqlSession) -> list[UUID]:
            deleted = _removed(on, self._codec, Rows(where, values))
            single(deleted, scope, entry_id)
            return _logged(on, scope.agent_id, deleted)

        return self._write(scope.agent_id, work)

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
        time = to_microseconds(now)

        def work(on: SqlSession) -> list[UUID]:
            present = "forgotten_at IS NULL", list[Any]()
            where, values, hint = selected(on, self._codec, scope, criteria, present)
            sql = f"UPDATE {ENTRIES} {hint} SET forgotten_at = ? WHERE {where}"
            marked = sorted(on.fetch(f"{sql} RETURNING row, id, user_id", (time, *values)))
            changes = [
                Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in marked
            ]
            return _logged(on, scope.agent_id, changes)

        return self._write(scope.agent_id, work)

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently; return their ids."""
        return self._write_in_parts(
            scope.agent_id,
            lambda limit, on: delete_all(on, self._codec, scope, criteria, limit=limit),
        )

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        where, values = in_scope(scope)
        last = to_microseconds(oldest) - 1
        latest = last if expired is None else max(last, to_microseconds(expired))

        def work(limit: int | None, on: SqlSession) -> list[UUID]:
            deleted: list[UUID] = []
            for moment, bound in (("forgotten_at", last), ("expires_at", latest)):
                due = Rows(f"{where} AND {moment} <= ?", [*values, bound])
                deleted += _delete(on, self._codec, scope.agent_id, due, limit)
            return deleted

        return self._write_in_parts(scope.agent_id, work)

    def forget_agent(self, agent_id: str) -> Future[list[UUID]]:
        """Destroy the keys of an agent, and delete its entries; return their ids."""
        codec, everyone = self._codec, Scope(agent_id, all_users=True)

        def forget(limit: int | None, on: SqlSession) -> list[UUID]:
            delete_keys(on, agent_id)
            return delete_all(on, codec, everyone, EVERY_ENTRY, limit=limit)

        def forgotten(ids: list[UUID]) -> list[UUID]:
            if isinstance(codec, SealingRowCodec):
                codec.keyring.forget(agent_id)
            return ids

        return self._write_in_parts(agent_id, forget, forgotten)


def delete_all(
    on: SqlSession, codec: RowCodec, scope: Scope, criteria: Criteria, *, limit: int | None = None
) -> list[UUID]:
    """Delete the selected entries of a scope, forgotten or not, or some; return their ids."""
    which = selected(on, codec, scope, criteria)
    return _delete(on, codec, scope.agent_id, which, limit)


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
