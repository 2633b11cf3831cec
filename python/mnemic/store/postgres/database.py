"""A database as one process uses it: shared by its stores, which may be one for each agent."""

import os
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, TypeAlias, TypeVar

from mnemic.errors import MnemicError, OutcomeUnknownError, StoreUnavailableError
from mnemic.reporting.logs import logger
from mnemic.store.changes import COMMITTED, ChangedUser
from mnemic.store.futures import Workers, succeeded
from mnemic.store.group_commit import Writer
from mnemic.store.postgres.cached_rows import CachedAgents
from mnemic.store.postgres.connections import MAX_CONNECTIONS, Connections
from mnemic.store.postgres.positions import Positions
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.target import Target
from mnemic.store.postgres.transactions import AccessJob, ServerTransactions, TurnJob
from mnemic.store.postgres.vector_indexes import VectorIndexBuilds
from mnemic.store.sql.accesses import AccessFlush, PendingAccesses
from mnemic.store.sql.change_log import position
from mnemic.store.values import LogPosition
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.conditions import Event
from mnemic.threads.locks import Lock, ReentrantLock
from mnemic.threads.waited_future import WaitedFuture

Result = TypeVar("Result")

_Key: TypeAlias = tuple[int, str, bool]
"""Process, URL, and whether nothing may be changed."""

WRITERS: Final = MAX_CONNECTIONS // 2
"""Writes that run at once; those of one agent wait for each other. The rest is left for reads."""

MAX_DELAY: Final = 1.0
"""Seconds after which recorded accesses are written, if no call asks for it before."""

_log = logger(__name__)


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
        cached: Rows of active entries of the agents whose indexes are loaded.
        vector_indexes: Builds approximate indexes.
    """

    def __init__(self, target: Target, *, read_only: bool) -> None:
        self.connections = Connections(target, read_only=read_only)
        transactions = [ServerTransactions(self.connections, self.write) for _ in range(WRITERS)]
        self._writers = list(map(Writer, transactions))
        self.workers = Workers(MAX_CONNECTIONS)
        self._ending = Event()
        self.accesses = PendingAccesses()
        self.cached = CachedAgents()
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
        return _all_of(written + [writer.submit(TurnJob()) for writer in self._writers])

    def write_accesses_of(self, agent_id: str) -> Future[None]:
        """Write the accesses of an agent recorded so far."""
        self.writer_of(agent_id).check_free()  # before accesses are taken out
        flush = self.accesses.flush()
        try:
            future = self.writer_of(agent_id).submit(AccessJob(flush, agent_id))
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
        for done in [writer.submit(TurnJob()) for writer in self._writers]:
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
    if not futures:
        return succeeded(None)
    whole: Future[None] = WaitedFuture()
    whole.set_running_or_notify_cancel()  # whoever waits for it does not cancel it
    left, lock = list(futures), Lock()

    def settle(done: Future[None]) -> None:
        with lock:
            left.remove(done)
            is_last = not left
        if is_last:
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


class _SharedDatabases:
    """The databases that are open in this process, each with the number of its stores."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start again; after a fork, for another thread may have held a lock."""
        self._lock = ReentrantLock()  # the garbage collector may release one at any time
        self._opening: dict[_Key, ReentrantLock] = {}
        self._open: dict[_Key, tuple[Database, int]] = {}

    def opened(self, target: Target, *, read_only: bool) -> Database:
        """Return a database, opened unless it is; `released` ends its use."""
        key = (os.getpid(), target.conninfo, read_only)
        with self._lock:
            opening = self._opening.setdefault(key, ReentrantLock())
        with opening:  # not the other lock, which writes to other databases take
            known = self._joined(key)
            if known is not None:
                return known
            database = Database(target, read_only=read_only)
            with self._lock:
                self._open[key] = database, 1
            return database

    def _joined(self, key: _Key) -> Database | None:
        with self._lock:
            if key not in self._open:
                return None
            database, users = self._open[key]
            self._open[key] = database, users + 1
            return database

    def released(self, database: Database) -> None:
        """End a use of a database; the last one closes it."""
        with self._lock:
            uses = {known: (key, users) for key, (known, users) in self._open.items()}
            if database not in uses:
                return  # of the process that this one was forked from
            key, users = uses[database]
            if users > 1:
                self._open[key] = database, users - 1
                return
            del self._open[key]
        database.close()

    def of(self, name: object) -> list[Database]:
        """Return the open databases that are this one."""
        with self._lock:
            return [each for each, _ in self._open.values() if each.connections.database == name]


SHARED: Final = _SharedDatabases()
"""The databases of this process."""
