"""The lists and counts of the SQLite store."""

import sys
from collections.abc import Generator
from contextlib import closing
from datetime import datetime
from itertools import islice

from mnemic._core import distinct_values
from mnemic.model import Expression, MemoryEntry, MemoryFilter, Scope
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.fields import Kind, MemoryField
from mnemic.model.filter import All, references
from mnemic.model.results import PageCursor
from mnemic.model.rows import Record
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import COLUMN_NAMES, FIELDS, RowCodec
from mnemic.store.sealed_columns import COPIED_COLUMNS
from mnemic.store.selection import batches, selected
from mnemic.store.sql.filters import NarrowingCondition, narrowed, order_by
from mnemic.store.sql.lists import EntryList, decision, first_readable
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.reads import readable_entries
from mnemic.store.sqlite.sql import (
    BY_ROW,
    IS_PRESENT,
    USER_KEY,
    Columns,
    fetch,
    integers,
    json_array,
    one_moment,
    read_column,
    stream,
    visible_in,
)

_ROWS_AT_ONCE = 512

_IN_ORDER = (
    "SELECT {} FROM (SELECT value AS wanted FROM json_each(?)) "
    f"CROSS JOIN agent_memory_entries {BY_ROW} ON row = wanted"
)

_ROWS_SQL = _IN_ORDER.format(CHECKED_COLUMNS)

_KEPT_COLUMNS = frozenset({"agent_id", "id", "is_encrypted"})
"""Columns that a codec is always given."""

_SEALED_COLUMNS = _KEPT_COLUMNS.union(COPIED_COLUMNS)
"""Columns that a codec which seals is always given, beside the content of sealed rows."""


class SqliteLists(SqliteFile):
    """Lists and counts entries by filter; see `Lists`."""

    def matching(
        self,
        scope: Scope,
        expression: Expression,
        page: MemoryFilter,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true, ordered and cut."""
        narrow = _narrowed_list(
            self._codec, scope, expression, now, include_deleted=page.include_forgotten
        )
        order = f"{order_by(page.list_order)}{_then_by_user(scope)}"
        wanted = EntryList(narrow, expression, order, page.limit, page.offset)
        return self._listed(scope, wanted, deadline)

    def page(
        self,
        scope: Scope,
        expression: Expression,
        after: PageCursor | None,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool = False,
        offset: int = 0,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the next entries of a scope for which a filter's tree is true, newest first."""
        narrow = _narrowed_list(
            self._codec, scope, expression, now, include_deleted=include_deleted
        )
        if after is not None:
            is_after, bound = _after(scope, after)
            sql, values = f"{narrow.sql} AND {is_after}", [*narrow.values, *bound]
            narrow = narrow._replace(sql=sql, values=values)
        order = f"created_at DESC, id{_then_by_user(scope)}"
        wanted = EntryList(narrow, expression, order, limit, offset)
        return self._listed(scope, wanted, deadline)

    def _listed(self, scope: Scope, wanted: EntryList, deadline: float | None) -> list[MemoryEntry]:
        with self._reading(deadline) as connection:
            return first_readable(
                wanted,
                lambda wanted: _listed(connection, self._codec, wanted),
                lambda rows: readable_entries(self._codec, scope, rows),
            )

    def count(
        self,
        scope: Scope,
        expression: Expression | None = None,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> int:
        """Return the number of entries of a scope for which a filter's tree is true."""
        codec = self._codec
        expression = All(()) if expression is None else expression
        narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)
        with self._reading(deadline) as connection:
            if not narrow.is_exact:
                return len(matching_rows(connection, codec, expression, narrow[:2]))
            sql = "SELECT count(*) FROM agent_memory_entries WHERE"
            plain = fetch(connection, f"{sql} {narrow.sql} AND is_encrypted = 0", narrow.values)
            # Those that do not open do not count.
            sealed = f"{narrow.sql} AND is_encrypted <> 0", narrow.values
            return int(plain[0][0]) + len(matching_rows(connection, codec, expression, sealed))

    def distinct(
        self,
        scope: Scope,
        expression: Expression,
        wanted: DistinctQuery,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the entries for which a tree is true.

        The core counts them unless SQL decides exactly.
        """
        codec, expression = self._codec, wanted.narrowed(expression)
        narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)
        with self._reading(deadline) as connection:
            if narrow.is_exact and not codec.seals:
                return _grouped(connection, narrow, wanted)
            columns = _record_columns(codec, expression)
            sql = f"SELECT {columns} FROM agent_memory_entries WHERE {narrow.sql}"
            with (
                reading_stored("a memory"),
                closing(stream(connection, sql, narrow.values)) as records,
            ):
                some = map(codec.records, batches(records))
                page = wanted.prefix, wanted.offset, min(wanted.limit, sys.maxsize)
                return wanted.values(distinct_values(expression, some, wanted.field, *page))


def _narrowed_list(
    codec: RowCodec, scope: Scope, expression: Expression, now: datetime, *, include_deleted: bool
) -> NarrowingCondition:
    """Return the condition of a list; without a test of the status only active entries match."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(now)]
    if not references(expression, "status"):
        where = f"{where} AND status = 0"
    sql, bound, is_exact = narrowed(SQLITE, expression, seals=codec.seals)
    return NarrowingCondition(f"{where} AND ({sql})", [*values, *bound], is_exact)


def _then_by_user(scope: Scope) -> str:
    """Return the last term of a total order, needed only where users may share an id."""
    return f", {USER_KEY}" if scope.all_users else ""


def _after(scope: Scope, place: PageCursor) -> Condition:
    """Return the condition for entries after a cursor in the list, newest first."""
    time, entry_id = to_microseconds(place.created_at), place.id.bytes
    is_later, values = "id > ?", [time, time, entry_id]
    if scope.all_users:
        is_later, values = (
            f"{is_later} OR (id = ? AND {USER_KEY} > ?)",
            [*values, entry_id, place.user_id or ""],
        )
    # The first condition is there for the index.
    return f"created_at <= ? AND (created_at < ? OR {is_later})", values


def _listed(connection: GuardedConnection, codec: RowCodec, wanted: EntryList) -> list[Columns]:
    """Return the rows of a list; the core decides them unless the condition is exact."""
    narrow, expression, order, limit, offset = wanted
    if narrow.is_exact:
        sql = (
            f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {narrow.sql} "
            f"ORDER BY {order} LIMIT ? OFFSET ?"
        )
        return fetch(connection, sql, (*narrow.values, limit, offset))
    sql = _records_sql(codec, expression)
    decide = decision(codec, expression, reading_stored)
    with one_moment(connection):
        with closing(_in_order(connection, narrow, order, sql)) as records:
            found = selected(records, decide, limit=limit, offset=offset)
        return fetch(connection, _ROWS_SQL, (json_array([row for row, *_ in found]),))


def _in_order(
    connection: GuardedConnection, narrow: NarrowingCondition, order: str, records_sql: str
) -> Generator[Record, None, None]:
    """Yield records in an order, of one moment; their keys alone are sorted, never their texts."""
    sql = f"SELECT row FROM agent_memory_entries WHERE {narrow.sql} ORDER BY {order}"
    with closing(stream(connection, sql, narrow.values)) as keys:
        while rows := integers([row for (row,) in islice(keys, _ROWS_AT_ONCE)]):
            yield from stream(connection, records_sql, (json_array(rows),))


def _records_sql(codec: RowCodec, expression: Expression) -> str:
    """Return the statement that reads records; untested columns are placeholders.

    Reading all columns takes five times as long as deciding a record.
    """
    return _IN_ORDER.format(_record_columns(codec, expression))


def _record_columns(codec: RowCodec, expression: Expression) -> str:
    kept = _SEALED_COLUMNS if codec.seals else _KEPT_COLUMNS
    columns = [
        read_column(column)
        if column in kept or references(expression, field.name)
        else _placeholder(codec, field)
        for column, field in zip(COLUMN_NAMES, FIELDS, strict=True)
    ]
    return ", ".join(["row", *columns])


def matching_rows(
    connection: GuardedConnection,
    codec: RowCodec,
    expression: Expression,
    where: Condition,
) -> list[int]:
    """Return the rows of a condition that match a filter, decided in batches by the core."""
    columns = _record_columns(codec, expression)
    sql = f"SELECT {columns} FROM agent_memory_entries WHERE {where[0]}"
    decide = decision(codec, expression, reading_stored)
    with closing(stream(connection, sql, where[1])) as records:
        return [row for row, *_ in selected(records, decide, limit=sys.maxsize)]


def _placeholder(codec: RowCodec, field: MemoryField) -> str:
    if codec.seals and field.kind is Kind.CONTENT:
        return "CASE WHEN is_encrypted THEN CAST(content AS BLOB) ELSE '' END"
    if field.is_optional or field.kind in {Kind.TAGS, Kind.METADATA}:
        return "NULL"
    return "''" if field.kind in {Kind.CONTENT, Kind.NAME, Kind.TYPE_NAME} else "0"


def _grouped(
    connection: GuardedConnection, narrow: NarrowingCondition, wanted: DistinctQuery
) -> list[DistinctValue]:
    column = wanted.declared.column
    sql = (
        f"SELECT {column}, count(*) FROM agent_memory_entries WHERE {narrow.sql} "
        f"AND {column} IS NOT NULL GROUP BY {column} ORDER BY {column} LIMIT ? OFFSET ?"
    )
    found = fetch(connection, sql, (*narrow.values, wanted.limit, wanted.offset))
    holds = int if wanted.declared.kind is Kind.TYPE else str
    with reading_stored("a memory"):
        if not all(isinstance(value, holds) for value, _ in found):
            raise TypeError(wanted.declared.name)
        return wanted.values(found)
