"""The changes of entries in the SQLite store."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from mnemic.arrays import Float32Array
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.model.written import written
from mnemic.protocols import UserLimit
from mnemic.store.added import vectors_of
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.duplicates import single
from mnemic.store.eviction import Write
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits, Quotas
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    RowCodec,
    changed_columns,
    encoded_row,
    with_changed,
)
from mnemic.store.sql.sealing import current_key
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.change_log import log_changes
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    check,
    check_vectors,
    entries_of,
)
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.eviction import evict_entries
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import fetch_checked, write_vectors
from mnemic.store.sqlite.selected_rows import selected
from mnemic.store.sqlite.shadow_vectors import IS_OWN
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    CHANGEABLE,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    SEALED,
    Columns,
    fetch,
    integers,
    json_array,
    with_id,
)
from mnemic.store.values import Model, UpdatedEntries, UpdatedEntry

_CONTENT = COLUMN_NAMES.index("content")
_SET_EXPIRY = "UPDATE agent_memory_entries SET expires_at = ? WHERE row = ?"

_AT_ONCE = 256
"""Entries that are read together; contents of more could take much memory."""

_ENTRIES = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
    f"WHERE agent_id = ? AND {AMONG} ORDER BY row"
)

_DELETE_VECTORS = "DELETE FROM agent_memory_embeddings WHERE entry_row = ?"
_DELETE_OWN_VECTORS = f"{_DELETE_VECTORS} AND {IS_OWN}"
_OWN_VECTORS = (
    "SELECT model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row = ? AND {IS_OWN} ORDER BY model, part"
)


class SqliteUpdates(SqliteFile):
    """Changes entries; see `Store` and `BulkWrites`."""

    def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, Float32Array] | None = None,
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
        vectors, quotas = vectors_of(embedded), Quotas(quota, user_quota, entry_limits)
        where, values = with_id(scope, entry_id)
        is_there = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
        where = f"{where} AND {codec.is_visible_sql} AND {is_there}"
        sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where}"

        def work(on: GuardedConnection) -> MemoryEntry | None:
            found = single(fetch_checked(on, sql, (*values, time)), scope, entry_id)
            if found is None:
                return None
            changed = _write_update(
                on, codec, found, change, vectors, replace_vectors=replace_vectors
            )
            evicted = evict_entries(on, codec, Write(agent_id, [changed.change], quotas, time))
            log_changes(on, agent_id, [changed.change, *evicted], changed.model, quotas)
            return written(changed.entry, uuids_of(change.entry_id for change in evicted))

        self._connections.check_writable()
        codec.prepare(agent_id)
        return self._write_with_eviction(entry_limits, work)

    def update_all(
        self,
        scope: Scope,
        criteria: Criteria,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, Float32Array] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
    ) -> Future[UpdatedEntries]:
        """Change the selected entries of a scope, all or none; return those changed."""
        codec, agent_id, time = self._codec, scope.agent_id, to_microseconds(now)
        vectors, quotas = vectors_of(embedded), Quotas(quota, user_quota, entry_limits)
        state = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
        state = f"{codec.is_visible_sql} AND {state}"

        def work(on: GuardedConnection) -> UpdatedEntries:
            changes: list[Change] = []
            updated: list[UpdatedEntry] = []
            model = None
            for found in _selected_entries(
                on, scope, selected(on, codec, scope, criteria, (state, [time]))
            ):
                done = _write_update(on, codec, found, change, vectors)
                changes.append(done.change)
                updated.append(UpdatedEntry(done.entry.id, done.entry.type))
                model = done.model or model
            if not changes:
                return UpdatedEntries([])
            evicted = evict_entries(on, codec, Write(agent_id, changes, quotas, time))
            log_changes(on, agent_id, [*changes, *evicted], model, quotas)
            return UpdatedEntries(updated, uuids_of(change.entry_id for change in evicted))

        codec.prepare(agent_id)
        return self._write_with_eviction(entry_limits, work)

    def set_expiry(
        self, scope: Scope, ids: Sequence[UUID], expires_at: datetime | None, *, now: datetime
    ) -> Future[int]:
        """Set the expiry of the active entries with these ids; return the number of changes."""
        expiry = None if expires_at is None else to_microseconds(expires_at)
        time = to_microseconds(now)

        def work(on: GuardedConnection) -> int:
            found = [
                row
                for entry_id in dict.fromkeys(ids)
                if (row := _with_expiry(on, self._codec, scope, entry_id, time)) is not None
                and row[3] != expiry
            ]
            if not found:
                return 0
            on.executemany(_SET_EXPIRY, [(expiry, row) for row, *_ in found])
            changes = [
                Change(row, entry_id, "update", user_id) for row, entry_id, user_id, _ in found
            ]
            log_changes(on, scope.agent_id, changes)
            return len(found)

        return self._write(scope.agent_id, work)


def _selected_entries(
    connection: GuardedConnection, scope: Scope, which: Condition
) -> Iterator[Columns]:
    """Yield entries whole, by row; which ones is decided before the first is yielded."""
    sql = f"SELECT row FROM agent_memory_entries WHERE {which[0]} ORDER BY row"
    rows = integers([row for (row,) in fetch(connection, sql, which[1])])
    for first in range(0, len(rows), _AT_ONCE):
        part = json_array(rows[first : first + _AT_ONCE])
        yield from fetch_checked(connection, _ENTRIES, (scope.agent_id, part))


def _with_expiry(
    connection: GuardedConnection, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> Columns | None:
    """Return row, id, user and expiry of an active entry."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {codec.is_visible_sql} AND {IS_ACTIVE}"
    sql = f"SELECT row, id, user_id, expires_at FROM agent_memory_entries WHERE {where}"
    return single(fetch(connection, sql, (*values, now)), scope, entry_id)


class _EntryUpdate(NamedTuple):
    """An updated entry, to be logged.

    Attributes:
        entry: The entry after the update.
        change: For the change log.
        model: Model of its new vectors; None if it got none.
    """

    entry: MemoryEntry
    change: Change
    model: Model | None


def _write_update(
    connection: GuardedConnection,
    codec: RowCodec,
    found: Columns,
    change: Callable[[MemoryEntry], MemoryEntry],
    vectors: tuple[Model, Sequence[bytes]] | None,
    *,
    replace_vectors: bool = False,
) -> _EntryUpdate:
    """Write the changed state of a row that was read whole; new vectors with a new content.

    With `replace_vectors` the vectors change without the content too: an index must forget the row
    first then.
    """
    row, (before,) = found[0], entries_of(codec, [found])
    after = with_changed(before, change(before))
    is_sealed_now = after.is_encrypted and not before.is_encrypted
    added_size = write_changed(connection, codec, found, after)
    model = None
    changes_content = after.content != before.content
    if changes_content or replace_vectors:
        model = None if vectors is None else vectors[0]
        # Shadow vectors go with the content alone.
        delete = _DELETE_VECTORS if changes_content else _DELETE_OWN_VECTORS
        _replace_vectors(connection, codec, (row, after), vectors, delete)
    elif is_sealed_now:
        _seal_vectors(connection, codec, found, after)
    kind: ChangeKind = "replace" if replace_vectors else "update"
    logged = Change(row, after.id.bytes, kind, after.user_id, added_size)
    return _EntryUpdate(after, logged, model)


def _replace_vectors(
    connection: GuardedConnection,
    codec: RowCodec,
    changed: tuple[int, MemoryEntry],
    vectors: tuple[Model, Sequence[bytes]] | None,
    delete: str,
) -> None:
    """Write the vectors of a row's entry, after a statement has deleted others."""
    row, entry = changed
    connection.execute(delete, (row,))
    if vectors is not None:
        (name, _), plain = vectors
        blobs = [codec.seal_vector(entry, name, part, blob) for part, blob in enumerate(plain)]
        changed_at = to_microseconds(entry.updated_at)
        values = [(row, name, part, changed_at, blob) for part, blob in enumerate(blobs)]
        write_vectors(connection, values)


def _seal_vectors(
    connection: GuardedConnection, codec: RowCodec, found: Columns, entry: MemoryEntry
) -> None:
    """Seal the vectors of a row that was not sealed; shadow vectors are deleted."""
    own = fetch(connection, _OWN_VECTORS, (found[0],))
    plain = None
    if own:
        model = own[0][0]
        check_vectors(model, [(found[0], blob) for _, blob in own], check([found]).vectors)
        plain = (model, 0), [blob for _, blob in own]
    _replace_vectors(connection, codec, (found[0], entry), plain, _DELETE_VECTORS)


def write_changed(
    connection: GuardedConnection, codec: RowCodec, row: Columns, entry: MemoryEntry
) -> int:
    """Write another state of a row that was read whole; return the bytes that it adds."""
    old = encoded_row(row)
    if entry.is_encrypted:
        current_key(connection, codec, entry.agent_id)
    (new,) = codec.rows([(entry, codec.used_key(old))])
    if entry.is_encrypted:
        statement, values = SEALED, (*new.columns, *new.more)
    else:
        statement, values = CHANGEABLE, (*changed_columns(new.columns), new.more[0])
    connection.execute(
        f"UPDATE agent_memory_entries SET {statement} WHERE agent_id = ? AND row = ?",
        (*values, entry.agent_id, row[0]),
    )
    size = codec.stored_content_size
    return size(new.columns[_CONTENT]) - size(old.columns[_CONTENT])
