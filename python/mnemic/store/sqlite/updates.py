"""SQL statements that change entries; each runs in a transaction."""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

import apsw

from mnemic._core import vector_sums
from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.model.written import written
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.duplicates import single
from mnemic.store.eviction import Write
from mnemic.store.quota import Quotas
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    RowCodec,
    changed_columns,
    with_changed,
)
from mnemic.store.sqlite.agent_keys import current_key
from mnemic.store.sqlite.change_log import Charge, log_changes
from mnemic.store.sqlite.checksums import (
    ADD_TO_ROW,
    CHECKED_COLUMNS,
    SET_VECTOR_SUM,
    Sums,
    add_missing_sums,
    check,
    check_vectors,
    column_change,
    difference,
    encoded_row,
    entries_of,
    rewritten,
    rows_with_sums,
)
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.eviction import evict_entries
from mnemic.store.sqlite.shadow_vectors import IS_OWN
from mnemic.store.sqlite.sql import (
    CHANGEABLE,
    INSERT_VECTOR,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    SEALED,
    Columns,
    execute_all,
    fetch,
    with_id,
)
from mnemic.store.values import Model

_CONTENT = COLUMN_NAMES.index("content")
_SET_EXPIRY = f"UPDATE agent_memory_entries SET expires_at = ?, {ADD_TO_ROW} WHERE row = ?"

_DELETE_VECTORS = "DELETE FROM agent_memory_embeddings WHERE entry_row = ?"
_DELETE_OWN_VECTORS = f"{_DELETE_VECTORS} AND {IS_OWN}"
_OWN_VECTORS = (
    "SELECT model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row = ? AND {IS_OWN} ORDER BY model, part"
)


def update(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    entry_id: UUID,
    change: Callable[[MemoryEntry], MemoryEntry],
    *,
    vectors: tuple[Model, Sequence[bytes]] | None,
    now: int,
    quotas: Quotas,
    include_archived: bool,
    replace_vectors: bool,
) -> MemoryEntry | None:
    """Change a current entry; a new content takes the old vectors away, and brings its own."""
    where, values = with_id(scope, entry_id)
    is_there = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
    is_there = f"{codec.is_visible_sql} AND {is_there}"
    sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where} AND {is_there}"
    found = single(fetch(connection, sql, (*values, now)), scope, entry_id)
    if found is None:
        return None
    changed = write_update(
        connection, codec, found, change, vectors, replace_vectors=replace_vectors
    )
    evicted = evict_entries(connection, codec, Write(scope.agent_id, [changed.change], quotas, now))
    charge = Charge(quotas, changed.sums.plus(evicted.sums))
    logged = [changed.change, *evicted.changes]
    log_changes(connection, scope.agent_id, logged, changed.model, charge)
    return written(changed.entry, uuids_of(change.entry_id for change in evicted.changes))


def set_expiry(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    ids: Sequence[UUID],
    expires_at: int | None,
    *,
    now: int,
) -> int:
    """Set the expiry of active entries; return how many had another one."""
    found = [
        row
        for entry_id in dict.fromkeys(ids)
        if (row := _with_expiry(connection, codec, scope, entry_id, now)) is not None
        and row[3] != expires_at
    ]
    if not found:
        return 0
    rows = [row for row, *_ in found]
    before = rows_with_sums(connection, rows)
    connection.executemany(
        _SET_EXPIRY,
        [(expires_at, column_change("expires_at", old, expires_at), row) for row, *_, old in found],
    )
    sums = difference(before, rows_with_sums(connection, rows))
    changes = [Change(row, entry_id, "update", user_id) for row, entry_id, user_id, _ in found]
    log_changes(connection, scope.agent_id, changes, charge=Charge(sums=sums))
    return len(found)


def _with_expiry(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> Columns | None:
    """Return row, id, user and expiry of an active entry."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {codec.is_visible_sql} AND {IS_ACTIVE}"
    sql = f"SELECT row, id, user_id, expires_at FROM agent_memory_entries WHERE {where}"
    return single(fetch(connection, sql, (*values, now)), scope, entry_id)


class EntryUpdate(NamedTuple):
    """An updated entry, to be logged.

    Attributes:
        entry: The entry after the update.
        change: For the change log.
        model: Model of its new vectors; None if it got none.
        sums: Change of the agent's sums.
    """

    entry: MemoryEntry
    change: Change
    model: Model | None
    sums: Sums


def write_update(
    connection: apsw.Connection,
    codec: RowCodec,
    found: Columns,
    change: Callable[[MemoryEntry], MemoryEntry],
    vectors: tuple[Model, Sequence[bytes]] | None,
    *,
    replace_vectors: bool = False,
) -> EntryUpdate:
    """Write the changed state of a row that was read whole; new vectors with a new content.

    With `replace_vectors` the vectors change without the content too: an index must forget the row
    first then.
    """
    row, (before,) = found[0], entries_of(codec, [found])
    after = with_changed(before, change(before))
    is_sealed_now = after.is_encrypted and not before.is_encrypted
    sums, added_size = write_changed(connection, codec, found, after)
    model = None
    changes_content = after.content != before.content
    if changes_content or replace_vectors:
        model = None if vectors is None else vectors[0]
        # Shadow vectors go with the content alone.
        delete = _DELETE_VECTORS if changes_content else _DELETE_OWN_VECTORS
        sums = sums.plus(_replace_vectors(connection, codec, (row, after), vectors, delete))
    elif is_sealed_now:
        sums = sums.plus(_seal_vectors(connection, codec, found, after))
    sums = sums.plus(add_missing_sums(connection, [row]))  # where it comes from an earlier version
    kind: ChangeKind = "replace" if replace_vectors and not changes_content else "update"
    logged = Change(row, after.id.bytes, kind, after.user_id, added_size)
    return EntryUpdate(after, logged, model, sums)


def _replace_vectors(
    connection: apsw.Connection,
    codec: RowCodec,
    changed: tuple[int, MemoryEntry],
    vectors: tuple[Model, Sequence[bytes]] | None,
    delete: str,
) -> Sums:
    """Write the vectors of a row's entry, after a statement has deleted others.

    Returns:
        What that adds to the agent's sums.
    """
    row, entry = changed
    before = rows_with_sums(connection, [row])
    connection.execute(delete, (row,))
    of_vectors = None
    if vectors is not None:
        (name, _), plain = vectors
        blobs = [codec.seal_vector(entry, name, part, blob) for part, blob in enumerate(plain)]
        changed_at = to_microseconds(entry.updated_at)
        values = [(row, name, part, changed_at, blob) for part, blob in enumerate(blobs)]
        execute_all(connection, INSERT_VECTOR, values)
        of_vectors = vector_sums(name, [blobs])[0]
    connection.execute(SET_VECTOR_SUM, (of_vectors, row))
    return difference(before, rows_with_sums(connection, [row]))


def _seal_vectors(
    connection: apsw.Connection, codec: RowCodec, found: Columns, entry: MemoryEntry
) -> Sums:
    """Seal the vectors of a row that was not sealed; shadow vectors are deleted."""
    own = fetch(connection, _OWN_VECTORS, (found[0],))
    plain = None
    if own:
        model = own[0][0]
        check_vectors(model, [(found[0], blob) for _, blob in own], check([found]).vectors)
        plain = (model, 0), [blob for _, blob in own]
    return _replace_vectors(connection, codec, (found[0], entry), plain, _DELETE_VECTORS)


class UsageDelta(NamedTuple):
    """What the write of another state adds to the agent's sums, and to the bytes of contents."""

    sums: Sums
    size: int


def write_changed(
    connection: apsw.Connection, codec: RowCodec, row: Columns, entry: MemoryEntry
) -> UsageDelta:
    """Write another state of a row that was read whole."""
    before = rows_with_sums(connection, [row[0]])
    old = encoded_row(row)
    if entry.is_encrypted:
        current_key(connection, codec, entry.agent_id)
    (new,) = codec.rows([(entry, codec.used_key(old))])
    if entry.is_encrypted:
        statement, values = SEALED, (*new.columns, *new.more)
    else:
        statement, values = CHANGEABLE, (*changed_columns(new.columns), new.more[0])
    connection.execute(
        f"UPDATE agent_memory_entries SET {statement}, row_sum = ? WHERE agent_id = ? AND row = ?",
        (*values, rewritten(row, new), entry.agent_id, row[0]),
    )
    sums = difference(before, rows_with_sums(connection, [row[0]]))
    size = codec.stored_content_size
    return UsageDelta(sums, size(new.columns[_CONTENT]) - size(old.columns[_CONTENT]))
