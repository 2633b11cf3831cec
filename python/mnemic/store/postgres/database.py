"""A database as one process uses it: shared by its stores, which may be one for each agent."""

import os
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast
from uuid import UUID

import psycopg

from mnemic.errors import (
    MnemicError,
    OutcomeUnknownError,
    StoreClosedError,
    StoreUnavailableError,
)
from mnemic.reporting.logs import logger
from mnemic.store.accesses import AccessFlush, PendingAccesses
from mnemic.store.changes import COMMITTED, ChangedUser
from mnemic.store.futures import Workers
from mnemic.store.group_commit import Finish, Job, Writer, unchanged
from mnemic.store.new_rows import AddedRows
from mnemic.store.postgres.connections import MAX_CONNECTIONS, Connections
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.positions import Positions
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.target import Target
from mnemic.store.postgres.vector_indexes import VectorIndexBuilds
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.sql.adding import AddJob
from mnemic.store.sql.change_log import position, write_accesses
from mnemic.store.sql.session import Deletion, OpenedSql
from mnemic.store.values import LogPosition
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import Event, InnerLock, Lock, ReentrantLock
from mnemic.threads.waited_future import WaitedFuture

if TYPE_CHECKING:
    from mnemic.store.postgres.cached_rows import CachedRows

Result = TypeVar("Result")

_Key: TypeAlias = tuple[int, str, bool]
"""Process, URL, and whether nothing may be changed."""

WRITERS: Final = MAX_CONNECTIONS // 2
"""Writes that run at once; those of one agent wait for each other. The rest is left for reads."""

MAX_DELAY: Final = 1.0
"""Seconds after which recorded accesses are written, if no call asks for it before."""

_LOGGED: Final = (
    "SELECT EXISTS (SELECT FROM mnemic.agent_memory_changes WHERE agent_id = %s "
    "AND seq > %s AND seq <= %s AND entry_row = %s AND entry_id = %s AND kind = 'add')"
)

_log = logger(__name__)


class AgentJob:
    """A job that changes memories of known agents, and stores none under new ids.

    Args:
        agents: The agents whose memories it may change, which are locked for it.
        work: The work.
        is_idempotent: Whether doing it twice is as good as once.
    """

    __slots__ = ("_work", "agents", "is_idempotent")

    stored: AddedRows | None = None

    def __init__(
        self,
        agents: tuple[str, ...],
        work: Callable[[Session], Any],
        *,
        is_idempotent: bool = False,
    ) -> None:
        self.agents = agents
        self.is_idempotent = is_idempotent
        self._work = work

    def __call__(self, session: Session) -> Any:
        """Do the work."""
        return self._work(session)


_TURN: Final = AgentJob((), lambda _: None)
"""Does nothing: its future is done once all jobs before it are."""


class Database:
    """Connections, queued writes, pending accesses and known positions of a database.

    Args:
        target: The database; its tables are brought up to date.
        read_only: Whether nothing may be changed.

    Attributes:
        connections: The connections.
        positions: Asks for the positions of agents.
        workers: Threads for blocking calls.
        accesses: Accesses that are not written yet.
        cached: Rows of active entries of the agents whose indexes are loaded, by agent.
        vector_indexes: Builds approximate indexes.
        key: What it is known by in this process.
        users: Number of its stores; changed by `SHARED`.
    """

    def __init__(self, target: Target, *, read_only: bool) -> None:
        self.connections = Connections(target, read_only=read_only)
        self._writers = [Writer(ServerTransactions(self)) for _ in range(WRITERS)]
        self.workers = Workers(MAX_CONNECTIONS)
        self.key = _key(target, read_only=read_only)
        self.users = 1
        self._ending = Event()
        self.accesses = PendingAccesses()
        self.cached: dict[str, CachedRows] = {}
        self.vector_indexes = VectorIndexBuilds(target)
        self.positions = Positions(target, self.position)

    def position(self, agent_id: str) -> LogPosition:
        """Return an agent's position, read from the server."""
        found = self.connections.read([agent_id], lambda on: position(on, agent_id))
        self.positions.advance({agent_id: found})
        return found

    def write(
        self,
        agents: Sequence[str] | None,
        work: Callable[[Session], Result],
        outcome_check: Callable[[], Callable[[Session], bool] | None] | None = None,
    ) -> Result:
        """Run work in a transaction; then make its changes known in this process.

        They are made known also where it failed, for a commit may have failed after it was done.
        See `Connections.write`.
        """
        changed: set[ChangedUser] = set()
        positions: dict[str, LogPosition] = {}

        def noted(session: Session) -> Result:
            result = work(session)
            changed.update(session.changed_users)
            positions.clear()
            positions.update(session.positions)
            return result

        name, is_known = self.connections.database, False
        try:
            result = self.connections.write(agents, noted, outcome_check)
            is_known = True
            return result
        finally:
            for database in SHARED.of(name):
                if is_known:
                    database.positions.advance(positions)
                elif changed:
                    database.positions.forget(agents or sorted(positions))
            if changed:
                COMMITTED.notify(name, changed)

    def writer_of(self, agent_id: str) -> Writer:
        """Return the writer of an agent, which takes its jobs in their order."""
        return self._writers[hash(agent_id) % WRITERS]

    def touch(self, agent_id: str, rows: list[int], time: int) -> None:
        """Record accesses of rows, written later together."""
        if self.accesses.add(agent_id, rows, time):
            self._write_later()

    def _write_later(self) -> None:
        if not self._ending.is_set():
            start_thread(thread_of("accesses", _flush, weakref.ref(self), self._ending))

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far, and wait for those that are being written."""
        for writer in self._writers:
            writer.check_free()  # before accesses are taken out
        written = [self.write_accesses_of(agent_id) for agent_id in self.accesses.agents()]
        return _all_of(written + [writer.submit(_TURN) for writer in self._writers])

    def write_accesses_of(self, agent_id: str) -> Future[None]:
        """Write the accesses of an agent recorded so far.

        They are taken under the agent's lock: a memory may be stored again while the write waits
        for that, and must not get the accesses of the old one.
        """
        writer, flush = self.writer_of(agent_id), self.accesses.flush()
        writer.check_free()  # before accesses are taken out

        def write(session: Session) -> None:
            taken = flush.taken([agent_id])
            if taken:
                session.positions.update(write_accesses(session, taken))

        try:
            future = writer.submit(AgentJob((agent_id,), write))
        except BaseException:
            flush.ended()
            raise
        future.add_done_callback(lambda done: self._end(flush, done))
        return future

    def _end(self, flush: AccessFlush, written: Future[None]) -> None:
        """End a flush; while the server is unreachable, its accesses are kept for the next one."""
        if not written.cancelled() and isinstance(written.exception(), StoreUnavailableError):
            flush.postponed()
        else:
            flush.ended()
        if self.accesses.is_pending():
            self._write_later()

    def flush_quietly(self) -> None:
        """Write recorded accesses that no caller waits for; a failure is logged."""
        try:
            self.write_accesses().result()
        except MnemicError as error:
            _log.warning("Accesses were not written: %s", error)

    def settle(self) -> None:
        """Finish the writes that were handed in, and write the accesses recorded so far."""
        if any(writer.is_held_here() for writer in self._writers):
            return
        for done in [writer.submit(_TURN) for writer in self._writers]:
            done.result()
        if self.accesses.is_pending() and not self.connections.is_read_only:
            self.flush_quietly()

    def close(self) -> None:
        """Finish everything, and release the connections."""
        if self.connections.is_foreign:  # in a forked process its locks may never be released
            return
        self._ending.set()
        self.workers.close()
        for writer in self._writers:
            writer.close()
        self.vector_indexes.close()
        self.positions.close()
        self.connections.close()


def _all_of(futures: Sequence[Future[None]]) -> Future[None]:
    """Return a future that is done once all are, with the error of one that failed."""
    whole: Future[None] = WaitedFuture()
    whole.set_running_or_notify_cancel()  # whoever waits for it does not cancel it
    left, lock = list(futures), Lock()

    def settle(done: Future[None]) -> None:
        with lock:
            left.remove(done)
            if left:
                return
        found = [each.exception() for each in futures]
        # Where a connection was lost during a commit, accesses are counted or not, as after a
        # crash: a read that writes them first has its answer.
        errors = [one for one in found if one and not isinstance(one, OutcomeUnknownError)]
        whole.set_exception(errors[0]) if errors else whole.set_result(None)

    for each in futures:
        each.add_done_callback(settle)
    return whole


def _flush(database: "weakref.ref[Database]", ending: Event) -> None:
    if ending.wait(MAX_DELAY):
        return
    alive = database()
    if alive is not None and alive.accesses.is_pending():
        alive.flush_quietly()


class ServerTransactions:
    """See `Transactions`. Each runs on any connection, with the locks of its jobs' agents.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._connections = database.connections
        self._write = database.write
        self.turn = InnerLock()
        self.holder: int | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return self._connections.is_foreign

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        self._connections.check_usable()

    def commit(self, jobs: Sequence[Any], work: Callable[[Session], Result]) -> Result:
        """Run work in a transaction, and notify of its changes."""
        agents = sorted({agent_id for job in jobs for agent_id in job.agents})
        if not agents:  # nothing to write, though the server may be unreachable
            return work(cast("Any", None))
        return self._write(agents, work, lambda: outcome_check(jobs))

    def is_lost(self, session: Session, error: BaseException) -> bool:
        """Return whether an error ended the transaction, or `commit` has to restart it."""
        return session.connection.closed or self.is_repeated(error)

    def is_repeated(self, error: BaseException) -> bool:
        """Return whether `commit` runs its work again after this error."""
        return self._connections.is_repeated(error)

    def typed(self, error: BaseException) -> BaseException:
        """Return mnemic's error for one of PostgreSQL, or another error itself."""
        return self._connections.typed(error) if isinstance(error, psycopg.Error) else error


def outcome_check(jobs: Sequence[AgentJob | AddJob]) -> Callable[[Session], bool] | None:
    """Return how to find out whether a transaction that ran jobs was committed.

    The change log shows it where one of them stored memories under new ids. Those that replaced
    others are not recognised: another writer may have replaced the same ones.

    Returns:
        A function to be called under the locks of the jobs' agents, which the lost transaction held
        until its end; None if the outcome is unknown.
    """
    if all(isinstance(job, AgentJob) and job.is_idempotent for job in jobs):
        return lambda _: False  # do it again
    ran = [job.stored for job in jobs]
    if ran and all(stored is not None and not stored.steps for stored in ran):
        return lambda _: True  # there was nothing to commit
    for job, stored in zip(jobs, ran, strict=True):
        if stored is not None and any(outcome.is_new for outcome in stored.outcomes):
            return _check_of(job.agents[0], stored)
    return None


def _check_of(agent_id: str, stored: AddedRows) -> Callable[[Session], bool]:
    """Return whether what an addition stored is in the change log, under its numbers.

    The last new memory tells: a long addition drops the first of its own changes from the log.
    """
    *_, last = [outcome for outcome in stored.outcomes if outcome.is_new]
    entry_id = uuid_of(last.entry_id)
    values = agent_id, stored.seq - stored.steps, stored.seq, last.row, entry_id
    return lambda session: bool(session.value(_LOGGED, values))


def _key(target: Target, *, read_only: bool) -> _Key:
    return os.getpid(), target.conninfo, read_only


class _SharedDatabases:
    """The databases that are open in this process."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start again; after a fork, for another thread may have held a lock."""
        self._lock = ReentrantLock()  # the garbage collector may release one at any time
        self._opening: dict[_Key, ReentrantLock] = {}
        self._open: dict[_Key, Database] = {}

    def opened(self, target: Target, *, read_only: bool) -> Database:
        """Return a database, opened unless it is; `released` ends its use."""
        key = _key(target, read_only=read_only)
        with self._lock:
            opening = self._opening.setdefault(key, ReentrantLock())
        with opening:  # not the other lock, which writes to other databases take
            with self._lock:
                known = self._open.get(key)
                if known is not None:
                    known.users += 1
                    return known
            database = Database(target, read_only=read_only)
            with self._lock:
                self._open[key] = database
            return database

    def released(self, database: Database) -> None:
        """End a use of a database; the last one closes it."""
        with self._lock:
            if self._open.get(database.key) is not database:
                return  # of the process that this one was forked from
            database.users -= 1
            if database.users:
                return
            del self._open[database.key]
        database.close()

    def of(self, name: object) -> list[Database]:
        """Return the open databases that are this one."""
        with self._lock:
            found = list(self._open.values())  # the collector may release one meanwhile
        return [each for each in found if each.connections.database == name]


SHARED: Final = _SharedDatabases()
"""The databases of this process."""


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
        self.marked = codec.marked
        self._is_read_only = read_only
        self._max_stale = max_stale
        self._database = SHARED.opened(target, read_only=read_only)
        self.accesses = self._database.accesses
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

    def _submit(
        self,
        agent_id: str,
        job: Job,
        finish: Finish = unchanged,
        *,
        is_idempotent: bool = False,
        after_accesses: bool = False,
    ) -> Future[Any]:
        database = self._writable()
        if after_accesses and database.accesses.is_pending():
            database.write_accesses_of(agent_id)
        if not isinstance(job, AddJob):
            job = AgentJob((agent_id,), job, is_idempotent=is_idempotent)
        return database.writer_of(agent_id).write(job, finish)

    def _write_in_parts(
        self,
        agent_id: str,
        deletion: Deletion,
        finish: Callable[[list[UUID]], list[UUID]] = unchanged,
    ) -> Future[list[UUID]]:
        return self._submit(agent_id, partial(deletion, None), finish)
