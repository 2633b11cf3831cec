"""SQL statements that read entries; each runs on a given connection."""

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from mnemic._core import distinct_values
from mnemic.model import (
    Expression,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryStatus,
    MemoryType,
    Scope,
    TagUsage,
    UserUsage,
)
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.filter import All, references
from mnemic.model.results import PageCursor
from mnemic.model.rows import Record
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.duplicates import single
from mnemic.store.filter_sql import Condition, NarrowingCondition, order_by, text_after
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import (
    AMONG,
    EMBEDDINGS,
    ENTRIES,
    HAS_ACTIVE_STATUS,
    IS_ACTIVE,
    IS_PRESENT,
    ROW,
    SEALED_VECTORS,
    USER_KEY,
    in_scope,
    narrowed,
    visible,
    visible_in,
    with_id,
)
from mnemic.store.postgres.stored import (
    entries_of,
    readable_entries,
    reading_stored,
    records_of,
    sealed_ids,
)
from mnemic.store.postgres.vectors import Vectors, sealed_vectors
from mnemic.store.readable_entries import EntryList, first_readable
from mnemic.store.row_codec import EncodedRow, RowCodec, key_of
from mnemic.store.selection import Decide, batches, by_filter, selected
from mnemic.store.values import EntryRow, OwnedId, StoredEntry

_AT_ONCE: Final = 512
"""Rows that a list reads at once."""

_TOP_TAGS: Final = 10


def entries_of_ids(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    ids: Sequence[UUID],
    now: int,
    *,
    include_deleted: bool,
) -> dict[UUID, EntryRow]:
    """Return the entries with these ids in the scope, in any state if requested."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_ACTIVE}", [*values, now]
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} AND id = ANY(%s)"
    found = session.fetch(sql, (*values, list(ids)))
    by_id: dict[UUID, list[EntryRow]] = {}
    for columns, entry in zip(found, entries_of(codec, found, scope), strict=True):
        by_id.setdefault(entry.id, []).append(EntryRow(columns[0], entry))
    located = {}
    for entry_id in ids:
        one = single(by_id.get(entry_id, []), scope, entry_id)
        if one is not None:
            located[entry_id] = one
    return located


def entries_of_rows(
    session: Session,
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
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} AND {AMONG} ORDER BY row"
    found = session.fetch(sql, (*values, [int(row) for row in rows]))
    return readable_entries(codec, found, scope)


def row_of(session: Session, codec: RowCodec, scope: Scope, entry_id: UUID, now: int) -> int | None:
    """Return the row of an active entry of a scope."""
    where, values = with_id(scope, entry_id)
    sql = f"SELECT row FROM {ENTRIES} WHERE {where} AND {visible(codec)} AND {IS_ACTIVE}"
    found = single(session.fetch(sql, (*values, now)), scope, entry_id)
    return None if found is None else int(found[0])


def entries_matching(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    expression: Expression,
    page: MemoryFilter,
    *,
    now: int,
) -> list[MemoryEntry]:
    """Return the entries of a scope that match a filter, with its order, limit and offset."""
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=page.include_forgotten)
    order = f"{order_by(page.list_order)}, {USER_KEY}"
    wanted = EntryList(narrow, expression, order, page.limit, page.offset)
    return _listed_entries(session, codec, scope, wanted)


def entries_after(
    session: Session,
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
        # The cursor of a list of one user names none.
        user = (after.user_id if scope.all_users else scope.user_id) or ""
        time = to_microseconds(after.created_at)
        is_after = f"(-created_at, id, {USER_KEY}) > (%s, %s, %s) AND created_at <= %s"
        narrow = narrow._replace(
            sql=f"{narrow.sql} AND {is_after}",
            values=[*narrow.values, -time, after.id, user, time],
        )
    order = f"created_at DESC, id, {USER_KEY}"
    wanted = EntryList(narrow, expression, order, limit, offset)
    return _listed_entries(session, codec, scope, wanted)


def _listed_entries(
    session: Session, codec: RowCodec, scope: Scope, wanted: EntryList
) -> list[MemoryEntry]:
    return first_readable(
        wanted,
        lambda wanted: _listed(session, codec, wanted),
        lambda rows: readable_entries(codec, rows, scope),
    )


def _listed(session: Session, codec: RowCodec, wanted: EntryList) -> list[Columns]:
    """Return the rows of a list; the core decides them unless the condition is exact."""
    narrow, expression, order, limit, offset = wanted
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {narrow.sql} ORDER BY {order}"
    if narrow.is_exact:
        cut = (min(limit, sys.maxsize), min(offset, sys.maxsize))
        return session.fetch(f"{sql} LIMIT %s OFFSET %s", (*narrow.values, *cut))
    rows, decide = _streamed(session, sql, narrow.values), _decision(codec, expression)
    return selected(rows, decide, limit=limit, offset=offset)


def has_sealed(session: Session, codec: RowCodec, where: Condition) -> bool:
    """Return whether a condition holds for sealed rows that a codec can read."""
    if not codec.seals:
        return False
    sql = f"SELECT EXISTS (SELECT FROM {ENTRIES} WHERE {where[0]} AND is_encrypted)"
    return bool(session.value(sql, where[1]))


def _decision(codec: RowCodec, expression: Expression) -> Decide:
    """Return the decision of a filter over stored rows; those that cannot be opened are out."""
    passes = by_filter(expression)

    def decide(rows: list[Record]) -> Sequence[bool]:
        plain = records_of(codec, rows)
        with reading_stored("a memory"):
            found = passes(plain)
        if len(plain) == len(rows):
            return found
        verdicts = dict(zip((row for row, *_ in plain), found, strict=True))
        return [verdicts.get(row, False) for row, *_ in rows]

    return decide


def _streamed(
    session: Session, sql: str, values: Sequence[object]
) -> Generator[Columns, None, None]:
    for batch in session.batches(sql, values, _AT_ONCE):
        yield from batch


def matching_rows(
    session: Session, codec: RowCodec, expression: Expression, where: Condition
) -> list[int]:
    """Return the rows of a condition that match a filter, decided in batches by the core."""
    narrow = NarrowingCondition(*where, is_exact=False)
    found = _listed(session, codec, EntryList(narrow, expression, "row", sys.maxsize))
    return [row for row, *_ in found]


def entries_stored_after(
    session: Session,
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
        f"SELECT {ROW}, fingerprint, idempotency_key, key_fingerprint FROM {ENTRIES} "
        f"WHERE {where} AND row > %s ORDER BY row LIMIT %s"
    )
    while found := session.fetch(sql, (*values, row, min(limit, sys.maxsize))):
        stored = _stored(session, codec, scope, found, model)
        if stored:
            return stored
        row = found[-1][0]  # of a page whose seals are all broken
    return []


def _stored(
    session: Session, codec: RowCodec, scope: Scope, found: list[Columns], model: str | None
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries = readable_entries(codec, found, scope)
    found = [columns for columns in found if columns[0] in entries]
    vectors: dict[int, Vectors] = {}
    if model is not None:
        vectors = session.vectors(scope.agent_id, list(entries), model)
        opened = sealed_vectors(
            session, codec, scope.agent_id, sealed_ids(found), model, dimensions=0
        )
        vectors |= {row: own for row, own in opened.items() if own[0].size}
    with reading_stored("a memory's key"):
        return [
            _with_vectors(codec, columns, entries[columns[0]], vectors.get(columns[0], ()), model)
            for columns in found
        ]


def _with_vectors(
    codec: RowCodec, columns: Columns, entry: MemoryEntry, vectors: Vectors, model: str | None
) -> StoredEntry:
    first, *more = vectors or (None,)
    if first is not None and model is not None:
        entry = entry.with_embedding(first, model)
    used = codec.used_key(EncodedRow(columns[1:-3], columns[-3:]))
    return StoredEntry(columns[0], entry, key_of(used and used.key), tuple(more))


def _narrowed_list(
    codec: RowCodec, scope: Scope, expression: Expression, now: int, *, include_deleted: bool
) -> NarrowingCondition:
    """Return the condition of a list; without a test of the status only active entries match."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, now]
    if not references(expression, "status"):
        where = f"{where} AND status = 0"
    sql, bound, is_exact = narrowed(expression, seals=codec.seals)
    return NarrowingCondition(f"{where} AND ({sql})", [*values, *bound], is_exact)


def count(
    session: Session, codec: RowCodec, scope: Scope, expression: Expression | None, now: int
) -> int:
    """Return the number of entries of the scope that a search can find, and that match."""
    expression = All(()) if expression is None else expression
    narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)
    if not narrow.is_exact:
        return len(matching_rows(session, codec, expression, (narrow.sql, narrow.values)))
    sql = f"SELECT count(*) FROM {ENTRIES} WHERE {narrow.sql} AND NOT is_encrypted"
    plain = int(session.value(sql, narrow.values))
    if not codec.seals:
        return plain
    sealed = f"{narrow.sql} AND is_encrypted"  # those that do not open do not count
    return plain + len(matching_rows(session, codec, expression, (sealed, narrow.values)))


def stored_entries(session: Session, scope: Scope) -> int:
    """Return the number of entries of a scope in any state."""
    where, values = in_scope(scope)
    return int(session.value(f"SELECT count(*) FROM {ENTRIES} WHERE {where}", values))


def distinct(
    session: Session,
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
    if narrow.is_exact and not has_sealed(session, codec, narrow[:2]):
        column = wanted.declared.column
        sql = (
            f"SELECT {column}, count(*) FROM {ENTRIES} WHERE {narrow.sql} "
            f"AND {column} IS NOT NULL GROUP BY {column} ORDER BY {column} LIMIT %s OFFSET %s"
        )
        cut = (min(wanted.limit, sys.maxsize), min(wanted.offset, sys.maxsize))
        with reading_stored("a memory"):
            return wanted.values([tuple(row) for row in session.fetch(sql, (*narrow.values, *cut))])
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {narrow.sql}"
    with reading_stored("a memory"):
        some = map(codec.records, batches(_streamed(session, sql, narrow.values)))
        page = wanted.prefix, wanted.offset, min(wanted.limit, sys.maxsize)
        return wanted.values(distinct_values(expression, some, wanted.field, *page))


def agent_ids(session: Session) -> list[str]:
    """Return the ids of all agents that ever stored an entry."""
    return [name for (name,) in session.fetch("SELECT agent_id FROM mnemic.agent_memory_agents")]


# Every entry is in one state; the value to bind is the time now.
_STATE = "CASE WHEN forgotten_at IS NOT NULL THEN -2 WHEN expires_at <= %s THEN -1 ELSE status END"
_FORGOTTEN, _EXPIRED = -2, -1


def stats(session: Session, codec: RowCodec, scope: Scope, now: int) -> LongTermMemoryStats:
    """Return statistics of a scope, without figures of embedder and quota, which are not stored."""
    where, values = visible_in(scope, codec)
    states = session.fetch(
        f"SELECT {_STATE}, count(*), sum({codec.content_size_sql})::bigint FROM {ENTRIES} "
        f"WHERE {where} GROUP BY 1",
        (now, *values),
    )
    number = {state: size for state, size, _ in states}
    entries = f"FROM {ENTRIES} WHERE {where} AND {IS_ACTIVE}"
    found = *values, now
    types = session.fetch(f"SELECT memory_type, count(*) {entries} GROUP BY memory_type", found)
    tags = session.fetch(
        f"SELECT tags::text, count(*) {entries} AND tags IS NOT NULL GROUP BY tags::text", found
    )
    sealed = _sealed_stats(session, codec, scope, now)
    ((oldest, newest),) = session.fetch(f"SELECT min(created_at), max(created_at) {entries}", found)
    with reading_stored("a memory's type or time"):
        return LongTermMemoryStats(
            active_entries=number.get(MemoryStatus.ACTIVE, 0),
            archived_entries=number.get(MemoryStatus.ARCHIVED, 0),
            superseded_entries=number.get(MemoryStatus.SUPERSEDED, 0),
            forgotten_entries=number.get(_FORGOTTEN, 0),
            expired_entries=number.get(_EXPIRED, 0),
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


def _sealed_stats(session: Session, codec: RowCodec, scope: Scope, now: int) -> _SealedStats:
    """Return figures of the sealed entries of a scope, each of which is opened."""
    where, values = in_scope(scope)
    if not codec.seals:
        where = f"{where} AND is_encrypted"
        sizes = f"coalesce(sum({codec.content_size_sql}), 0)::bigint"
        sql = f"SELECT count(*), {sizes} FROM {ENTRIES} WHERE {where}"
        ((number, size),) = session.fetch(sql, values)
        return _SealedStats(number, number, size, [])
    where = f"{where} AND is_encrypted"
    number, readable, active = 0, 0, list[MemoryEntry]()
    moment = from_microseconds(now)
    for batch in session.batches(f"SELECT {ROW} FROM {ENTRIES} WHERE {where}", values, _AT_ONCE):
        found = readable_entries(codec, batch, scope)
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
    session: Session, codec: RowCodec, agent_id: str, rows: Sequence[int]
) -> dict[int, str]:
    """Return the contents of those of these rows that are active."""
    sql = (
        f"SELECT {ROW} FROM {ENTRIES} "
        f"WHERE agent_id = %s AND {HAS_ACTIVE_STATUS} AND {visible(codec)} AND {AMONG}"
    )
    found = session.fetch(sql, (agent_id, [int(row) for row in rows]))
    entries = readable_entries(codec, found, Scope(agent_id, all_users=True))
    return {row: entry.content for row, entry in entries.items()}


_OF_USER = (
    f"FROM {ENTRIES} AS entry WHERE entry.agent_id = wall.agent_id "
    "AND coalesce(entry.user_id, '') = wall.user_key"
)


def users(
    session: Session, agent_id: str, prefix: str | None, *, limit: int, offset: int, now: int
) -> list[UserUsage]:
    """Return the users who have entries, and what these take."""
    where, values = _begins_with(prefix or "")
    sql = (
        f"SELECT nullif(user_key, ''), (SELECT count(*) {_OF_USER} AND {IS_ACTIVE}), used_bytes "
        "FROM mnemic.agent_memory_walls AS wall "
        f"WHERE wall.agent_id = %s AND {where} AND EXISTS (SELECT 1 {_OF_USER}) "
        "ORDER BY user_key LIMIT %s OFFSET %s"
    )
    cut = (min(limit, sys.maxsize), min(offset, sys.maxsize))
    with reading_stored("a user"):
        return [UserUsage(*row) for row in session.fetch(sql, (now, agent_id, *values, *cut))]


def _begins_with(prefix: str) -> Condition:
    """Return the condition of users whose ids begin with a text: a range of the key."""
    if not prefix:
        return "true", []
    end = text_after(prefix)
    if end is None:
        return "user_key >= %s", [prefix]
    return "user_key >= %s AND user_key < %s", [prefix, end]


def owned(
    session: Session, codec: RowCodec, agent_id: str, wanted: Sequence[OwnedId]
) -> list[Columns]:
    """Return row, user, id, version and time of change of entries, by user and id."""
    sql = (
        f"SELECT row, user_id, id, version, updated_at FROM {ENTRIES} AS entry "
        "JOIN unnest(%s::text[], %s::uuid[]) AS wanted (wanted_user, wanted_id) "
        f"ON id = wanted_id AND {USER_KEY} = wanted_user "
        f"WHERE agent_id = %s AND {visible(codec)}"
    )
    names = [user_id or "" for user_id, _ in wanted]
    return session.fetch(sql, (names, [entry_id for _, entry_id in wanted], agent_id))


def rows_with_vectors(session: Session, agent_id: str, rows: Sequence[int], model: str) -> set[int]:
    """Return those of these rows that have a vector of a model; zeros stand for no vector."""
    sql = (
        f"SELECT entry_row FROM {EMBEDDINGS} WHERE agent_id = %s AND entry_row = ANY(%s) "
        "AND model = %s AND NOT is_companion AND part = 0 "
        f"AND {session.pgvector}.vector_norm(embedding) > 0 "
        f"UNION SELECT entry_row FROM {SEALED_VECTORS} WHERE agent_id = %s AND entry_row = ANY(%s) "
        "AND model = %s AND part = 0"
    )
    some = agent_id, list(rows), model
    return {row for (row,) in session.fetch(sql, (*some, *some))}
