"""What the parts of the PostgreSQL store share: its database, and the codec of its rows."""

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from mnemic.errors import StoreClosedError
from mnemic.store.group_commit import Finish, Job, unchanged
from mnemic.store.postgres.database import SHARED, Database
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.target import Target
from mnemic.store.postgres.transactions import AgentJob
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Deletion, OpenedSql
from mnemic.store.values import LogPosition

Result = TypeVar("Result")


class OpenedDatabase(OpenedSql):
    """One database, which every part of a store reads and writes.

    Args:
        target: The database.
        codec: Codec of the entries.
        read_only: Whether nothing may be changed.
        max_stale: Maximum seconds since the last sign of an unreachable server for which searches
            are answered from memory.
    """

    _dialect = POSTGRES

    def __init__(
        self, target: Target, codec: RowCodec, *, read_only: bool, max_stale: float
    ) -> None:
        self.path = target.shown
        self._codec = codec
        self._is_read_only = read_only
        self._max_stale = max_stale
        self._database = SHARED.opened(target, read_only=read_only)
        self._release = weakref.finalize(self, SHARED.released, self._database)

    def close(self) -> None:
        """Finish submitted writes, write accesses, and release the connections."""
        if self._release.alive and not self._database.connections.is_foreign:
            self._database.settle()
        self._release()

    def stale_since(self, agent_id: str, reads_since: float | None = None) -> datetime | None:
        """Since when changes of other processes may be missing; None while none can be."""
        return self._database.positions.stale_since(agent_id, reads_since)

    def position(self, agent_id: str) -> LogPosition:
        """Return the agent's position in its change log and access log."""
        return self._usable().position(agent_id)

    def known_position(self, agent_id: str) -> LogPosition:
        """Return the agent's position as far as searches of this process have asked."""
        known = self._usable().positions.known(agent_id)
        return self.latest_position(agent_id) if known is None else known

    def latest_position(self, agent_id: str, *, deadline: float | None = None) -> LogPosition:
        """Return the agent's position, which the server is asked for, for a search that begins."""
        return self._usable().positions.latest(agent_id, self._max_stale, deadline)

    def _usable(self) -> Database:
        """Return the database; raise a typed error if it cannot be read."""
        if not self._release.alive:
            raise StoreClosedError(f"the memory was closed ({self.path})")
        self._database.connections.check_usable()
        return self._database

    def _writable(self) -> Database:
        """Return the database; raise a typed error if it cannot be written."""
        database = self._usable()
        database.connections.check_writable()
        return database

    def _read(
        self,
        agent_id: str | None,
        work: Callable[[Session], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
        apart: bool = False,
    ) -> Result:
        agents = None if agent_id is None else [agent_id]
        connections = self._usable().connections
        return connections.read(agents, work, deadline=deadline, one_moment=one_moment, apart=apart)

    def _check_writable(self) -> None:
        self._writable()

    def _write(
        self,
        agent_id: str,
        job: Callable[[Session], Result],
        *,
        is_idempotent: bool = False,
        after_accesses: bool = False,
    ) -> Future[Result]:
        own = AgentJob(agent_id, job, is_idempotent=is_idempotent)
        return self._submit(agent_id, own, after_accesses=after_accesses)

    def _submit(
        self, agent_id: str, job: Job, finish: Finish = unchanged, *, after_accesses: bool = False
    ) -> Future[Any]:
        database = self._writable()
        if after_accesses and database.accesses.is_pending():
            database.write_accesses_of(agent_id)
        return database.writer_of(agent_id).write(job, finish)

    def _write_in_parts(
        self,
        agent_id: str,
        deletion: Deletion,
        finish: Callable[[list[UUID]], list[UUID]] = unchanged,
    ) -> Future[list[UUID]]:
        return self._submit(agent_id, AgentJob(agent_id, partial(deletion, None)), finish)
