"""The numbers of entries and bytes that the stores in SQL give, and their users."""

from contextlib import closing
from operator import index
from typing import Final, NamedTuple

from mnemic.model import (
    LongTermMemoryStats,
    MemoryEntry,
    MemoryType,
    Scope,
    UserUsage,
)
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.operations import ScopeStatistics, StoredAmount, Users
from mnemic.store.row_codec import RowCodec
from mnemic.store.rules import EXPIRED, FORGOTTEN, statistics_of
from mnemic.store.sql.conditions import (
    ENTRIES,
    IS_ACTIVE,
    beginning_with,
    cut,
    in_scope,
    visible_in,
)
from mnemic.store.sql.reads import readable_entries
from mnemic.store.sql.session import SqlSession

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
