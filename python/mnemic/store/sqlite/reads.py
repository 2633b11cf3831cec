"""SQL statements that read entries; each runs on a given connection."""

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import apsw

from mnemic._core import distinct_values
from mnemic.arrays import Float32Array
from mnemic.errors import StoreCorruptError
from mnemic.model import (
    Expression,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryStatus,
    MemoryType,
    Scope,
    TagUsage,
)
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.fields import Kind, MemoryField
from mnemic.model.filter import All, references
from mnemic.model.results import PageCursor
from mnemic.model.rows import Record
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.duplicates import single
from mnemic.store.filter_sql import Condition, NarrowingCondition, order_by
from mnemic.store.readable_entries import EntryList, Rows, first_readable, readable
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    FIELDS,
    RowCodec,
    key_of,
    vector_of,
)
from mnemic.store.sealed_columns import COPIED_COLUMNS
from mnemic.store.selection import Decide, batches, by_filter, selected
from mnemic.store.sqlite import filter_sql
from mnemic.store.sqlite.change_log import embedding_model
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    check,
    check_vectors,
    encoded_row,
    entries_of,
)
from mnemic.store.sqlite.damage import DAMAGED, reading_stored
from mnemic.store.sqlite.sealed_rows import VectorOpener, sealed_ids
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    IS_ACTIVE,
    IS_PRESENT,
    USER_KEY,
    Columns,
    among,
    fetch,
    fetch_batches,
    in_scope,
    integers,
    json_array,
    one_moment,
    read_column,
    stream,
    visible_in,
    with_id,
)
from mnemic.store.values import EntryRow, StoredEntry

_TOP_TAGS = 10
_DECODED_AT_ONCE = 128
"""Rows of which the columns are held: those of a thousand would make Python collect garbage."""


def entries_of_ids(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    ids: Sequence[UUID],
    now: int,
    *,
    include_deleted: bool,
) -> dict[UUID, EntryRow]:
    """Return the entries with these ids in the scope, in any state if requested."""
    found = {}
    for entry_id in ids:
        where, values = with_id(scope, entry_id)
        if not include_deleted:
            where, values = f"{where} AND {IS_ACTIVE}", [*values, now]
        where = f"{where} AND {codec.is_visible_sql}"
        sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where}"
        columns = single(fetch(connection, sql, values), scope, entry_id)
        if columns is not None:
            found[entry_id] = columns
    entries = _entries(codec, scope, list(found.values()))
    if any(entry.id != entry_id for entry, entry_id in zip(entries, found, strict=True)):
        raise StoreCorruptError(f"an index leads to another memory; {DAMAGED}")
    return {
        entry_id: EntryRow(columns[0], entry)
        for (entry_id, columns), entry in zip(found.items(), entries, strict=True)
    }


def _readable(codec: RowCodec, scope: Scope, rows: Rows) -> dict[int, MemoryEntry]:
    """Return entries by row, checked as by `_entries`, without those whose seal is broken."""
    return readable(rows, lambda rows: _entries(codec, scope, list(rows)))


def _entries(codec: RowCodec, scope: Scope, rows: list[Columns]) -> list[MemoryEntry]:
    """Return entries, checked to be in the scope; a damaged index may lead to others."""
    entries = entries_of(codec, rows)
    if not all(map(scope.has, entries)):
        raise StoreCorruptError(f"an index leads to a memory outside {scope}; {DAMAGED}")
    return entries


def entries_of_rows(
    connection: apsw.Connection,
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
    is_wanted, wanted = among(rows)
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE {where} AND {is_wanted}"
    )
    found: dict[int, MemoryEntry] = {}
    with closing(fetch_batches(connection, sql, (*values, *wanted), _DECODED_AT_ONCE)) as batches:
        for batch in batches:
            found.update(_readable(codec, scope, batch))
    return found


def row_of(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> int | None:
    """Return the row of an active entry of a scope."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {codec.is_visible_sql} AND {IS_ACTIVE}"
    sql = f"SELECT row FROM agent_memory_entries WHERE {where}"
    found = single(fetch(connection, sql, (*values, now)), scope, entry_id)
    return None if found is None else int(found[0])


def entries_matching(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    expression: Expression,
    page: MemoryFilter,
    *,
    now: int,
) -> list[MemoryEntry]:
    """Return the entries of a scope that match a filter, with its order, limit and offset."""
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=page.include_forgotten)
    order = f"{order_by(page.list_order)}{_then_by_user(scope)}"
    wanted = EntryList(narrow, expression, order, page.limit, page.offset)
    return _listed_entries(connection, codec, scope, wanted)


def entries_after(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    expression: Expression,
    after: PageCursor | None,
    *,
    limit: int,
    offset: int,
    now: int,
    include_deleted: bool,
) -> list[MemoryEntry]:
    """Return the next entries of the list, newest first."""
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=include_deleted)
    if after is not None:
        is_after, bound = _after(scope, after)
        sql, values = f"{narrow.sql} AND {is_after}", [*narrow.values, *bound]
        narrow = narrow._replace(sql=sql, values=values)
    order = f"created_at DESC, id{_then_by_user(scope)}"
    wanted = EntryList(narrow, expression, order, limit, offset)
    return _listed_entries(connection, codec, scope, wanted)


def _listed_entries(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, wanted: EntryList
) -> list[MemoryEntry]:
    return first_readable(
        wanted,
        lambda wanted: _listed(connection, codec, wanted),
        lambda rows: _readable(codec, scope, rows),
    )


def _listed(connection: apsw.Connection, codec: RowCodec, wanted: EntryList) -> list[Columns]:
    """Return the rows of a list; the core decides them unless the condition is exact."""
    narrow, expression, order, limit, offset = wanted
    if narrow.is_exact:
        sql = (
            f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {narrow.sql} "
            f"ORDER BY {order} LIMIT ? OFFSET ?"
        )
        return fetch(connection, sql, (*narrow.values, limit, offset))
    sql = _records_sql(codec, expression)
    decide = _decision(codec, expression)
    with one_moment(connection):
        with closing(_in_order(connection, narrow, order, sql)) as records:
            found = selected(records, decide, limit=limit, offset=offset)
        return fetch(connection, _ROWS_SQL, (json_array([row for row, *_ in found]),))


def _decision(codec: RowCodec, expression: Expression) -> Decide:
    """Return the decision of a filter over stored records."""
    passes = by_filter(expression)

    def decide(records: list[Record]) -> Sequence[bool]:
        with reading_stored("a memory"):
            plain = codec.records(records)
            found = passes(plain)
        if len(plain) == len(records):
            return found
        verdicts = dict(zip((row for row, *_ in plain), found, strict=True))
        return [verdicts.get(row, False) for row, *_ in records]

    return decide


_ROWS_AT_ONCE = 512
_IN_ORDER = (
    "SELECT {} FROM (SELECT value AS wanted FROM json_each(?)) "
    f"CROSS JOIN agent_memory_entries {BY_ROW} ON row = wanted"
)
_ROWS_SQL = _IN_ORDER.format(CHECKED_COLUMNS)


def _in_order(
    connection: apsw.Connection, narrow: NarrowingCondition, order: str, records_sql: str
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
    connection: apsw.Connection,
    codec: RowCodec,
    expression: Expression,
    where: str,
    values: Sequence[object],
) -> list[int]:
    """Return the rows of a condition that match a filter, decided in batches by the core."""
    columns = _record_columns(codec, expression)
    sql = f"SELECT {columns} FROM agent_memory_entries WHERE {where}"
    decide = _decision(codec, expression)
    with closing(stream(connection, sql, values)) as records:
        return [row for row, *_ in selected(records, decide, limit=sys.maxsize)]


_KEPT_COLUMNS = frozenset({"agent_id", "id", "is_encrypted"})
"""Columns that a codec is always given."""

_SEALED_COLUMNS = _KEPT_COLUMNS.union(COPIED_COLUMNS)
"""Columns that a codec which seals is always given, beside the content of sealed rows."""


def _placeholder(codec: RowCodec, field: MemoryField) -> str:
    if codec.seals and field.kind is Kind.CONTENT:
        return "CASE WHEN is_encrypted THEN CAST(content AS BLOB) ELSE '' END"
    if field.is_optional or field.kind in {Kind.TAGS, Kind.METADATA}:
        return "NULL"
    return "''" if field.kind in {Kind.CONTENT, Kind.NAME, Kind.TYPE_NAME} else "0"


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


def entries_stored_after(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    row: int,
    limit: int,
    *,
    present_at: int | None,
    model: str | None,
) -> list[StoredEntry]:
    """Return entries by row, with keys and vectors; in any state if no time is given."""
    where, values = visible_in(scope, codec)
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
        f"INDEXED BY agent_memory_entries_by_agent WHERE {where} AND row > ? ORDER BY row LIMIT ?"
    )
    while found := fetch(connection, sql, (*values, row, limit)):
        stored = _stored(connection, codec, scope, found, model)
        if stored:
            return stored
        row = found[-1][0]  # of a page whose seals are all broken
    return []


def _stored(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    found: list[Columns],
    model: str | None,
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries = _readable(codec, scope, found)
    found = [columns for columns in found if columns[0] in entries]
    vectors = {} if model is None else _vectors_of(connection, codec, scope.agent_id, model, found)
    with reading_stored("a memory's key"):
        return [
            _with_vectors(codec, columns, entries[columns[0]], vectors.get(columns[0], ()), model)
            for columns in found
        ]


def _with_vectors(
    codec: RowCodec,
    columns: Columns,
    entry: MemoryEntry,
    vectors: tuple[Float32Array, ...],
    model: str | None,
) -> StoredEntry:
    first, *more = vectors or (None,)
    if first is not None and model is not None:
        entry = entry.with_embedding(first, model)
    used = codec.used_key(encoded_row(columns))
    return StoredEntry(columns[0], entry, key_of(used and used.key), tuple(more))


def _vectors_of(
    connection: apsw.Connection,
    codec: RowCodec,
    agent_id: str,
    model: str,
    found: list[Columns],
) -> dict[int, tuple[Float32Array, ...]]:
    """Return the checked vectors of rows by row; rows without vectors are missing."""
    sql = (
        f"SELECT row, embedding FROM agent_memory_entries {BY_ROW} "
        "CROSS JOIN agent_memory_embeddings ON entry_row = row "
        f"WHERE agent_id = ? AND {AMONG} AND model = ? ORDER BY row, part"
    )
    rows = json_array([row for row, *_ in found])
    blobs = fetch(connection, sql, (agent_id, rows, model))
    known = embedding_model(connection, agent_id)
    is_all = known is not None and known[0] == model
    sealed = sealed_ids(found)
    plain = [vector for vector in blobs if vector[0] not in sealed]
    of_plain = check([columns for columns in found if columns[0] not in sealed]).vectors
    check_vectors(model, plain, of_plain, is_all=is_all)
    of_sealed = check([columns for columns in found if columns[0] in sealed]).vectors
    opener = VectorOpener(codec, agent_id, model, sealed)
    blobs = [vector for vector in blobs if vector[0] in sealed]
    opened = opener.readable(blobs, of_sealed, 0) if sealed else []
    vectors: dict[int, tuple[Float32Array, ...]] = {}
    with reading_stored("a vector"):
        for row, blob in [*plain, *(vector for vector in opened if vector[1])]:
            vectors[row] = (*vectors.get(row, ()), vector_of(blob))
    return vectors


def _narrowed_list(
    codec: RowCodec, scope: Scope, expression: Expression, now: int, *, include_deleted: bool
) -> NarrowingCondition:
    """Return the condition of a list; without a test of the status only active entries match."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, now]
    if not references(expression, "status"):
        where = f"{where} AND status = 0"
    sql, bound, is_exact = filter_sql.narrowed(expression, seals=codec.seals)
    return NarrowingCondition(f"{where} AND ({sql})", [*values, *bound], is_exact)


def count(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    expression: Expression | None,
    now: int,
) -> int:
    """Return the number of entries of the scope that a search can find, and that match."""
    expression = All(()) if expression is None else expression
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)
    if not narrow.is_exact:
        return len(matching_rows(connection, codec, expression, narrow.sql, narrow.values))
    sql = f"SELECT count(*) FROM agent_memory_entries WHERE {narrow.sql} AND is_encrypted = 0"
    plain = int(fetch(connection, sql, narrow.values)[0][0])
    sealed = f"{narrow.sql} AND is_encrypted <> 0"  # those that do not open do not count
    return plain + len(matching_rows(connection, codec, expression, sealed, narrow.values))


def distinct(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    expression: Expression,
    wanted: DistinctQuery,
    *,
    now: int,
) -> list[DistinctValue]:
    """Return the distinct values of a field; the core counts them unless SQL decides exactly."""
    expression = wanted.narrowed(expression)
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)
    if narrow.is_exact and not codec.seals:
        return _grouped(connection, narrow, wanted)
    columns = _record_columns(codec, expression)
    sql = f"SELECT {columns} FROM agent_memory_entries WHERE {narrow.sql}"
    with reading_stored("a memory"), closing(stream(connection, sql, narrow.values)) as records:
        some = map(codec.records, batches(records))
        page = wanted.prefix, wanted.offset, min(wanted.limit, sys.maxsize)
        return wanted.values(distinct_values(expression, some, wanted.field, *page))


def _grouped(
    connection: apsw.Connection, narrow: NarrowingCondition, wanted: DistinctQuery
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


def agent_ids(connection: apsw.Connection) -> list[str]:
    """Return the ids of all agents that ever stored an entry in this file."""
    found = fetch(connection, "SELECT agent_id FROM agent_memory_agents", ())
    return [agent_id for (agent_id,) in found if isinstance(agent_id, str)]


def stored_entries(connection: apsw.Connection, scope: Scope) -> int:
    """Return the number of entries of a scope in any state."""
    where, values = in_scope(scope)
    sql = f"SELECT count(*) FROM agent_memory_entries WHERE {where}"
    return int(fetch(connection, sql, values)[0][0])


def used_bytes(connection: apsw.Connection, agent_id: str) -> int:
    """Return the bytes of the agent's contents, deleted entries included."""
    sql = "SELECT used_bytes FROM agent_memory_agents WHERE agent_id = ?"
    found = fetch(connection, sql, (agent_id,))
    return integers(found[0])[0] if found else 0


# Every entry is in one state; the value to bind is the time now.
_STATE = (
    "CASE WHEN forgotten_at IS NOT NULL THEN 'forgotten' WHEN expires_at <= ? THEN 'expired' "
    "ELSE status END"
)


def stats(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, now: int
) -> LongTermMemoryStats:
    """Return statistics of a scope, without figures of embedder and quota, which are not stored."""
    where, values = visible_in(scope, codec)
    states = fetch(
        connection,
        f"SELECT {_STATE}, count(*), sum({codec.content_size_sql}) FROM agent_memory_entries "
        f"WHERE {where} GROUP BY 1",
        (now, *values),
    )
    number = {state: count for state, count, _ in states}
    entries = f"FROM agent_memory_entries WHERE {where} AND {IS_ACTIVE}"
    found = *values, now
    types = fetch(
        connection,
        f"SELECT memory_type, count(*) {entries} GROUP BY memory_type",
        found,
    )
    tags = fetch(
        connection,
        f"SELECT tags, count(*) {entries} AND tags IS NOT NULL GROUP BY tags",
        found,
    )
    sealed = _sealed_stats(connection, codec, scope, now)
    times = f"SELECT min(created_at), max(created_at) {entries}"
    oldest, newest = fetch(connection, times, found)[0]
    with reading_stored("a memory's type or time"):
        return LongTermMemoryStats(
            active_entries=number.get(MemoryStatus.ACTIVE, 0),
            archived_entries=number.get(MemoryStatus.ARCHIVED, 0),
            superseded_entries=number.get(MemoryStatus.SUPERSEDED, 0),
            forgotten_entries=number.get("forgotten", 0),
            expired_entries=number.get("expired", 0),
            sealed_entries=sealed.entries,
            unreadable_entries=sealed.unreadable,
            storage_bytes_used=sum(size for *_, size in states) + sealed.hidden_bytes,
            entries_by_type={MemoryType.numbered(kind): used for kind, used in types},
            top_tags=_top_tags(
                [*_read_tags(codec, tags), *((entry.tags, 1) for entry in sealed.active)]
            ),
            oldest_entry=None if oldest is None else from_microseconds(oldest),
            newest_entry=None if newest is None else from_microseconds(newest),
        )


class _SealedStats(NamedTuple):
    """Figures of the sealed entries of a scope, in any state.

    Attributes:
        entries: Their number.
        unreadable: Number of those that cannot be opened.
        hidden_bytes: Bytes that those count which a codec cannot read for lack of a key.
        active: Those that searches find.
    """

    entries: int
    unreadable: int
    hidden_bytes: int
    active: list[MemoryEntry]


def _sealed_stats(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, now: int
) -> _SealedStats:
    """Return figures of the sealed entries of a scope, each of which is opened."""
    where, values = in_scope(scope)
    where = f"{where} AND is_encrypted <> 0"
    if not codec.seals:
        sql = f"SELECT count(*), ifnull(sum({codec.content_size_sql}), 0) FROM agent_memory_entries"
        number, size = integers(fetch(connection, f"{sql} WHERE {where}", values)[0])
        return _SealedStats(number, number, size, [])
    sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where}"
    number, readable, active = 0, 0, list[MemoryEntry]()
    moment = from_microseconds(now)
    with closing(fetch_batches(connection, sql, values, _DECODED_AT_ONCE)) as batches:
        for batch in batches:
            found = _readable(codec, scope, batch)
            number, readable = number + len(batch), readable + len(found)
            active += [entry for entry in found.values() if entry.is_active(moment)]
    return _SealedStats(number, number - readable, 0, active)


def _read_tags(codec: RowCodec, found: list[Columns]) -> list[tuple[tuple[str, ...], int]]:
    return [(codec.decode_tags(stored), entries) for stored, entries in found]


def _top_tags(found: Iterable[tuple[tuple[str, ...], int]]) -> tuple[TagUsage, ...]:
    """Return the most used tags, of lists of tags and the number of their entries."""
    used: Counter[str] = Counter()
    for tags, entries in found:
        for tag in set(tags):
            used[tag] += entries
    top = sorted(used.items(), key=lambda each: (-each[1], each[0]))[:_TOP_TAGS]
    return tuple(TagUsage(tag, entries) for tag, entries in top)


def contents(
    connection: apsw.Connection, codec: RowCodec, agent_id: str, rows: Sequence[int]
) -> dict[int, str]:
    """Return the contents of those of these rows that are active."""
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
        f"WHERE agent_id = ? AND forgotten_at IS NULL AND status = 0 AND {codec.is_visible_sql} "
        f"AND {AMONG}"
    )
    found = fetch(connection, sql, (agent_id, json_array(rows)))
    everyone = Scope(agent_id, all_users=True)
    return {row: entry.content for row, entry in _readable(codec, everyone, found).items()}
