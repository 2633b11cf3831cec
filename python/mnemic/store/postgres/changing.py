"""The changes and deletions of entries in the PostgreSQL store."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.model.written import written
from mnemic.protocols import UserLimit
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.duplicates import check_unambiguous, single
from mnemic.store.eviction import Write
from mnemic.store.postgres.change_log import log_changes
from mnemic.store.postgres.eviction import evict_entries, remove
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.selected_rows import rows_where, selected
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import (
    AMONG,
    ENTRIES,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    in_scope,
    visible,
    visible_in,
    with_id,
)
from mnemic.store.postgres.stored import entries_of
from mnemic.store.postgres.vectors import (
    NewVectors,
    as_stored,
    delete_own_vectors,
    delete_shadow_vectors,
    seal_vectors,
    upsert_vectors,
)
from mnemic.store.postgres.writes import STORED_ROW, write_changed
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits, Quotas
from mnemic.store.row_codec import RowCodec, uuid_of, with_changed
from mnemic.store.sql.sealing import current_key
from mnemic.store.values import Model, UpdatedEntries, UpdatedEntry

_AT_ONCE: Final = 256
"""Entries that are read together; contents of more could take much memory."""

Vectors = tuple[str, NDArray[np.float32]]
Result = TypeVar("Result")


class PostgresChanges(OpenedDatabase):
    """Changes and deletes entries; see `Store` and `BulkWrites`."""

    def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> Future[bool | None]:
        """Mark an entry as deleted; see `Store.soft_delete`."""
        where, values = with_id(scope, entry_id)
        sql = f"SELECT row, user_id, forgotten_at FROM {ENTRIES} WHERE {where}"
        time = to_microseconds(now)

        def work(on: Session) -> bool | None:
            found = single(on.fetch(sql, values), scope, entry_id)
            if found is None:
                return None
            row, user_id, forgotten_at = found
            if forgotten_at is not None:
                return False
            _set(on, scope.agent_id, row, forgotten_at=time)
            log_changes(on, scope.agent_id, [Change(row, entry_id.bytes, "forget", user_id)])
            return True

        return self._write(scope.agent_id, work)

    def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> Future[bool]:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        where, values = with_id(scope, entry_id)
        sql = (
            f"SELECT row, user_id FROM {ENTRIES} WHERE {where} "
            "AND forgotten_at >= %s AND (expires_at IS NULL OR expires_at > %s)"
        )
        times = to_microseconds(oldest), to_microseconds(now)

        def work(on: Session) -> bool:
            found = single(on.fetch(sql, (*values, *times)), scope, entry_id)
            if found is None:
                return False
            row, user_id = found
            _set(on, scope.agent_id, row, forgotten_at=None)
            log_changes(on, scope.agent_id, [Change(row, entry_id.bytes, "restore", user_id)])
            return True

        return self._write(scope.agent_id, work)

    def delete(self, scope: Scope, entry_id: UUID) -> Future[list[UUID]]:
        """Delete an entry permanently, marked as deleted or not; return its id."""
        where, values = with_id(scope, entry_id)

        def work(on: Session) -> list[UUID]:
            rows = rows_where(on, where, values)
            single(rows, scope, entry_id)
            return _delete(on, self._codec, scope.agent_id, rows)

        return self._write(scope.agent_id, work)

    def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
        replace_vectors: bool = False,
    ) -> Future[MemoryEntry | None]:
        """Change an entry; return its new state, or None if the scope has no such entry."""
        codec, agent_id, time = self._codec, scope.agent_id, to_microseconds(now)
        quotas = Quotas(quota, user_quota, entry_limits)
        where, values = with_id(scope, entry_id)
        is_there = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
        where = f"{where} AND {visible(codec)} AND {is_there}"
        sql = f"SELECT {STORED_ROW} FROM {ENTRIES} WHERE {where}"

        def work(on: Session) -> MemoryEntry | None:
            found = single(on.fetch(sql, (*values, time)), scope, entry_id)
            if found is None:
                return None
            (changed,) = _changed(on, codec, scope, [found], change)
            done = _write_update(on, codec, changed, embedded, replace_vectors=replace_vectors)
            evicted = evict_entries(on, codec, Write(agent_id, [done.change], quotas, time))
            log_changes(on, agent_id, [done.change, *evicted], done.model, quotas)
            return written(done.entry, [uuid_of(change.entry_id) for change in evicted])

        return self._write_with_eviction(agent_id, entry_limits, work)

    def update_all(
        self,
        scope: Scope,
        criteria: Criteria,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
    ) -> Future[UpdatedEntries]:
        """Change the selected entries of a scope, all or none; return those changed."""
        codec, agent_id, time = self._codec, scope.agent_id, to_microseconds(now)
        quotas = Quotas(quota, user_quota, entry_limits)
        state = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
        state = f"{visible(codec)} AND {state}"
        sql = f"SELECT {STORED_ROW} FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} ORDER BY row"

        def work(on: Session) -> UpdatedEntries:
            rows = selected(on, codec, scope, criteria, (state, [time]))
            changes: list[Change] = []
            updated: list[UpdatedEntry] = []
            model = None
            for first in range(0, len(rows), _AT_ONCE):
                found = on.fetch(sql, (agent_id, rows[first : first + _AT_ONCE]))
                for each in _changed(on, codec, scope, found, change):
                    done = _write_update(on, codec, each, embedded)
                    changes.append(done.change)
                    updated.append(UpdatedEntry(done.entry.id, done.entry.type))
                    model = done.model or model
            if not changes:
                return UpdatedEntries([])
            evicted = evict_entries(on, codec, Write(agent_id, changes, quotas, time))
            log_changes(on, agent_id, [*changes, *evicted], model, quotas)
            return UpdatedEntries(updated, [uuid_of(change.entry_id) for change in evicted])

        return self._write_with_eviction(agent_id, entry_limits, work)

    def _write_with_eviction(
        self, agent_id: str, entry_limits: EntryLimits, work: Callable[[Session], Result]
    ) -> Future[Result]:
        """Hand in an update; after pending accesses if what it deletes depends on them."""
        self._writable()
        self._codec.prepare(agent_id)
        if entry_limits.evicts:
            self._write_pending_accesses(agent_id)
        return self._write(agent_id, work)

    def set_expiry(
        self, scope: Scope, ids: Sequence[UUID], expires_at: datetime | None, *, now: datetime
    ) -> Future[int]:
        """Set the expiry of the active entries with these ids; return the number of changes."""
        expiry = None if expires_at is None else to_microseconds(expires_at)
        where, values = visible_in(scope, self._codec)
        sql = (
            f"SELECT row, id, user_id, expires_at FROM {ENTRIES} "
            f"WHERE {where} AND id = ANY(%s) AND {IS_ACTIVE} ORDER BY row"
        )
        bound = (*values, list(ids), to_microseconds(now))

        def work(on: Session) -> int:
            found = on.fetch(sql, bound)
            check_unambiguous(scope, [entry_id for _, entry_id, *_ in found])
            changed = [row for row in found if row[3] != expiry]
            if not changed:
                return 0
            on.run(
                f"UPDATE {ENTRIES} SET expires_at = %s WHERE agent_id = %s AND {AMONG}",
                (expiry, scope.agent_id, [row for row, *_ in changed]),
            )
            changes = [
                Change(row, entry_id, "update", user_id) for row, entry_id, user_id, _ in changed
            ]
            log_changes(on, scope.agent_id, changes)
            return len(changed)

        return self._write(scope.agent_id, work)

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
        time = to_microseconds(now)
        sql = (
            f"UPDATE {ENTRIES} SET forgotten_at = %s WHERE agent_id = %s AND {AMONG} "
            "RETURNING row, id, user_id"
        )

        def work(on: Session) -> list[UUID]:
            rows = selected(on, self._codec, scope, criteria, ("forgotten_at IS NULL", []))
            forgotten = sorted(on.fetch(sql, (time, scope.agent_id, rows)))
            if forgotten:
                changes = [
                    Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in forgotten
                ]
                log_changes(on, scope.agent_id, changes)
            return [uuid_of(entry_id) for _, entry_id, _ in forgotten]

        return self._write(scope.agent_id, work)

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently; return their ids."""
        return self._write(scope.agent_id, lambda on: delete_all(on, self._codec, scope, criteria))

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        where, values = in_scope(scope)
        last = to_microseconds(oldest) - 1
        latest = last if expired is None else max(last, to_microseconds(expired))

        def work(on: Session) -> list[UUID]:
            deleted: list[UUID] = []
            for moment, bound in (("forgotten_at", last), ("expires_at", latest)):
                rows = rows_where(on, f"{where} AND {moment} <= %s", [*values, bound])
                deleted += _delete(on, self._codec, scope.agent_id, rows)
            return deleted

        return self._write(scope.agent_id, work)


def _set(session: Session, agent_id: str, row: int, **columns: object) -> None:
    assigned = ", ".join(f"{name} = %s" for name in columns)
    sql = f"UPDATE {ENTRIES} SET {assigned} WHERE agent_id = %s AND row = %s"
    session.run(sql, (*columns.values(), agent_id, row))


class _ChangedRow(NamedTuple):
    """A row with all of `STORED_ROW`, and its entry before and after a change."""

    stored: Columns
    before: MemoryEntry
    after: MemoryEntry


def _changed(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    found: Sequence[Columns],
    change: Callable[[MemoryEntry], MemoryEntry],
) -> list[_ChangedRow]:
    """Return rows changed, which may be written then."""
    entries = entries_of(codec, found, scope)
    changed = [
        _ChangedRow(stored, before, with_changed(before, change(before)))
        for stored, before in zip(found, entries, strict=True)
    ]
    if any(after.is_encrypted for *_, after in changed):
        current_key(session, codec, scope.agent_id)
    return changed


class _EntryUpdate(NamedTuple):
    """An updated entry, its change to log, and the model of its new vectors."""

    entry: MemoryEntry
    change: Change
    model: Model | None


def _write_update(
    session: Session,
    codec: RowCodec,
    changed: _ChangedRow,
    vectors: Vectors | None,
    *,
    replace_vectors: bool = False,
) -> _EntryUpdate:
    (row, *_), before, after = changed
    size = write_changed(session, codec, changed.stored, after)
    model = None
    changes_content = after.content != before.content
    if changes_content or replace_vectors:
        delete_own_vectors(session, after.agent_id, row, is_sealed=before.is_encrypted)
        if changes_content or after.hides_content:
            # Shadow vectors go with the content alone, or with what may be seen of it.
            delete_shadow_vectors(session, after.agent_id, row)
        if vectors is not None:
            name, parts = vectors
            model = name, parts.shape[1]
            time = to_microseconds(after.updated_at)
            new = NewVectors(row, time, as_stored(codec, after, name, parts))
            upsert_vectors(session, after.agent_id, model, [new])
    elif after.is_encrypted and not before.is_encrypted:
        seal_vectors(session, codec, row, after)
    kind: ChangeKind = "replace" if replace_vectors else "update"
    return _EntryUpdate(after, Change(row, after.id.bytes, kind, after.user_id, size), model)


def delete_all(session: Session, codec: RowCodec, scope: Scope, criteria: Criteria) -> list[UUID]:
    """Delete the selected entries of a scope, forgotten or not; return their ids."""
    rows = selected(session, codec, scope, criteria)
    return _delete(session, codec, scope.agent_id, rows)


def _delete(session: Session, codec: RowCodec, agent_id: str, rows: Sequence[int]) -> list[UUID]:
    changes = remove(session, codec, agent_id, rows)
    if changes:
        log_changes(session, agent_id, changes)
    return [uuid_of(change.entry_id) for change in changes]
