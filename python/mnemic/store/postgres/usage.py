"""The numbers of entries and bytes that the PostgreSQL store gives, and its users."""

import sys
from datetime import datetime

from mnemic.model import LongTermMemoryStats, Scope, UserUsage
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres.change_log import used_by_user, used_bytes
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.selected_rows import AT_ONCE
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import ENTRIES, IS_ACTIVE, ROW, in_scope, visible_in
from mnemic.store.postgres.stored import readable_entries, reading_stored
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.filters import beginning_with
from mnemic.store.usage import STATE, SealedCounts, sealed_stats, statistics

_OF_USER = (
    f"FROM {ENTRIES} AS entry WHERE entry.agent_id = wall.agent_id "
    "AND coalesce(entry.user_id, '') = wall.user_key"
)


class PostgresUsageReads(OpenedDatabase):
    """Counts what agents and users store; see `UsageReads`."""

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, deleted entries included."""
        return self._read(agent_id, lambda on: used_bytes(on, agent_id))

    def used_by_user(self, agent_id: str, user_id: str | None) -> int:
        """Return the bytes of a user's contents, deleted entries included."""
        return self._read(agent_id, lambda on: used_by_user(on, agent_id, user_id))

    def stored_entries(self, scope: Scope) -> int:
        """Return the number of entries of a scope in any state."""
        where, values = in_scope(scope)
        sql = f"SELECT count(*) FROM {ENTRIES} WHERE {where}"
        return self._read(scope.agent_id, lambda on: int(on.value(sql, values)))

    def users(
        self, agent_id: str, *, prefix: str | None, limit: int, offset: int, now: datetime
    ) -> list[UserUsage]:
        """Return the users who have entries, and what these take."""
        where, values = beginning_with(prefix or "", "user_key")
        sql = (
            f"SELECT nullif(user_key, ''), (SELECT count(*) {_OF_USER} AND {IS_ACTIVE}), "
            "used_bytes FROM mnemic.agent_memory_walls AS wall "
            f"WHERE wall.agent_id = %s AND {where} AND EXISTS (SELECT 1 {_OF_USER}) "
            "ORDER BY user_key LIMIT %s OFFSET %s"
        )
        cut = (min(limit, sys.maxsize), min(offset, sys.maxsize))
        found = self._read(
            agent_id,
            lambda on: on.fetch(sql, (to_microseconds(now), agent_id, *values, *cut)),
        )
        with reading_stored("a user"):
            return [UserUsage(*row) for row in found]

    def stats(
        self, scope: Scope, *, now: datetime, deadline: float | None = None
    ) -> LongTermMemoryStats:
        """Return statistics of a scope, as of one moment."""
        codec, time = self._codec, to_microseconds(now)
        where, values = visible_in(scope, codec)
        found = *values, time
        in_states = (
            f"SELECT {STATE.format(now='%s')}, count(*), sum({codec.content_size_sql})::bigint "
            f"FROM {ENTRIES} WHERE {where} GROUP BY 1"
        )
        entries = f"FROM {ENTRIES} WHERE {where} AND {IS_ACTIVE}"
        by_type = f"SELECT memory_type, count(*) {entries} GROUP BY memory_type"
        by_tags = f"SELECT tags::text, count(*) {entries} AND tags IS NOT NULL GROUP BY tags::text"
        ends = f"SELECT min(created_at), max(created_at) {entries}"

        def work(on: Session) -> LongTermMemoryStats:
            states = on.fetch(in_states, (time, *values))
            types, tags, times = (on.fetch(sql, found) for sql in (by_type, by_tags, ends))
            sealed = _sealed_stats(on, codec, scope, time)
            with reading_stored("a memory's type or time"):
                return statistics(codec, states, types=types, tags=tags, times=times, sealed=sealed)

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)


def _sealed_stats(session: Session, codec: RowCodec, scope: Scope, now: int) -> SealedCounts:
    """Return figures of the sealed entries of a scope, each of which is opened."""
    where, values = in_scope(scope)
    where = f"{where} AND is_encrypted"
    if not codec.seals:
        sizes = f"coalesce(sum({codec.content_size_sql}), 0)::bigint"
        sql = f"SELECT count(*), {sizes} FROM {ENTRIES} WHERE {where}"
        ((number, size),) = session.fetch(sql, values)
        return SealedCounts(number, number, size, [])
    sealed = session.batches(f"SELECT {ROW} FROM {ENTRIES} WHERE {where}", values, AT_ONCE)
    return sealed_stats(sealed, lambda rows: readable_entries(codec, rows, scope), now)
