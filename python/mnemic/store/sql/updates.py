"""The changes of entries in the stores in SQL."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.eviction import Write
from mnemic.store.new_rows import new_vectors
from mnemic.store.operations import SetExpiry, Update
from mnemic.store.row_codec import (
    CHANGED_NAMES,
    COLUMN_NAMES,
    RowCodec,
    changed_columns,
    encoded_row,
    with_changed,
)
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import (
    ENTRIES,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    assigned,
    visible,
)
from mnemic.store.sql.deletes import SqlEviction, ids_of
from mnemic.store.sql.lists import Rows, numbers_of, of_rows, selected, set_column
from mnemic.store.sql.replacing import WRITTEN
from mnemic.store.sql.sealing import current_key
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.values import Model, UpdatedEntries, UpdatedEntry

_AT_ONCE: Final = 256
"""Entries that are read together; contents of more could take much memory."""

_MORE: Final = ("fingerprint", "idempotency_key", "key_fingerprint")
_CONTENT: Final = COLUMN_NAMES.index("content")

_CHANGED: Final = (*CHANGED_NAMES, "fingerprint")
_CHANGE, _SEAL = (
    f"UPDATE {ENTRIES} SET {assigned(names)} WHERE agent_id = ? AND row = ?"
    for names in (_CHANGED, WRITTEN)
)


def update(on: SqlSession, codec: RowCodec, wanted: Update) -> UpdatedEntries:
    """Change the selected entries of a scope, all or none; return those changed."""
    scope, time = wanted.scope, to_microseconds(wanted.now)
    state = IS_NOT_SUPERSEDED if wanted.include_archived else IS_ACTIVE
    is_there = f"{visible(codec)} AND {state}", [time]
    which = selected(on, codec, scope, wanted.criteria, is_there)
    changes: list[Change] = []
    updated: list[UpdatedEntry] = []
    last = model = None
    for found in _in_parts(on, wanted, which):
        for each in _changed(on, codec, scope, found, wanted.change):
            last, change, new_model = _write_update(on, codec, each, wanted)
            changes.append(change)
            updated.append(UpdatedEntry(last.id, last.type))
            model = new_model or model
    if not changes:
        return UpdatedEntries()
    evicted = _logged(on, codec, Write(scope.agent_id, changes, wanted.quotas, time), model)
    return UpdatedEntries(updated, last, evicted)


def set_expiry(on: SqlSession, codec: RowCodec, wanted: SetExpiry) -> int:
    """Set the expiry of the selected active entries; return the number of changes."""
    expiry = None if wanted.expires_at is None else to_microseconds(wanted.expires_at)
    is_other = f"{visible(codec)} AND {IS_ACTIVE} AND expires_at IS DISTINCT FROM ?"
    state = is_other, [to_microseconds(wanted.now), expiry]
    which = selected(on, codec, wanted.scope, wanted.criteria, state)
    found = set_column(on, which, "expires_at", expiry)
    changes = [Change(row, entry_id, "update", user_id) for row, entry_id, user_id in found]
    if changes:
        log_changes(on, wanted.agent_id, changes)
    return len(changes)


def _in_parts(on: SqlSession, wanted: Update, which: Rows) -> Iterator[list[Columns]]:
    """Yield entries whole, by row."""
    ids = wanted.criteria.ids
    if ids is not None and len(ids) <= _AT_ONCE:
        yield _whole(on, which)
        return
    rows = numbers_of(on, which)
    for first in range(0, len(rows), _AT_ONCE):
        yield _whole(on, of_rows(on.dialect, wanted.agent_id, rows[first : first + _AT_ONCE]))


def _whole(on: SqlSession, which: Rows) -> list[Columns]:
    where, values, hint = which
    sql = f"SELECT {on.dialect.keyed_row} FROM {ENTRIES} {hint} WHERE {where} ORDER BY row"
    return on.fetch_checked(sql, values)


class _ChangedRow(NamedTuple):
    """A row with all of `Dialect.keyed_row`, and its entry before and after a change."""

    stored: Columns
    before: MemoryEntry
    after: MemoryEntry


def _changed(
    on: SqlSession,
    codec: RowCodec,
    scope: Scope,
    found: Sequence[Columns],
    change: Callable[[MemoryEntry], MemoryEntry],
) -> list[_ChangedRow]:
    """Return rows changed, which may be written then."""
    changed = [
        _ChangedRow(stored, before, with_changed(before, change(before)))
        for stored, before in zip(found, on.dialect.entries(codec, found, scope), strict=True)
    ]
    if any(after.is_encrypted for *_, after in changed):
        current_key(on, codec, scope.agent_id)
    return changed


class _EntryUpdate(NamedTuple):
    """An updated entry, its change to log, and the model of its new vectors."""

    entry: MemoryEntry
    change: Change
    model: Model | None


def _write_update(
    on: SqlSession, codec: RowCodec, changed: _ChangedRow, wanted: Update
) -> _EntryUpdate:
    """Write the changed state of a row; new vectors with a new content.

    Where the vectors change without the content too, an index must forget the row first.
    """
    stored, before, after = changed
    size = _write_changed(on, codec, stored, after)
    model = None
    changes_content = after.content != before.content
    if changes_content or wanted.replace_vectors:
        # Shadow vectors go with the content alone, or with what may be seen of it.
        drops_shadows = changes_content or after.hides_content
        on.dialect.delete_vectors(on, after.agent_id, stored)
        if drops_shadows:
            on.dialect.delete_shadow_vectors(on, after.agent_id, stored)
        if wanted.embedded is not None:
            model = _write_vectors(on, codec, stored[0], after, wanted.embedded)
    elif after.is_encrypted and not before.is_encrypted:
        on.dialect.seal_vectors(on, codec, stored, after)
    kind: ChangeKind = "replace" if wanted.replace_vectors else "update"
    return _EntryUpdate(after, Change(stored[0], after.id.bytes, kind, after.user_id, size), model)


def _write_vectors(
    on: SqlSession,
    codec: RowCodec,
    row: int,
    entry: MemoryEntry,
    embedded: tuple[str, Float32Array],
) -> Model:
    """Store the new vectors of a row that has none of their model; return that."""
    name, vectors = embedded
    model = name, vectors.shape[1]
    new = new_vectors(codec, row, entry, name, vectors)
    on.dialect.insert_vectors(on, entry.agent_id, model, [new])
    return model


def _logged(on: SqlSession, codec: RowCodec, write: Write, model: Model | None) -> list[UUID]:
    """Log updates, and what is deleted to keep to the quotas; return the ids of the latter."""
    evicted = SqlEviction(on, codec, write).changes()
    changes = [*write.changes, *evicted]
    log_changes(on, write.agent_id, changes, model, write.quotas)
    return ids_of(on, evicted)


def _write_changed(on: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry) -> int:
    """Write another state of a row; return the bytes that it adds.

    Args:
        on: In the transaction.
        codec: Codec of the entries; a sealed one needs the current key.
        row: The row, the columns of `Dialect.keyed_row`.
        entry: Its new state.
    """
    old = encoded_row(row)
    (new,) = codec.rows([(entry, codec.used_key(old))])
    dialect = on.dialect
    if entry.is_encrypted:  # what an update leaves as it is was in plain text, or is sealed too
        named = dict(zip(COLUMN_NAMES, dialect.bound(new.columns, COLUMN_NAMES), strict=True))
        named.update(zip(_MORE, new.more, strict=True))
        sql, values = _SEAL, tuple(named[name] for name in WRITTEN)
    else:
        columns = dialect.bound(changed_columns(new.columns), CHANGED_NAMES)
        sql, values = _CHANGE, (*columns, new.more[0])
    on.run(sql, (*values, entry.agent_id, row[0]))
    size = codec.stored_content_size
    return size(new.columns[_CONTENT]) - size(old.columns[_CONTENT])


def write_merged(on: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry) -> int:
    """Write another state of a row, sealed under the current key; return the bytes it adds."""
    if entry.is_encrypted:
        current_key(on, codec, entry.agent_id)
    return _write_changed(on, codec, row, entry)
