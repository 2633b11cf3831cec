"""SQL statements that change entries; each runs in a transaction."""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

import apsw

from mnemic._core import vector_sums
from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.quota import Quotas
from mnemic.store.row_codec import RowCodec, changed_columns, with_changed
from mnemic.store.sqlite.change_log import Charge, log_changes
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    SET_VECTOR_SUM,
    Sums,
    add_missing_sums,
    difference,
    entries_of,
    rewritten,
    rows_with_sums,
)
from mnemic.store.sqlite.sql import (
    CHANGEABLE,
    INSERT_VECTOR,
    IS_ACTIVE,
    IS_NOT_SUPERSEDED,
    Columns,
    execute_all,
    fetch,
    single,
    with_id,
)
from mnemic.store.values import Model


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
) -> MemoryEntry | None:
    """Change a living entry; a new content takes the old vectors away, and brings its own."""
    where, values = with_id(scope, entry_id)
    is_there = IS_NOT_SUPERSEDED if include_archived else IS_ACTIVE
    sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where} AND {is_there}"
    found = single(fetch(connection, sql, (*values, now)), scope, entry_id)
    if found is None:
        return None
    changed = write_update(connection, codec, found, change, vectors)
    charge = Charge(quotas, changed.sums)
    log_changes(connection, scope.agent_id, [changed.change], changed.model, charge)
    return changed.entry


class Updated(NamedTuple):
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
) -> Updated:
    """Write the changed state of a row that was read whole; new vectors with a new content."""
    row, (before,) = found[0], entries_of(codec, [found])
    after = with_changed(before, change(before))
    sums = write_changed(connection, codec, found, after)
    model = None
    if after.content != before.content:
        old = rows_with_sums(connection, [row])
        connection.execute("DELETE FROM agent_memory_embeddings WHERE entry_row = ?", (row,))
        if vectors is not None:
            model, blobs = vectors
            changed_at = to_microseconds(after.updated_at)
            values = [(row, model[0], part, changed_at, blob) for part, blob in enumerate(blobs)]
            execute_all(connection, INSERT_VECTOR, values)
        of_vectors = None if vectors is None else vector_sums(vectors[0][0], [vectors[1]])[0]
        connection.execute(SET_VECTOR_SUM, (of_vectors, row))
        sums = sums.plus(difference(old, rows_with_sums(connection, [row])))
    sums = sums.plus(add_missing_sums(connection, [row]))  # where it comes from an earlier version
    added_size = codec.content_size(after) - codec.content_size(before)
    logged = Change(row, after.id.bytes, "update", after.user_id, added_size)
    return Updated(after, logged, model, sums)


def write_changed(
    connection: apsw.Connection, codec: RowCodec, row: Columns, entry: MemoryEntry
) -> Sums:
    """Write another state of a row that was read whole; return what that adds to the agent."""
    before = rows_with_sums(connection, [row[0]])
    columns, (fingerprint,) = codec.encode(entry), codec.fingerprints([entry.content])
    row_sum = rewritten(row, columns, fingerprint)
    connection.execute(
        f"UPDATE agent_memory_entries SET {CHANGEABLE}, row_sum = ? WHERE agent_id = ? AND row = ?",
        (*changed_columns(columns), fingerprint, row_sum, entry.agent_id, row[0]),
    )
    return difference(before, rows_with_sums(connection, [row[0]]))
