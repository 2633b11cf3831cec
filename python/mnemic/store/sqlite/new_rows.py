"""What SQLite does otherwise in storing entries: checksums, vectors in their places."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import cast

import apsw

from mnemic._core import row_sums, vector_sums
from mnemic.model.new_entry import NewEntry
from mnemic.store.new_rows import NewRow, NewVectors, Overwrite, encoded
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec
from mnemic.store.rules import id_in_use
from mnemic.store.sql.session import SqlSession
from mnemic.store.sqlite.checksums import rows_with_sums
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import (
    COLUMNS,
    DELETE_SHADOW_VECTORS,
    INSERT_VECTOR,
    IS_OWN,
    Columns,
    mark_of,
)
from mnemic.store.values import Model


def new_rows(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    model: str | None,
) -> list[NewRow]:
    """Return entries, with their vectors and checksums."""
    plain = encoded(codec, entries, model)
    of_rows = row_sums([(*new.columns, *new.more) for new in plain])
    of_vectors: Sequence[int | None] = [None] * len(plain)
    if model is not None:
        sums = vector_sums(model, [new.stored_vectors for new in plain])
        of_vectors = [
            of_row if new.vectors else None for of_row, new in zip(sums, plain, strict=True)
        ]
    return [
        new._replace(sums=own)
        for new, own in zip(plain, zip(of_rows, of_vectors, strict=True), strict=True)
    ]


_PLACES = ", ".join([*map(mark_of, COLUMN_NAMES), *"?????"])
_INSERT_ENTRY = (
    f"INSERT INTO agent_memory_entries ({COLUMNS}, fingerprint, "
    f"idempotency_key, key_fingerprint, row_sum, vector_sum) "
    f"VALUES ({_PLACES})"
)
_CREATED_AT, _STATUS, _FORGOTTEN_AT = map(
    COLUMN_NAMES.index, ("created_at", "status", "forgotten_at")
)


def insert_entries(
    session: SqlSession,
    agent_id: str,
    rows: Sequence[NewRow],
    model: Model | None,
    numbers: Sequence[int],
) -> Sequence[int]:
    """Insert entries of an agent with their vectors; return the numbers of their rows."""
    del numbers  # AUTOINCREMENT numbers them, and leaves no gaps
    on = cast("GuardedConnection", session)
    before = on.total_changes()
    try:
        on.run_all(_INSERT_ENTRY, [(*new.columns, *new.more, *new.sums) for new in rows])
    except apsw.ConstraintError:
        raise id_in_use(rows[on.total_changes() - before].entry) from None
    first = on.last_insert_rowid() - len(rows) + 1
    numbered = list(enumerate(rows, start=first))
    summed = [
        (row, *new.sums, None, new.columns[_STATUS], new.columns[_FORGOTTEN_AT])
        for row, new in numbered
    ]
    on.summed_rows.insert(agent_id, summed)
    if model is not None:
        vectors = [(row, new.columns[_CREATED_AT], new.stored_vectors) for row, new in numbered]
        on.run_all(INSERT_VECTOR, _values(model[0], vectors))
    return range(first, first + len(rows))


def _values(model: str, rows: Iterable[tuple[int, int, Sequence[object]]]) -> list[Columns]:
    return [
        (row, model, part, time, vector)
        for row, time, vectors in rows
        for part, vector in enumerate(vectors)
    ]


_UPSERT_VECTOR = (
    f"{INSERT_VECTOR.replace('OR IGNORE ', '')} ON CONFLICT (entry_row, model, part) "
    "DO UPDATE SET created_at = excluded.created_at, embedding = excluded.embedding"
)
_DELETE_VECTORS = (
    "DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND (model <> ? OR part >= ?)"
)
_DELETE_OWN_VECTORS = f"{_DELETE_VECTORS} AND {IS_OWN}"


def sums_of(session: SqlSession, agent_id: str, overwrites: Sequence[Overwrite]) -> list[Columns]:
    """Return the sums of columns and of vectors that the statement sets; see `SummedRows`.

    Rows without sums get theirs later, with what else is there of them.
    """
    on = cast("GuardedConnection", session)
    on.summed_rows.settle_rows(on)
    stored = {row[0]: row for row in rows_with_sums(on, [each.old.row for each in overwrites])}
    of_rows = row_sums([(*each.columns, *each.more) for each in overwrites])
    after: list[Columns] = []
    for each, of_row in zip(overwrites, of_rows, strict=True):
        row, old_sum, of_vectors, of_links, *_ = stored[each.old.row]
        if each.new.vectors:
            of_vectors = each.new.sums[1]
        state = each.columns[_STATUS], each.columns[_FORGOTTEN_AT]
        after.append((row, None if old_sum is None else of_row, of_vectors, of_links, *state))
    on.summed_rows.rewrite(agent_id, list(stored.values()), after)
    return [(of_row, of_vectors) for _, of_row, of_vectors, *_ in after]


def overwrite_vectors(
    session: SqlSession, _agent_id: str, model: Model | None, overwrites: Sequence[Overwrite]
) -> None:
    """Write the vectors of entries over those of the rows whose places they take.

    They are written in their places: a deletion and an insertion write twice as many pages.
    """
    on = cast("GuardedConnection", session)
    hidden = [(overwrite.old.row,) for overwrite in overwrites if overwrite.entry.hides_content]
    if hidden:
        on.run_all(DELETE_SHADOW_VECTORS, hidden)
    outdated = [overwrite for overwrite in overwrites if not overwrite.keeps_vectors]
    if not outdated:
        return
    name = "" if model is None else model[0]
    for delete, is_of_new in ((_DELETE_VECTORS, True), (_DELETE_OWN_VECTORS, False)):
        surplus = [
            (overwrite.old.row, name, len(overwrite.new.vectors))
            for overwrite in outdated
            if overwrite.changes_content is is_of_new
        ]
        on.run_all(delete, surplus)
    if model is None:
        return
    rows = [(each.old.row, each.time, each.new.stored_vectors) for each in outdated]
    on.run_all(_UPSERT_VECTOR, _values(name, rows))


def insert_vectors(
    session: SqlSession, _agent_id: str, model: Model, rows: Sequence[NewVectors]
) -> None:
    """Insert the vectors of rows that have none of the model."""
    write_vectors(cast("GuardedConnection", session), _values(model[0], rows))


def write_vectors(connection: GuardedConnection, vectors: Sequence[Columns]) -> None:
    """Insert vectors, each the values of the statement; its row is the first."""
    connection.run_all(INSERT_VECTOR, vectors)
    connection.summed_rows.write_vectors(map(itemgetter(0), vectors))
