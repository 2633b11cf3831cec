"""The numbers of entries and bytes that the SQLite store gives, and its users."""

from contextlib import closing
from datetime import datetime

from mnemic.model import LongTermMemoryStats, Scope, UserUsage
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.filters import beginning_with
from mnemic.store.sqlite.change_log import used_by_user
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.reads import DECODED_AT_ONCE, readable_entries, used_bytes
from mnemic.store.sqlite.sql import (
    IS_ACTIVE,
    fetch,
    fetch_batches,
    in_scope,
    integers,
    one_moment,
    visible_in,
)
from mnemic.store.usage import STATE, SealedCounts, sealed_stats, statistics

_OF_USER = "entry.agent_id = wall.agent_id AND entry.user_id IS nullif(wall.user_key, '')"
# A user's row stays when the last entry goes.
_USERS = (
    "SELECT nullif(user_key, ''), (SELECT count(*) FROM agent_memory_entries AS entry "
    f"INDEXED BY agent_memory_entries_by_user WHERE {_OF_USER} AND {IS_ACTIVE}), used_bytes "
    "FROM agent_memory_walls AS wall WHERE wall.agent_id = ? AND {where} "
    "AND EXISTS (SELECT 1 FROM agent_memory_entries AS entry "
    f"INDEXED BY agent_memory_entries_by_user WHERE {_OF_USER}) "
    "ORDER BY user_key LIMIT ? OFFSET ?"
)


class SqliteUsageReads(SqliteFile):
    """Counts what agents and users store; see `UsageReads`."""

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, deleted entries included."""
        with self._reading() as connection:
            return used_bytes(connection, agent_id)

    def used_by_user(self, agent_id: str, user_id: str | None) -> int:
        """Return the bytes of a user's contents, deleted entries included."""
        with self._reading() as connection:
            return used_by_user(connection, agent_id, user_id)

    def stored_entries(self, scope: Scope) -> int:
        """Return the number of entries of a scope in any state."""
        where, values = in_scope(scope)
        sql = f"SELECT count(*) FROM agent_memory_entries WHERE {where}"
        with self._reading() as connection:
            return int(fetch(connection, sql, values)[0][0])

    def users(
        self, agent_id: str, *, prefix: str | None, limit: int, offset: int, now: datetime
    ) -> list[UserUsage]:
        """Return the users who have entries, and what these take."""
        where, values = beginning_with(prefix or "", "user_key")
        bound = (to_microseconds(now), agent_id, *values, limit, offset)
        with self._reading() as connection:
            found = fetch(connection, _USERS.format(where=where), bound)
            with reading_stored("a user"):
                return [UserUsage(*columns) for columns in found]

    def stats(
        self, scope: Scope, *, now: datetime, deadline: float | None = None
    ) -> LongTermMemoryStats:
        """Return statistics of a scope, as of one moment."""
        codec, time = self._codec, to_microseconds(now)
        where, values = visible_in(scope, codec)
        found = *values, time
        in_states = (
            f"SELECT {STATE.format(now='?')}, count(*), sum({codec.content_size_sql}) "
            f"FROM agent_memory_entries WHERE {where} GROUP BY 1"
        )
        entries = f"FROM agent_memory_entries WHERE {where} AND {IS_ACTIVE}"
        by_type = f"SELECT memory_type, count(*) {entries} GROUP BY memory_type"
        by_tags = f"SELECT tags, count(*) {entries} AND tags IS NOT NULL GROUP BY tags"
        ends = f"SELECT min(created_at), max(created_at) {entries}"
        with self._reading(deadline) as connection, one_moment(connection):
            states = fetch(connection, in_states, (time, *values))
            types, tags, times = (fetch(connection, sql, found) for sql in (by_type, by_tags, ends))
            sealed = _sealed_stats(connection, codec, scope, time)
            with reading_stored("a memory's type or time"):
                return statistics(codec, states, types=types, tags=tags, times=times, sealed=sealed)


def _sealed_stats(
    connection: GuardedConnection, codec: RowCodec, scope: Scope, now: int
) -> SealedCounts:
    """Return figures of the sealed entries of a scope, each of which is opened."""
    where, values = in_scope(scope)
    where = f"{where} AND is_encrypted <> 0"
    if not codec.seals:
        sql = f"SELECT count(*), ifnull(sum({codec.content_size_sql}), 0) FROM agent_memory_entries"
        number, size = integers(fetch(connection, f"{sql} WHERE {where}", values)[0])
        return SealedCounts(number, number, size, [])
    sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where}"
    with closing(fetch_batches(connection, sql, values, DECODED_AT_ONCE)) as batches:
        return sealed_stats(batches, lambda rows: readable_entries(codec, scope, rows), now)
