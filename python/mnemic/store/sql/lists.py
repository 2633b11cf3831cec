"""The lists and counts of the stores in SQL, and the rows that a write for many is for.

A statement narrows: it yields the rows of a condition that holds for every match, in the order of
the list. The core then decides each row, so that no store has a truth table of its own.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import compress, islice
from operator import index
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from mnemic._core import RECORD_COLUMNS, distinct_values, matches
from mnemic.model import Expression, MemoryEntry, Scope
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.fields import Kind, MemoryField
from mnemic.model.filter import All, Criteria, references
from mnemic.model.results import PageCursor
from mnemic.model.rows import Record
from mnemic.model.timestamps import to_microseconds
from mnemic.store.operations import DistinctValues, EntryCount, EntryPage
from mnemic.store.row_codec import COLUMN_NAMES, COPIED_COLUMNS, FIELDS, RowCodec
from mnemic.store.rules import check_unambiguous
from mnemic.store.sql.conditions import (
    ENTRIES,
    IS_PRESENT,
    NarrowingCondition,
    cut,
    in_scope,
    narrowed,
    order_by,
    visible,
    visible_in,
    with_ids,
)
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.reads import readable_entries
from mnemic.store.sql.session import Columns, Condition, SqlSession

Decide: TypeAlias = Callable[[list[Record]], Sequence[bool]]
"""Returns whether each record of a batch is selected, in their order."""

FIRST_BATCH: Final = 64
"""Records of the first batch; each next batch is twice as large, because a short list ends early.
"""

MAX_BATCH: Final = 512
MAX_CHARACTERS: Final = 4_000_000
"""Characters of the texts of a batch, except for its last record."""

_CONTENT, _TAGS, _METADATA = map(RECORD_COLUMNS.index, ("content", "tags", "metadata"))


_CONTENT_COLUMN: Final = COLUMN_NAMES.index("content")
_KEPT_COLUMNS: Final = frozenset({"agent_id", "id", "is_encrypted"})
"""Columns that a codec is always given."""

_SEALED_COLUMNS: Final = _KEPT_COLUMNS.union(COPIED_COLUMNS)
"""Columns that a codec which seals is always given, beside the content of sealed rows."""


class EntryList(NamedTuple):
    """A list of entries, ordered and cut.

    Attributes:
        narrow: Condition of the rows, which holds for every match.
        expression: Filter that decides, unless the condition is exact.
        order: Terms of ORDER BY.
        limit: Maximum number of entries.
        offset: Number of first entries to skip.
    """

    narrow: NarrowingCondition
    expression: Expression
    order: str
    limit: int
    offset: int = 0


def entry_page(on: SqlSession, codec: RowCodec, wanted: EntryPage) -> list[MemoryEntry]:
    """Return the entries of a scope for which a filter's tree is true, ordered and cut."""
    scope = wanted.scope
    narrow = _narrowed(on.dialect, codec, wanted, wanted.expression, wanted.include_deleted)
    then_by_user = _then_by_user(on.dialect, scope)
    if wanted.after is not None:
        is_after, bound = _after(scope, wanted.after, then_by_user)
        sql, values = f"{narrow.sql} AND {is_after}", [*narrow.values, *bound]
        narrow = narrow._replace(sql=sql, values=values)
    order = f"{order_by(wanted.order)}{then_by_user}"
    page = EntryList(narrow, wanted.expression, order, wanted.limit, wanted.offset)
    with _at_one_moment(on, codec, narrow):
        return first_readable(
            page,
            lambda page: _listed(on, codec, scope, page),
            lambda rows: readable_entries(on, codec, scope, rows),
        )


def entry_count(on: SqlSession, codec: RowCodec, wanted: EntryCount) -> int:
    """Return the number of entries of a scope for which a filter's tree is true."""
    every = All(()) if wanted.expression is None else wanted.expression
    narrow = _narrowed(on.dialect, codec, wanted, every)
    with _at_one_moment(on, codec, narrow):
        if not narrow.is_exact:
            return len(matching_rows(on, codec, every, narrow[:2]))
        sql = f"SELECT count(*) FROM {ENTRIES} WHERE {narrow.sql} AND NOT is_encrypted"
        plain = int(on.value(sql, narrow.values))
        if not codec.seals:
            return plain
        # Those that do not open are out.
        sealed = f"{narrow.sql} AND {on.dialect.is_true('is_encrypted')}"
        return plain + len(matching_rows(on, codec, every, (sealed, narrow.values)))


def distinct(on: SqlSession, codec: RowCodec, wanted: DistinctValues) -> list[DistinctValue]:
    """Return the distinct values of a field in the entries for which a tree is true.

    The core counts them unless SQL decides exactly, and the values are a column's.
    """
    query = wanted.query
    expression = query.narrowed(wanted.expression)
    narrow = _narrowed(on.dialect, codec, wanted, expression)
    is_column = query.declared.kind in {Kind.NAME, Kind.TYPE}
    narrow = narrow._replace(is_exact=narrow.is_exact and is_column)
    with _at_one_moment(on, codec, narrow):
        if narrow.is_exact and not has_sealed(on, codec, narrow[:2]):
            return _grouped(on, narrow, query)
        columns = _record_columns(on.dialect, codec, expression)
        sql = f"SELECT {columns} FROM {ENTRIES} WHERE {narrow.sql}"
        with (
            on.dialect.reading_stored("a memory"),
            closing(on.stream(sql, narrow.values)) as records,
        ):
            some = map(codec.records, batches(records))
            limit, offset = cut(query.limit, query.offset)
            page = query.prefix, offset, limit
            return query.values(distinct_values(expression, some, query.field, *page))


def _narrowed(
    dialect: Dialect,
    codec: RowCodec,
    wanted: EntryPage | EntryCount | DistinctValues,
    expression: Expression,
    include_deleted: bool = False,  # noqa: FBT001, FBT002 - passed on
) -> NarrowingCondition:
    """Return the condition of a list: of active entries, unless the status is tested."""
    where, values = visible_in(wanted.scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(wanted.now)]
    if not references(expression, "status"):
        where = f"{where} AND status = 0"
    sql, bound, is_exact = narrowed(dialect, expression, seals=codec.seals)
    return NarrowingCondition(f"{where} AND ({sql})", [*values, *bound], is_exact)


def _at_one_moment(
    on: SqlSession, codec: RowCodec, narrow: NarrowingCondition
) -> AbstractContextManager[None]:
    """Let all statements see one state, where reading a list may take several."""
    return on.one_moment() if codec.seals or not narrow.is_exact else nullcontext()


def _then_by_user(dialect: Dialect, scope: Scope) -> str:
    """Return the last term of a total order, needed only where users may share an id."""
    return f", {dialect.user_key}" if scope.all_users else ""


def _after(scope: Scope, place: PageCursor, then_by_user: str) -> Condition:
    """Return the condition for entries after a cursor in the list, newest first."""
    time = to_microseconds(place.created_at)
    key, marks, values = "-created_at, id", "?, ?", [-time, place.id]
    if scope.all_users:
        key, marks = f"{key}{then_by_user}", f"{marks}, ?"
        values = [*values, place.user_id or ""]
    # The first condition is there for the index.
    return f"created_at <= ? AND ({key}) > ({marks})", [time, *values]


def first_readable(
    wanted: EntryList,
    read: Callable[[EntryList], Sequence[Columns]],
    entries_by_row: Callable[[Sequence[Columns]], Mapping[int, MemoryEntry]],
) -> list[MemoryEntry]:
    """Return the entries of a list; those whose seal is broken take no other's place in it.

    Each attempt reads twice as many rows, so that a list of broken ones takes as long as they do.
    A row is opened, or logged, once.
    """
    limit = wanted.limit
    seen: set[int] = set()
    found: dict[int, MemoryEntry] = {}
    while True:
        rows = read(wanted)
        found |= entries_by_row([row for row in rows if row[0] not in seen])
        entries = [found[row[0]] for row in rows if row[0] in found]
        if len(entries) >= limit or len(rows) < wanted.limit:
            return entries[:limit]
        seen.update(row[0] for row in rows)
        wanted = wanted._replace(limit=2 * wanted.limit)


def _listed(on: SqlSession, codec: RowCodec, scope: Scope, wanted: EntryList) -> list[Columns]:
    """Return the rows of a list; the core decides them unless the condition is exact."""
    narrow, expression, order, limit, offset = wanted
    dialect = on.dialect
    if narrow.is_exact:
        sql = (
            f"SELECT {dialect.row} FROM {ENTRIES} WHERE {narrow.sql} "
            f"ORDER BY {order} LIMIT ? OFFSET ?"
        )
        return on.fetch(sql, (*narrow.values, *cut(limit, offset)))
    columns = _record_columns(dialect, codec, expression)
    sql = dialect.in_order(columns, narrow.sql, order)
    with closing(on.stream(sql, narrow.values)) as records:
        decide = _decision(dialect, codec, expression)
        rows = [row for row, *_ in passing(records, decide, limit=limit, offset=offset)]
    is_owned, owner = dialect.owned("e", scope.agent_id)
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} AS e {dialect.by_row} "
        f"WHERE {is_owned} AND {dialect.among('row')}"
    )
    found = {columns[0]: columns for columns in on.fetch(sql, (*owner, rows))}
    return [found[row] for row in rows]


def matching_rows(
    on: SqlSession, codec: RowCodec, expression: Expression, where: Condition, hint: str = ""
) -> list[int]:
    """Return the rows of a condition that match a filter, decided in batches by the core.

    Args:
        on: Reads of one moment, or a write.
        codec: Codec of the entries.
        expression: The filter.
        where: The condition.
        hint: Hint, behind a table's name, of how to reach the rows.
    """
    columns = _record_columns(on.dialect, codec, expression)
    sql = f"SELECT {columns} FROM {ENTRIES} {hint} WHERE {where[0]}"
    decide = _decision(on.dialect, codec, expression)
    with closing(on.stream(sql, where[1])) as records:
        return [row for row, *_ in passing(records, decide, limit=sys.maxsize)]


def has_sealed(on: SqlSession, codec: RowCodec, where: Condition) -> bool:
    """Return whether a condition holds for sealed rows that a codec can read."""
    if not codec.seals:
        return False
    is_there = f"SELECT 1 FROM {ENTRIES} WHERE {where[0]} AND {on.dialect.is_true('is_encrypted')}"
    return bool(on.value(f"SELECT EXISTS ({is_there})", where[1]))


def _record_columns(dialect: Dialect, codec: RowCodec, expression: Expression) -> str:
    """Return the columns of records, with placeholders for those that a filter does not test.

    Reading all columns takes five times as long as deciding a record.
    """
    kept = _SEALED_COLUMNS if codec.seals else _KEPT_COLUMNS
    columns = [
        column if column in kept or references(expression, field.name) else _placeholder(field)
        for column, field in zip(COLUMN_NAMES, FIELDS, strict=True)
    ]
    if codec.seals:
        sealed, plain = dialect.sealed_content, columns[_CONTENT_COLUMN]
        columns[_CONTENT_COLUMN] = f"CASE WHEN is_encrypted THEN {sealed} ELSE {plain} END"
    return ", ".join(["row", *columns])


def _placeholder(field: MemoryField) -> str:
    if field.is_optional or field.kind in {Kind.TAGS, Kind.METADATA}:
        return "NULL"
    return "''" if field.kind in {Kind.CONTENT, Kind.NAME, Kind.TYPE_NAME} else "0"


def _decision(dialect: Dialect, codec: RowCodec, expression: Expression) -> Decide:
    """Return the decision of a filter over stored rows; those that cannot be opened are out."""

    def decide(rows: list[Record]) -> Sequence[bool]:
        with dialect.reading_stored("a memory"):
            plain = codec.records(rows)
            found = matches(expression, plain)
        if len(plain) == len(rows):
            return found
        verdicts = dict(zip((row for row, *_ in plain), found, strict=True))
        return [verdicts.get(row, False) for row, *_ in rows]

    return decide


def _grouped(
    on: SqlSession, narrow: NarrowingCondition, wanted: DistinctQuery
) -> list[DistinctValue]:
    column = wanted.declared.column
    sql = (
        f"SELECT {column}, count(*) FROM {ENTRIES} WHERE {narrow.sql} "
        f"AND {column} IS NOT NULL GROUP BY {column} ORDER BY {column} LIMIT ? OFFSET ?"
    )
    found = on.fetch(sql, (*narrow.values, *cut(wanted.limit, wanted.offset)))
    holds = int if wanted.declared.kind is Kind.TYPE else str
    with on.dialect.reading_stored("a memory"):
        if not all(isinstance(value, holds) for value, _ in found):
            raise TypeError(wanted.declared.name)
        return wanted.values(found)


def passing(
    records: Iterable[Record], decide: Decide, *, limit: int, offset: int = 0
) -> list[Record]:
    """Return the records that are selected, in their order.

    Only the selected records and one batch are held at a time, and no record is read after the last
    one that is needed and the rest of its batch.

    Args:
        records: Rows of a store, in the order of the list.
        decide: Decides a batch.
        limit: Maximum number of records.
        offset: Number of first selected records to skip.
    """
    wanted = (record for batch in batches(records) for record in compress(batch, decide(batch)))
    return list(islice(wanted, offset, min(offset + limit, sys.maxsize)))


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in batches that are small in number and in text."""
    batch: list[Record] = []
    size, characters = FIRST_BATCH, 0
    for record in records:
        batch.append(record)
        characters += _characters(record)
        if len(batch) == size or characters >= MAX_CHARACTERS:
            yield batch
            batch, size, characters = [], min(2 * size, MAX_BATCH), 0
    if batch:
        yield batch


def _characters(record: Record) -> int:
    try:
        content, tags, metadata = record[_CONTENT], record[_TAGS], record[_METADATA]
        return len(content or "") + len(tags or "") + len(metadata or "")
    except TypeError:  # a damaged value, which the decision refuses
        return 0


class Rows(NamedTuple):
    """Which rows a statement is for.

    Attributes:
        where: The condition.
        values: Its bound values.
        hint: Hint, behind the table's name, of how to reach them.
    """

    where: str
    values: Sequence[Any]
    hint: str = ""

    def also(self, where: str, values: Sequence[Any]) -> "Rows":
        """Return those of them for which a condition holds too."""
        return Rows(f"{self.where} AND {where}", [*self.values, *values], self.hint)


def of_rows(dialect: Dialect, agent_id: str, rows: Sequence[int]) -> Rows:
    """Return rows of an agent by their numbers."""
    among, values = dialect.among_rows(rows, "row")
    return Rows(f"agent_id = ? AND {among}", [agent_id, *values], dialect.by_row)


def selected(
    on: SqlSession,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition | None = None,
) -> Rows:
    """Return the rows of the selected entries of a scope.

    Args:
        on: In the transaction that writes.
        codec: Codec of the entries; those that it cannot read match no filter.
        scope: The scope.
        criteria: The entries.
        state: A further condition; None is none.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    ids = criteria.ids
    which = Rows(*in_scope(scope)) if ids is None else _of_ids(on, scope, ids)
    if state is not None:
        which = which.also(*state)
    if criteria.expression is None:
        return which
    sql, bound, is_exact = narrowed(on.dialect, criteria.expression, seals=codec.seals)
    which = which.also(f"{visible(codec)} AND ({sql})", bound)
    if is_exact:
        return which
    found = matching_rows(
        on, codec, criteria.expression, (which.where, list(which.values)), which.hint
    )
    return of_rows(on.dialect, scope.agent_id, found)


def numbers_of(on: SqlSession, which: Rows, limit: int | None = None) -> list[int]:
    """Return the numbers of rows, or of some of them, ascending."""
    some = "" if limit is None else f" LIMIT {limit}"
    sql = f"SELECT row FROM {ENTRIES} {which.hint} WHERE {which.where}{some}"
    found = on.fetch(sql, which.values)
    with on.dialect.reading_stored("a row's number"):  # in a damaged file it may be anything
        return sorted(index(row) for (row,) in found)


def set_column(on: SqlSession, which: Rows, column: str, value: object) -> list[Columns]:
    """Write a column of rows; return number, id and user of each, by number."""
    changed = f"UPDATE {ENTRIES} {which.hint} SET {column} = ? WHERE {which.where}"
    return sorted(on.fetch(f"{changed} RETURNING row, id, user_id", (value, *which.values)))


def _of_ids(on: SqlSession, scope: Scope, ids: Sequence[UUID]) -> Rows:
    """Return the rows of the entries of a scope that have one of these ids, in any state."""
    # The planner finds one by its unique index, in 3 % less of a deletion.
    hint = on.dialect.by_index("id") if len(ids) != 1 else ""
    which = Rows(*with_ids(on.dialect, scope, ids), hint)
    if not scope.all_users:  # within a user ids are unique
        return which
    sql = f"SELECT row, id FROM {ENTRIES} {which.hint} WHERE {which.where}"
    found = on.fetch(sql, which.values)
    check_unambiguous(scope, [entry_id for _, entry_id in found])
    with on.dialect.reading_stored("a row's number"):
        return of_rows(on.dialect, scope.agent_id, [index(row) for row, _ in found])
