"""The reads of entries by row."""

from collections.abc import Sequence
from contextlib import closing

from mnemic.model import MemoryEntry, Scope
from mnemic.store.readable_entries import readable
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES, IS_ACTIVE, visible_in
from mnemic.store.sql.session import Columns, SqlSession


def readable_entries(
    on: SqlSession, codec: RowCodec, scope: Scope, rows: Sequence[Columns]
) -> dict[int, MemoryEntry]:
    """Return the entries of rows by row, without those whose seal is broken, which are logged."""
    return readable(rows, lambda rows: on.dialect.entries(codec, rows, scope))


def entries_of_rows(
    on: SqlSession,
    codec: RowCodec,
    scope: Scope,
    rows: Sequence[int],
    now: int,
    *,
    include_deleted: bool = False,
) -> dict[int, MemoryEntry]:
    """Return the entries of these rows in the scope, in any state if requested."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_ACTIVE}", [*values, now]
    dialect = on.dialect
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} "
        f"WHERE {where} AND {dialect.among()} ORDER BY row"
    )
    found: dict[int, MemoryEntry] = {}
    with closing(on.parts(sql, (*values, [int(row) for row in rows]))) as parts:
        for part in parts:
            found.update(readable_entries(on, codec, scope, part))
    return found
