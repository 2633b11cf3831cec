"""The reads of entries and their vectors by id and by row, of users, and of statistics, in SQL."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from operator import index, itemgetter
from typing import Final, NamedTuple
from uuid import UUID

from mnemic.arrays import Float32Array, np
from mnemic.errors import SealBrokenError, StoreCorruptError
from mnemic.model import (
    LongTermMemoryStats,
    MemoryEntry,
    MemoryType,
    Scope,
    UserUsage,
)
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.operations import (
    EntriesById,
    EntriesByRow,
    ScopeStatistics,
    StoredAmount,
    StoredEntries,
    Users,
    VectorsById,
    VectorsOfRow,
)
from mnemic.store.row_codec import RowCodec, encoded_row, text_of, uuid_of, whole
from mnemic.store.rules import EXPIRED, FORGOTTEN, single, statistics_of
from mnemic.store.sealing_codec import log_broken
from mnemic.store.sql.conditions import (
    ENTRIES,
    IS_ACTIVE,
    IS_PRESENT,
    beginning_with,
    cut,
    in_scope,
    visible,
    visible_in,
    with_ids,
)
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.values import EntryRow, EntryVectors, OwnedId, StoredEntry

_number = itemgetter(0)


def entries_by_id(on: SqlSession, codec: RowCodec, wanted: EntriesById) -> dict[UUID, EntryRow]:
    """Return entries and their rows by id."""
    dialect, scope = on.dialect, wanted.scope
    where, values = with_ids(dialect, scope, wanted.ids)
    where = f"{where} AND {visible(codec)}"
    if not wanted.include_deleted:
        where, values = f"{where} AND {IS_ACTIVE}", [*values, to_microseconds(wanted.now)]
    sql = f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_index('id')} WHERE {where}"
    stored = on.fetch(sql, values)
    by_id: dict[UUID, list[EntryRow]] = {entry_id: [] for entry_id in wanted.ids}
    for one in map(EntryRow, map(_number, stored), dialect.entries(codec, stored, scope)):
        others = by_id.get(one.entry.id)
        if others is None or one in others:
            raise StoreCorruptError(f"an index leads to another memory; {dialect.damaged}")
        others.append(one)
    located: dict[UUID, EntryRow] = {}
    for entry_id, found in by_id.items():
        only = single(found, scope, entry_id)
        if only is not None:
            located[entry_id] = only
    return located


def entries_by_row(on: SqlSession, codec: RowCodec, wanted: EntriesByRow) -> dict[int, MemoryEntry]:
    """Return entries by row."""
    time = to_microseconds(wanted.now)
    return entries_of_rows(
        on, codec, wanted.scope, wanted.rows, time, include_deleted=wanted.include_deleted
    )


def stored_entries(on: SqlSession, codec: RowCodec, wanted: StoredEntries) -> list[StoredEntry]:
    """Return entries in the order they were stored."""
    scope, dialect = wanted.scope, on.dialect
    where, values = visible_in(scope, codec)
    if not wanted.include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(wanted.now)]
    sql = (
        f"SELECT {dialect.keyed_row} FROM {ENTRIES} {dialect.by_index('agent')} "
        f"WHERE {where} AND row > ? ORDER BY row LIMIT ?"
    )
    after, limit = wanted.after, min(wanted.limit, sys.maxsize)
    while found := on.fetch(sql, (*values, after, limit)):
        stored = _stored(on, codec, scope, found, wanted.model)
        if stored:
            return stored
        after = found[-1][0]  # of a page whose seals are all broken
    return []


def vectors_of_row(on: SqlSession, codec: RowCodec, wanted: VectorsOfRow) -> Float32Array:
    """Return the vectors of a row's chunks."""
    row = wanted.row
    found = on.dialect.vectors(on, codec, wanted.agent_id, [row], wanted.model)
    return found.get(row, np.empty((0, 0), dtype=np.float32))


def vectors_by_id(
    on: SqlSession, codec: RowCodec, wanted: VectorsById
) -> dict[OwnedId, EntryVectors]:
    """Return the vectors of entries by user and id."""
    dialect, agent_id = on.dialect, wanted.agent_id
    named, values = dialect.owned_ids(wanted.entries)
    sql = (
        f"SELECT row, user_id, id, version, updated_at FROM {named} {ENTRIES} "
        f"ON agent_id = ? AND id = wanted_id AND {dialect.user_key} = wanted_user "
        f"WHERE {visible(codec)}"
    )
    found = on.fetch(sql, (*values, agent_id))
    vectors = dialect.vectors(on, codec, agent_id, [row for row, *_ in found], wanted.model)
    for own in vectors.values():
        own.flags.writeable = False  # entries show them
    with dialect.reading_stored("a memory's state"):
        return {
            (user_id, uuid_of(entry_id)): EntryVectors(
                whole(version), whole(updated_at), vectors.get(row)
            )
            for row, user_id, entry_id, version, updated_at in found
        }


def readable(
    rows: Sequence[Columns], entries_of: Callable[[Sequence[Columns]], Sequence[MemoryEntry]]
) -> dict[int, MemoryEntry]:
    """Return the entries of rows by row; those whose seal is broken are logged and left out."""
    try:
        entries = entries_of(rows)
    except SealBrokenError as error:
        if len(rows) > 1:
            found = [readable([row], entries_of) for row in rows]
            return {row: entry for one in found for row, entry in one.items()}
        log_broken(error)
        return {}
    return {row[0]: entry for row, entry in zip(rows, entries, strict=True)}


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
    is_wanted, wanted = dialect.among_rows(rows, "row")
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} "
        f"WHERE {where} AND {is_wanted} ORDER BY row"
    )
    found: dict[int, MemoryEntry] = {}
    with closing(on.parts(sql, (*values, *wanted))) as parts:
        for part in parts:
            found.update(readable_entries(on, codec, scope, part))
    return found


def _stored(
    on: SqlSession, codec: RowCodec, scope: Scope, found: list[Columns], model: str | None
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries, dialect = readable_entries(on, codec, scope, found), on.dialect
    found = [columns for columns in found if columns[0] in entries]
    vectors: dict[int, Float32Array] = {}
    if model is not None:
        vectors = dialect.readable_vectors(on, codec, scope.agent_id, found, model)
    with dialect.reading_stored("a memory's key"):
        return [
            _with_vectors(codec, columns, entries[columns[0]], vectors.get(columns[0]), model)
            for columns in found
        ]


def _with_vectors(
    codec: RowCodec,
    columns: Columns,
    entry: MemoryEntry,
    vectors: Float32Array | None,
    model: str | None,
) -> StoredEntry:
    """Return the entry of a row with its idempotency key and the vectors of a model."""
    more: Sequence[Float32Array] = ()
    if vectors is not None and model is not None:
        first, *more = vectors
        entry = entry.with_embedding(first, model)
    used = codec.used_key(encoded_row(columns))
    return StoredEntry(columns[0], entry, text_of(used and used.key), tuple(more))


_AGENT_BYTES: Final = "SELECT used_bytes FROM mnemic.agent_memory_agents WHERE agent_id = ?"
_USER_BYTES: Final = (
    "SELECT used_bytes FROM mnemic.agent_memory_walls WHERE agent_id = ? AND user_key = ?"
)
_OPENED_AT_ONCE: Final = 512
_STATE: Final = (
    f"CASE WHEN forgotten_at IS NOT NULL THEN {FORGOTTEN} WHEN expires_at <= ? THEN {EXPIRED} "
    "ELSE status END"
)
"""The one state that an entry is in, in SQL; the value to bind is the time now."""


def stored_amount(on: SqlSession, _codec: RowCodec, wanted: StoredAmount) -> int:
    """Return the bytes of the contents of an agent or a user, or the number of entries."""
    return (used_bytes if wanted.unit == "bytes" else number_of)(on, wanted.scope)


def users(on: SqlSession, _codec: RowCodec, wanted: Users) -> list[UserUsage]:
    """Return the users who have entries, and what these take."""
    where, values = beginning_with(wanted.prefix or "", "user_key")
    entries = on.dialect.entries_of_wall
    # A user's row stays when the last entry goes.
    sql = (
        f"SELECT nullif(user_key, ''), (SELECT count(*) {entries} AND {IS_ACTIVE}), used_bytes "
        f"FROM mnemic.agent_memory_walls AS wall WHERE wall.agent_id = ? AND {where} "
        f"AND EXISTS (SELECT 1 {entries}) ORDER BY user_key LIMIT ? OFFSET ?"
    )
    page = cut(wanted.limit, wanted.offset)
    found = on.fetch(sql, (to_microseconds(wanted.now), wanted.agent_id, *values, *page))
    with on.dialect.reading_stored("a user"):
        return [UserUsage(*columns) for columns in found]


def statistics(on: SqlSession, codec: RowCodec, wanted: ScopeStatistics) -> LongTermMemoryStats:
    """Return statistics of a scope."""
    time = to_microseconds(wanted.now)
    where, values = visible_in(wanted.scope, codec)
    in_states = (
        f"SELECT {_STATE}, count(*), CAST(sum({codec.content_size_sql}) AS bigint) "
        f"FROM {ENTRIES} WHERE {where} GROUP BY 1"
    )
    entries = f"FROM {ENTRIES} WHERE {where} AND {IS_ACTIVE}"
    by_type = f"SELECT memory_type, count(*) {entries} GROUP BY memory_type"
    by_tags = f"SELECT CAST(tags AS text), count(*) {entries} AND tags IS NOT NULL GROUP BY 1"
    ends = f"SELECT min(created_at), max(created_at) {entries}"
    states = on.fetch(in_states, (time, *values))
    types, tags, times = (on.fetch(sql, (*values, time)) for sql in (by_type, by_tags, ends))
    sealed = _sealed(on, codec, wanted.scope, time)
    with on.dialect.reading_stored("a memory's type or time"):
        oldest, newest = (None if time is None else from_microseconds(time) for time in times[0])
        return statistics_of(
            states,
            {MemoryType.numbered(kind): used for kind, used in types},
            [
                *((codec.decode_tags(stored), entries) for stored, entries in tags),
                *((entry.tags, 1) for entry in sealed.active),
            ],
            oldest=oldest,
            newest=newest,
            sealed=sealed.entries,
            unreadable=sealed.unreadable,
            hidden_bytes=sealed.hidden_bytes,
        )


def number_of(on: SqlSession, scope: Scope) -> int:
    """Return the number of entries of a scope, in any state."""
    where, values = in_scope(scope)
    return int(on.value(f"SELECT count(*) FROM {ENTRIES} WHERE {where}", values))


def used_bytes(on: SqlSession, scope: Scope) -> int:
    """Return the bytes of the contents of an agent or a user, deleted entries included."""
    if scope.all_users:
        found = on.fetch(_AGENT_BYTES, (scope.agent_id,))
    else:
        found = on.fetch(_USER_BYTES, (scope.agent_id, scope.user_id or ""))
    if not found:
        return 0
    try:  # a context manager takes a tenth of the time
        return index(found[0][0])
    except TypeError:
        with on.dialect.reading_stored("a number of bytes"):
            raise


class _SealedCounts(NamedTuple):
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


def _sealed(on: SqlSession, codec: RowCodec, scope: Scope, now: int) -> _SealedCounts:
    """Return figures of the sealed entries of a scope, each of which is opened."""
    where, values = in_scope(scope)
    found = f"FROM {ENTRIES} WHERE {where} AND {on.dialect.is_true('is_encrypted')}"
    if not codec.seals:
        size = f"coalesce(CAST(sum({codec.content_size_sql}) AS bigint), 0)"
        ((hidden, hidden_bytes),) = on.fetch(f"SELECT count(*), {size} {found}", values)
        with on.dialect.reading_stored("a number of bytes"):
            return _SealedCounts(hidden, hidden, index(hidden_bytes), [])
    number, opened, active = 0, 0, list[MemoryEntry]()
    moment = from_microseconds(now)
    sql = f"SELECT {on.dialect.row} {found}"
    with closing(on.batches(sql, values, _OPENED_AT_ONCE)) as batches:
        for batch in batches:
            entries = readable_entries(on, codec, scope, batch)
            number, opened = number + len(batch), opened + len(entries)
            active += [entry for entry in entries.values() if entry.is_active(moment)]
    return _SealedCounts(number, number - opened, 0, active)
