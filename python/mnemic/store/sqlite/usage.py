"""The numbers of entries and bytes that the SQLite store gives."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from mnemic.model import LongTermMemoryStats, Scope, UserUsage
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite import change_log, reads, users
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import one_moment


class SqliteUsageReads(Protocol):
    """Counts what agents and users store; see `UsageReads`."""

    _codec: RowCodec

    def _reading(self, deadline: float | None = None) -> AbstractContextManager[GuardedConnection]:
        """Lend a connection that reads."""
        ...

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, deleted entries included."""
        with self._reading() as connection:
            return reads.used_bytes(connection, agent_id)

    def used_by_user(self, agent_id: str, user_id: str | None) -> int:
        """Return the bytes of a user's contents, deleted entries included."""
        with self._reading() as connection:
            return change_log.used_by_user(connection, agent_id, user_id)

    def stored_entries(self, scope: Scope) -> int:
        """Return the number of entries of a scope in any state."""
        with self._reading() as connection:
            return reads.stored_entries(connection, scope)

    def users(
        self, agent_id: str, *, prefix: str | None, limit: int, offset: int, now: datetime
    ) -> list[UserUsage]:
        """Return the users who have entries, and what these take."""
        with self._reading() as connection:
            time = to_microseconds(now)
            return users.users(connection, agent_id, prefix, limit=limit, offset=offset, now=time)

    def stats(
        self, scope: Scope, *, now: datetime, deadline: float | None = None
    ) -> LongTermMemoryStats:
        """Return statistics of a scope, as of one moment."""
        with self._reading(deadline) as connection, one_moment(connection):
            return reads.stats(connection, self._codec, scope, to_microseconds(now))
