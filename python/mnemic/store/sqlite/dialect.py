"""What SQLite writes in statements that PostgreSQL writes differently."""

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, cast

from mnemic._core import column_sum
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Record
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.lists import Rows
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.sqlite.change_log import CheckedRows, advance, has_vectors, write_changes
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, MASK, check, check_links_of, entries_of
from mnemic.store.sqlite.new_rows import (
    insert_entries,
    insert_vectors,
    new_rows,
    overwrite_vectors,
    sums_of,
)
from mnemic.store.sqlite.shadow_vectors import (
    lacks_shadow_vectors,
    shadow_vectors,
    switch_vectors,
    write_shadow_vectors,
)
from mnemic.store.sqlite.sql import BY_ROW, IS_OWN, USER_KEY, among, integers
from mnemic.store.sqlite.sqlite_errors import DAMAGED, plain_records, reading_stored
from mnemic.store.sqlite.vectors import (
    delete_shadow_vectors,
    delete_vectors,
    opened_vectors,
    readable_vectors,
    seal_vectors,
    under_other_keys,
    vectors,
    write_sealed,
)
from mnemic.store.values import OwnedId

if TYPE_CHECKING:
    from mnemic.store.sqlite.hardening import GuardedConnection

_LACKS_VECTOR: Final = (
    "NOT EXISTS (SELECT 1 FROM agent_memory_embeddings AS v "
    "WHERE v.entry_row = row AND v.model = ? AND v.part = 0)"
)


def _entries(codec: RowCodec, rows: Sequence[Columns], scope: Scope) -> list[MemoryEntry]:
    """Return entries, checked to be in the scope; a damaged index may lead to others."""
    entries = entries_of(codec, list(rows))
    if not all(map(scope.has, entries)):
        raise StoreCorruptError(f"an index leads to a memory outside {scope}; {DAMAGED}")
    return entries


def _records(codec: RowCodec, rows: list[Columns]) -> list[Record]:
    check(rows)
    return plain_records(codec, rows)


def _owned_ids(wanted: Collection[OwnedId]) -> Condition:
    """Return rows of users and ids; the planner would read all rows of an agent first."""
    # Texts of both: to read arrays within an array takes as long again as the rows.
    rows = "SELECT substr(value, 33) AS wanted_user, unhex(substr(value, 1, 32)) AS wanted_id"
    named = [f"{entry_id.hex}{user_id or ''}" for user_id, entry_id in wanted]
    return f"({rows} FROM json_each(?)) CROSS JOIN", [named]


def _fetch_numbered(
    session: SqlSession, select: Condition, _number: int
) -> tuple[list[Columns], Sequence[int]]:
    return session.fetch_checked(*select), ()


def _mark_deleted(session: SqlSession, agent_id: str, which: Rows, time: int) -> list[Columns]:
    """Mark rows as deleted that are not; NULL counts as 0 in their sums, which grow alike."""
    where, values, hint = which
    on, more = cast("GuardedConnection", session), column_sum("forgotten_at", time)
    on.summed_rows.settle_rows(on)
    sql = (
        f"UPDATE {ENTRIES} {hint} SET forgotten_at = ?, row_sum = (row_sum + ?) & {MASK} "
        f"WHERE {where} RETURNING row, id, user_id, row_sum, vector_sum, link_sum, status"
    )
    marked = on.fetch(sql, (time, more, *values))
    summed = [(row, *sums) for row, _, _, *sums in marked if sums[0] is not None]
    after = [(*sums, time) for sums in summed]
    before = [(row, (own - more) & MASK, *others, None) for row, own, *others in summed]
    on.summed_rows.rewrite(agent_id, before, after)
    return [columns[:3] for columns in marked]


SQLITE: Final = Dialect(
    row=CHECKED_COLUMNS,
    keyed_row=CHECKED_COLUMNS,
    by_row=BY_ROW,
    by_index="INDEXED BY agent_memory_entries_by_{}".format,
    user_key=USER_KEY,
    is_own_zero=f"{IS_OWN} AND v.embedding = zeroblob(length(v.embedding))",
    sealed_content="CAST(content AS BLOB)",  # its texts need not be UTF-8
    entries_of_wall=(
        "FROM agent_memory_entries AS entry INDEXED BY agent_memory_entries_by_user "
        "WHERE entry.agent_id = wall.agent_id AND entry.user_id IS nullif(wall.user_key, '')"
    ),
    insert_link=(
        "INSERT INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
        "VALUES (?2, ?3, ?4, ?5, ?6) ON CONFLICT (from_row, to_row, type)"
    ),
    # Where a constraint fails, the write ends: SQLite need not be able to undo one row alone.
    update="UPDATE OR FAIL",
    sum_columns=("row_sum", "vector_sum"),
    refuses_ids=True,
    damaged=DAMAGED,
    is_true="{} <> 0".format,
    among="{} IN (SELECT value FROM json_each(?))".format,
    among_ids="{} IN (SELECT unhex(value, '-') FROM json_each(?))".format,
    among_rows=among,
    owned=lambda _table, _agent_id: ("true", []),
    owned_ids=_owned_ids,
    lacks_vector=lambda _agent_id, model: (_LACKS_VECTOR, [model]),
    under_other_keys=under_other_keys,
    # The keys alone are sorted, in memory, and never the texts. Without the limit, SQLite would
    # leave out the order of a subquery.
    in_order=(
        "SELECT {} FROM (SELECT row AS wanted FROM agent_memory_entries WHERE {} ORDER BY {} "
        f"LIMIT -1) CROSS JOIN agent_memory_entries {BY_ROW} ON row = wanted"
    ).format,
    bound=lambda columns, _names: columns,
    integers=integers,
    reading_stored=reading_stored,
    entries=_entries,
    records=_records,
    check_links=check_links_of,
    vectors=vectors,
    readable_vectors=readable_vectors,
    new_rows=new_rows,
    adding=lambda _session, _rows, _rules: nullcontext(),
    fetch_numbered=_fetch_numbered,
    insert_entries=insert_entries,
    sums_of=sums_of,
    mark_deleted=_mark_deleted,
    overwrite_vectors=overwrite_vectors,
    insert_vectors=insert_vectors,
    delete_vectors=delete_vectors,
    delete_shadow_vectors=delete_shadow_vectors,
    seal_vectors=seal_vectors,
    opened_vectors=opened_vectors,
    write_sealed=write_sealed,
    advance=advance,
    write_changes=write_changes,
    has_vectors=has_vectors,
    row_reader=CheckedRows,
    lacks_shadow_vectors=lacks_shadow_vectors,
    shadow_vectors=shadow_vectors,
    write_shadow_vectors=write_shadow_vectors,
    switch_vectors=switch_vectors,
)
