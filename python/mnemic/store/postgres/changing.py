"""SQL statements that change and delete entries, in transactions with the agent's lock."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.errors import AmbiguousIdError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.model.written import written
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.duplicates import single
from mnemic.store.eviction import Write
from mnemic.store.filter_sql import Condition
from mnemic.store.postgres.agent_keys import current_key
from mnemic.store.postgres.change_log import log_changes
from mnemic.store.postgres.eviction import evict_entries, remove
from mnemic.store.postgres.reads import matching_rows
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import (
    AMONG,
    ENTRIES,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    in_scope,
    narrowed,
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
from mnemic.store.quota import Quotas
from mnemic.store.row_codec import RowCodec, uuid_of, with_changed
from mnemic.store.values import Model, UpdatedEntries, UpdatedEntry

_ANY: Final[Condition] = ("true", [])
_AT_ONCE: Final = 256
"""Entries that are read together; contents of more could take much memory."""

Vectors = tuple[str, NDArray[np.float32]]


def soft_delete(session: Session, scope: Scope, entry_id: UUID, now: int) -> bool | None:
    """Mark an entry as deleted; return whether it was not marked before, None if there is none."""
    where, values = with_id(scope, entry_id)
    sql = f"SELECT row, user_id, forgotten_at FROM {ENTRIES} WHERE {where}"
    found = single(session.fetch(sql, values), scope, entry_id)
    if found is None:
        return None
    row, user_id, forgotten_at = found
    if forgotten_at is not None:
        return False
    _set(session, scope.agent_id, row, forgotten_at=now)
    log_changes(session, scope.agent_id, [Change(row, entry_id.bytes, "forget", user_id)])
    return True


def _set(session: Session, agent_id: str, row: int, **columns: object) -> None:
    assigned = ", ".join(f"{name} = %s" for name in columns)
    sql = f"UPDATE {ENTRIES} SET {assigned} WHERE agent_id = %s AND row = %s"
    session.run(sql, (*columns.values(), agent_id, row))


def restore(session: Session, scope: Scope, entry_id: UUID, oldest: int, now: int) -> bool:
    """Take a forgotten entry back unless it was forgotten before `oldest` or has expired."""
    where, values = with_id(scope, entry_id)
    sql = (
        f"SELECT row, user_id FROM {ENTRIES} WHERE {where} "
        "AND forgotten_at >= %s AND (expires_at IS NULL OR expires_at > %s)"
    )
    found = single(session.fetch(sql, (*values, oldest, now)), scope, entry_id)
    if found is None:
        return False
    row, user_id = found
    _set(session, scope.agent_id, row, forgotten_at=None)
    log_changes(session, scope.agent_id, [Change(row, entry_id.bytes, "restore", user_id)])
    return True


def set_expiry(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    ids: Sequence[UUID],
    expires_at: int | None,
    *,
    now: int,
) -> int:
    """Set the expiry of active entries; return how many had another one."""
    where, values = visible_in(scope, codec)
    found = session.fetch(
        f"SELECT row, id, user_id, expires_at FROM {ENTRIES} "
        f"WHERE {where} AND id = ANY(%s) AND {IS_ACTIVE} ORDER BY row",
        (*values, list(ids), now),
    )
    _check_unambiguous(scope, [entry_id for _, entry_id, *_ in found])
    changed = [row for row in found if row[3] != expires_at]
    if not changed:
        return 0
    session.run(
        f"UPDATE {ENTRIES} SET expires_at = %s WHERE agent_id = %s AND {AMONG}",
        (expires_at, scope.agent_id, [row for row, *_ in changed]),
    )
    changes = [Change(row, entry_id, "update", user_id) for row, entry_id, user_id, _ in changed]
    log_changes(session, scope.agent_id, changes)
    return len(changed)


def update(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    entry_id: UUID,
    change: Callable[[MemoryEntry], MemoryEntry],
    *,
    vectors: Vectors | None,
    now: int,
    quotas: Quotas,
    include_archived: bool,
    replace_vectors: bool,
) -> MemoryEntry | None:
    """Change a current entry; a new content takes the old vectors away, and brings its own."""
    where, values = with_id(scope, entry_id)
    is_there = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
    where = f"{where} AND {visible(codec)}"
    sql = f"SELECT {STORED_ROW} FROM {ENTRIES} WHERE {where} AND {is_there}"
    found = single(session.fetch(sql, (*values, now)), scope, entry_id)
    if found is None:
        return None
    (changed,) = _changed(session, codec, scope, [found], change)
    done = _write_update(session, codec, changed, vectors, replace_vectors=replace_vectors)
    evicted = evict_entries(session, codec, Write(scope.agent_id, [done.change], quotas, now))
    log_changes(session, scope.agent_id, [done.change, *evicted], done.model, quotas)
    return written(done.entry, [uuid_of(change.entry_id) for change in evicted])


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
    kind: ChangeKind = "replace" if replace_vectors and not changes_content else "update"
    return _EntryUpdate(after, Change(row, after.id.bytes, kind, after.user_id, size), model)


def update_all(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    change: Callable[[MemoryEntry], MemoryEntry],
    *,
    vectors: Vectors | None,
    now: int,
    quotas: Quotas,
    include_archived: bool,
) -> UpdatedEntries:
    """Change the selected entries of a scope; see `update`."""
    state = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
    state = f"{visible(codec)} AND {state}"
    rows = _selected(session, codec, scope, criteria, (state, [now]))
    changes: list[Change] = []
    updated: list[UpdatedEntry] = []
    model = None
    for first in range(0, len(rows), _AT_ONCE):
        sql = f"SELECT {STORED_ROW} FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} ORDER BY row"
        found = session.fetch(sql, (scope.agent_id, rows[first : first + _AT_ONCE]))
        for each in _changed(session, codec, scope, found, change):
            done = _write_update(session, codec, each, vectors)
            changes.append(done.change)
            updated.append(UpdatedEntry(done.entry.id, done.entry.type))
            model = done.model or model
    if not changes:
        return UpdatedEntries([])
    evicted = evict_entries(session, codec, Write(scope.agent_id, changes, quotas, now))
    log_changes(session, scope.agent_id, [*changes, *evicted], model, quotas)
    return UpdatedEntries(updated, [uuid_of(change.entry_id) for change in evicted])


def soft_delete_all(
    session: Session, codec: RowCodec, scope: Scope, criteria: Criteria, now: int
) -> list[UUID]:
    """Mark the selected entries of a scope as forgotten that are not; return their ids."""
    rows = _selected(session, codec, scope, criteria, ("forgotten_at IS NULL", []))
    forgotten = session.fetch(
        f"UPDATE {ENTRIES} SET forgotten_at = %s WHERE agent_id = %s AND {AMONG} "
        "RETURNING row, id, user_id",
        (now, scope.agent_id, rows),
    )
    if forgotten:
        changes = [
            Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in sorted(forgotten)
        ]
        log_changes(session, scope.agent_id, changes)
    return [uuid_of(entry_id) for _, entry_id, _ in sorted(forgotten)]


def delete(session: Session, codec: RowCodec, scope: Scope, entry_id: UUID) -> list[UUID]:
    """Delete an entry, forgotten or not, with its vectors and links; return its id if it was."""
    where, values = with_id(scope, entry_id)
    rows = [row for (row,) in session.fetch(f"SELECT row FROM {ENTRIES} WHERE {where}", values)]
    single(rows, scope, entry_id)
    return _delete(session, codec, scope.agent_id, rows)


def delete_all(session: Session, codec: RowCodec, scope: Scope, criteria: Criteria) -> list[UUID]:
    """Delete the selected entries of a scope, forgotten or not; return their ids."""
    rows = _selected(session, codec, scope, criteria)
    return _delete(session, codec, scope.agent_id, rows)


def purge(
    session: Session, codec: RowCodec, scope: Scope, oldest: int, expired: int | None
) -> list[UUID]:
    """Delete what a scope forgot before `oldest`, and what expired then or by `expired`."""
    where, values = in_scope(scope)
    last = oldest - 1 if expired is None else max(oldest - 1, expired)
    return [
        entry_id
        for moment, latest in (("forgotten_at", oldest - 1), ("expires_at", last))
        for entry_id in _delete(
            session,
            codec,
            scope.agent_id,
            _rows(session, f"{where} AND {moment} <= %s", [*values, latest]),
        )
    ]


def _delete(session: Session, codec: RowCodec, agent_id: str, rows: Sequence[int]) -> list[UUID]:
    changes = remove(session, codec, agent_id, rows)
    if changes:
        log_changes(session, agent_id, changes)
    return [uuid_of(change.entry_id) for change in changes]


def _selected(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition = _ANY,
) -> list[int]:
    """Return the rows of the selected entries of a scope, ascending.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    where, values = in_scope(scope)
    if criteria.ids is not None:
        sql = f"SELECT row, id FROM {ENTRIES} WHERE {where} AND id = ANY(%s)"
        found = session.fetch(sql, (*values, list(criteria.ids)))
        _check_unambiguous(scope, [entry_id for _, entry_id in found])
        where, values = f"{where} AND {AMONG}", [*values, [row for row, _ in found]]
    where, values = f"{where} AND {state[0]}", [*values, *state[1]]
    if criteria.expression is None:
        return _rows(session, where, values)
    sql, bound, is_exact = narrowed(criteria.expression, seals=codec.seals)
    where, values = f"{where} AND {visible(codec)} AND ({sql})", [*values, *bound]
    if is_exact:
        return _rows(session, where, values)
    return matching_rows(session, codec, criteria.expression, (where, values))


def _rows(session: Session, where: str, values: Sequence[Any]) -> list[int]:
    sql = f"SELECT row FROM {ENTRIES} WHERE {where} ORDER BY row"
    return [row for (row,) in session.fetch(sql, values)]


def _check_unambiguous(scope: Scope, ids: Sequence[bytes]) -> None:
    """Check that no id is one of several users' entries."""
    shared = sorted(entry_id for entry_id, count in Counter(ids).items() if count > 1)
    if shared:
        raise AmbiguousIdError(
            f"several users of agent {scope.agent_id!r} have a memory with id "
            f"{uuid_of(shared[0])}; name the user_id in place of all_users=True"
        )
