"""The deletions of the SQLite store, and their undoing."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from mnemic.errors import StoreFullError
from mnemic.model import Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import single
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.change_log import log_changes
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.selected_rows import selected
from mnemic.store.sqlite.sql import AMONG, fetch, in_scope, json_array, with_id

PART = 64
"""Entries that a transaction deletes on a full disk; fewer if they do not fit."""

Deletion: TypeAlias = Callable[[int | None, GuardedConnection], list[UUID]]
"""Deletes at most so many entries, in a transaction; returns their ids."""


class SqliteDeletes(SqliteFile):
    """Deletes entries and restores them; see `Store` and `BulkWrites`."""

    def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> Future[bool | None]:
        """Mark an entry as deleted; see `Store.soft_delete`."""
        where, values = with_id(scope, entry_id)
        sql = f"SELECT row, user_id, forgotten_at FROM agent_memory_entries WHERE {where}"
        time = to_microseconds(now)

        def work(on: GuardedConnection) -> bool | None:
            found = single(fetch(on, sql, values), scope, entry_id)
            if found is None:
                return None
            row, user_id, forgotten_at = found
            if forgotten_at is not None:
                return False
            on.execute(
                f"UPDATE agent_memory_entries SET forgotten_at = ? WHERE {where} AND row = ?",
                (time, *values, row),
            )
            log_changes(on, scope.agent_id, [Change(row, entry_id.bytes, "forget", user_id)])
            return True

        return self._write(scope.agent_id, work)

    def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> Future[bool]:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        where, values = with_id(scope, entry_id)
        sql = (
            f"SELECT row, user_id FROM agent_memory_entries WHERE {where} "
            "AND forgotten_at >= ? AND (expires_at IS NULL OR expires_at > ?)"
        )
        times = to_microseconds(oldest), to_microseconds(now)

        def work(on: GuardedConnection) -> bool:
            found = single(fetch(on, sql, (*values, *times)), scope, entry_id)
            if found is None:
                return False
            row, user_id = found
            on.execute("UPDATE agent_memory_entries SET forgotten_at = NULL WHERE row = ?", (row,))
            log_changes(on, scope.agent_id, [Change(row, entry_id.bytes, "restore", user_id)])
            return True

        return self._write(scope.agent_id, work)

    def delete(self, scope: Scope, entry_id: UUID) -> Future[list[UUID]]:
        """Delete an entry permanently, marked as deleted or not; return its id."""
        where, values = with_id(scope, entry_id)

        def work(on: GuardedConnection) -> list[UUID]:
            deleted = _delete(on, self._codec, scope.agent_id, where, values)
            single(deleted, scope, entry_id)
            return deleted

        return self._write(scope.agent_id, work)

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
        time = to_microseconds(now)

        def work(on: GuardedConnection) -> list[UUID]:
            present = "forgotten_at IS NULL", list[Any]()
            where, values = selected(on, self._codec, scope, criteria, present)
            forgotten = fetch(
                on,
                f"UPDATE agent_memory_entries SET forgotten_at = ? WHERE {where} "
                "RETURNING row, id, user_id",
                (time, *values),
            )
            if forgotten:
                changes = [
                    Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in forgotten
                ]
                log_changes(on, scope.agent_id, changes)
            return uuids_of(entry_id for _, entry_id, _ in forgotten)

        return self._write(scope.agent_id, work)

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently; return their ids."""
        return self._write_or_parts(
            lambda limit, on: delete_all(on, self._codec, scope, criteria, limit=limit)
        )

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        where, values = in_scope(scope)
        last = to_microseconds(oldest) - 1
        latest = last if expired is None else max(last, to_microseconds(expired))

        def work(limit: int | None, on: GuardedConnection) -> list[UUID]:
            deleted: list[UUID] = []
            for moment, bound in (("forgotten_at", last), ("expires_at", latest)):
                due = _some(on, (f"{where} AND {moment} <= ?", [*values, bound]), limit)
                deleted += _delete(on, self._codec, scope.agent_id, *due)
            return deleted

        return self._write_or_parts(work)

    def _write_or_parts(self, job: Deletion) -> Future[list[UUID]]:
        """Delete in one transaction, or on a full disk in several that fit into the log."""
        whole = self._write(None, partial(job, None))
        return self._workers.run(partial(self._deleted, job, whole))

    def _deleted(self, job: Deletion, whole: Future[list[UUID]]) -> list[UUID]:
        with suppress(StoreFullError):
            return whole.result()
        deleted: list[UUID] = []
        limit = PART
        while True:
            try:
                part = self._write(None, partial(job, limit)).result()
            except StoreFullError as error:
                if limit == 1 and not deleted:
                    raise
                if limit == 1:
                    raise StoreFullError(f"{error}; {len(deleted)} were deleted before") from error
                limit //= 4
                continue
            deleted += part
            if len(part) < limit:  # not until none is left: others may go on adding
                return deleted


def delete_all(
    connection: GuardedConnection,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    *,
    limit: int | None = None,
) -> list[UUID]:
    """Delete the selected entries of a scope, forgotten or not, or some; return their ids."""
    where, values = _some(connection, selected(connection, codec, scope, criteria), limit)
    return _delete(connection, codec, scope.agent_id, where, values)


def _some(connection: GuardedConnection, which: Condition, limit: int | None) -> Condition:
    """Return the condition of some of the rows that meet a condition; of all without a limit."""
    if limit is None:
        return which
    where, values = which
    sql = f"SELECT row FROM agent_memory_entries WHERE {where} LIMIT {limit}"
    return AMONG, [json_array([row for (row,) in fetch(connection, sql, values)])]


def _delete(
    connection: GuardedConnection,
    codec: RowCodec,
    agent_id: str,
    where: str,
    values: Sequence[Any],
) -> list[UUID]:
    deleted = remove(connection, codec, where, values)
    if deleted:
        log_changes(connection, agent_id, deleted)
    return uuids_of(change.entry_id for change in deleted)


def remove(
    connection: GuardedConnection, codec: RowCodec, where: str, values: Sequence[Any]
) -> list[Change]:
    """Delete the entries that meet a condition, with vectors and links; the caller logs that."""
    sql = (
        f"DELETE FROM agent_memory_entries WHERE {where} "
        f"RETURNING row, id, user_id, {codec.content_size_sql}"
    )
    return [
        Change(row, entry_id, "delete", user_id, -size)
        for row, entry_id, user_id, size in fetch(connection, sql, values)
    ]
