"""Connections to a database: a pool of them, leased to one thread at a time."""

import logging
import os
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Final, TypeVar

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from mnemic.errors import (
    OutcomeUnknownError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)
from mnemic.model.deadline import check_deadline
from mnemic.store.errors import PATIENCE, failure_of
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.pool import Pool
from mnemic.store.postgres.postgres_errors import (
    FailedCall,
    attempted,
    code_of,
    reason_of,
    typed,
    with_typed_errors,
)
from mnemic.store.postgres.schema import (
    NAMES_NO_AGENTS,
    bypasses_row_security,
    check_readable,
    has_row_security,
    migrate,
    naming,
    turn_on_row_security,
)
from mnemic.store.postgres.session import Connection, Session, cancelled_with_task, prepare
from mnemic.store.postgres.target import Target
from mnemic.threads.locks import settling

Result = TypeVar("Result")

MAX_CONNECTIONS: Final = 8
"""Connections of one store: PostgreSQL starts a process for each, and 100 is its usual limit."""

_BACKOFF: Final = 2.0
"""Seconds of attempts to connect, at ever larger intervals, before they start again: after a long
absence of the server a call waits no longer for its return than after a short one, a second."""

_LIMIT_LOCKS: Final = (
    f"SELECT set_config('lock_timeout', '{PATIENCE:.0f}s', {{is_local}}) "
    "WHERE current_setting('lock_timeout') = '0'"
)
"""A statement waits for a lock, such as an agent's, no longer, unless the URL says how long."""

_LIMIT_LOCKS_OF_SEVERAL: Final = "SET LOCAL lock_timeout = '200ms'"
"""A group of several agents is split soon, if another program has the lock of one of them."""

_LIMIT_PAUSES: Final = "SET LOCAL idle_in_transaction_session_timeout = '60s'"
"""A process that is stopped in the midst of a write does not hold its locks forever."""

_LOST_STATEMENTS: Final = {"26000", "42P05"}
"""SQLSTATEs of a prepared statement that the server does not know, or another program prepared."""

_ATTEMPTS: Final = 5
"""Times that a transaction is begun which others made fail."""

_IDENTITY: Final = (
    "SELECT d.oid::bigint, (SELECT min(applied_at)::text FROM mnemic.schema_migrations) "
    "FROM pg_database AS d WHERE datname = current_database()"
)
"""Equal for all URLs of one database; a copy of it has another number on the same server."""

_LOCK: Final = sql.SQL("SELECT pg_advisory_xact_lock(hashtextextended({}, 0))")
"""Locks an agent's memories for the writers until the transaction ends; readers do not wait."""


logging.getLogger("psycopg").addHandler(logging.NullHandler())
"""Its warnings of lost connections reach the logs of a program that has set them up, and else are
not printed: whoever makes a call gets an error."""


class Connections:
    """A pool of connections to one database; its tables are brought up to date first.

    Args:
        target: The database.
        read_only: Whether nothing may be changed; then the tables must be there.

    Attributes:
        shown: The database without a password.
        database: Equal for connections of the same database in this process.
        has_row_security: Whether transactions have to name their agents.
    """

    def __init__(self, target: Target, *, read_only: bool = False) -> None:
        self.shown = target.shown
        self._target = target
        self.has_row_security = False
        self.is_read_only = read_only
        self._process = os.getpid()
        self._is_closed = False
        self._statements_are_lost = False
        self.database = with_typed_errors(lambda: self._open_once(target), self.shown)
        self._pool = Pool(partial(self._new_pool, "mnemic", 1, MAX_CONNECTIONS))
        self._apart = Pool(partial(self._new_pool, "mnemic-apart", 0, 1))

    def _new_pool(self, name: str, min_size: int, max_size: int) -> ConnectionPool[Connection]:
        return ConnectionPool(
            self._target.conninfo,
            min_size=min_size,
            max_size=max_size,
            timeout=PATIENCE,
            reconnect_timeout=_BACKOFF,
            reconnect_failed=ConnectionPool.check,  # which starts again
            connection_class=Connection,
            configure=self._configure,
            name=name,
            open=True,
        )

    def _open_once(self, target: Target) -> Hashable:
        """Bring the tables up to date; return what names the database in this process."""
        with connected(target) as session:
            (check_readable if self.is_read_only else migrate)(session)
            self.has_row_security = has_row_security(session)
            if self.has_row_security and not self.is_read_only:  # a migration made new tables
                turn_on_row_security(session)
            return session.fetch(_IDENTITY)[0]

    def require_row_security(self) -> None:
        """Put the tables under policies that hide the rows of other agents, unless they are.

        Raises:
            StoreError: If the role passes policies, or may not alter the tables.
        """
        with_typed_errors(self._require_row_security, self.shown)

    def _require_row_security(self) -> None:
        with connected(self._target) as session:
            if bypasses_row_security(session):
                raise StoreError(
                    f"{self.shown}: row-level security does not hold for a superuser, nor for "
                    "a role with BYPASSRLS; connect as another role"
                )
            if not has_row_security(session):
                self.check_writable()
                turn_on_row_security(session)
            self.has_row_security = True

    def _configure(self, connection: Connection) -> None:
        prepare(connection)
        if connection.is_pooled:  # it would change what other programs do
            return
        connection.execute(_LIMIT_LOCKS.format(is_local="false").encode())
        if self.is_read_only:
            connection.execute(b"SET default_transaction_read_only = on")

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return os.getpid() != self._process

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        if self._is_closed:
            raise StoreClosedError(f"the memory was closed ({self.shown})")
        if self.is_foreign:
            raise StoreError(f"{self.shown}: opened before a fork; open it again in this process")

    def check_writable(self) -> None:
        """Raise a typed error if nothing may be written."""
        self.check_usable()
        if self.is_read_only:
            raise ReadOnlyError(f"{self.shown}: opened for reading alone; open it for writing")

    def read(
        self,
        agents: Sequence[str] | None,
        work: Callable[[Session], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
        apart: bool = False,
    ) -> Result:
        """Run reads on one connection; after a lost connection once more, on another one.

        If a task of an event loop waits for them and is cancelled, the server ends the statement.

        Args:
            agents: The agents whose rows they may see; None is every agent.
            work: The reads.
            deadline: Statements that run past it raise DeadlineExceededError; None is no limit.
            one_moment: Whether all of them see the same state.
            apart: Whether the calling thread may have a connection already. Then another one is
                used than the pool's: if all threads that have one waited for a second one, none
                would ever get it.
        """
        self.check_usable()
        pool = self._apart if apart else self._pool
        ends = time.monotonic() + PATIENCE

        def once() -> Result:
            with (
                # A signal handler would wait for the one connection apart that its thread has.
                settling() if apart else nullcontext(),
                pool.lease(_seconds_until(deadline)) as connection,
                cancelled_with_task(connection),
            ):
                session, names = self._session(connection, agents)
                is_plain = deadline is None and names is None and not one_moment
                with nullcontext() if is_plain else session.one_moment(names):
                    if deadline is not None:
                        session.set_deadline(deadline)
                    result = work(session)
                check_deadline(session.deadline)
                return result

        while True:
            check_deadline(deadline)
            done = attempted(once)
            if not isinstance(done, FailedCall):
                return done
            if time.monotonic() > ends or not self.is_repeated(done.error):
                raise self.typed(done.error)
            self._prepare_repetition(done.error, deadline)

    def _session(
        self, connection: Connection, agents: Sequence[str] | None
    ) -> tuple[Session, str | None]:
        """Return a session, and the statement by which its transaction has to name its agents."""
        if self._statements_are_lost:
            connection.pool_sessions()
        if not self.has_row_security:
            return Session(connection, POSTGRES), None
        return Session(connection, POSTGRES, can_copy=False), naming(connection, agents)

    def _prepare_repetition(self, error: psycopg.Error, deadline: float | None = None) -> None:
        """Wait for better times, or take notice of policies that another process put in force.

        Where the server does not know a statement that it prepared, something between runs
        transactions in several sessions of the server, and did not show it.
        """
        if error.sqlstate in _LOST_STATEMENTS:
            self._statements_are_lost = True
        if not isinstance(error, NAMES_NO_AGENTS):
            self._wait(deadline)
            return
        found = attempted(self._read_row_security)
        if found is not True:
            raise self.typed(error)
        self.has_row_security = True

    def _read_row_security(self) -> bool:
        with self._pool.lease(PATIENCE) as connection:
            return has_row_security(Session(connection, POSTGRES))

    def write(
        self,
        agents: Sequence[str] | None,
        work: Callable[[Session], Result],
        outcome_check: Callable[[], Callable[[Session], bool] | None] | None = None,
    ) -> Result:
        """Run work in one transaction that holds the locks of agents.

        It is restarted after a serialisation failure, a deadlock, or a connection that was lost
        before the commit.

        Args:
            agents: The agents whose memories it may change; None is every agent, and no lock.
            work: The work; it may run several times, and has no effect outside the connection.
            outcome_check: Called after the connection was lost during the commit; returns how to
                find out, under the locks, whether the last run of the work was committed. None,
                from it or in its place, if that is unknown.

        Raises:
            OutcomeUnknownError: If the connection was lost during the commit, and the outcome
                is unknown, or not known in time.
        """
        self.check_writable()
        ends = time.monotonic() + PATIENCE
        unknown: list[Result] = []
        was_committed: Callable[[Session], bool] | None = None

        def once(session: Session) -> Result:
            # Under the locks, which the lost transaction held until it was committed or undone.
            if unknown and was_committed is not None and was_committed(session):
                return unknown[0]
            unknown.clear()
            return work(session)

        for attempt in range(1, _ATTEMPTS + 1):
            done = attempted(lambda: self._write_once(agents, once, unknown))
            if not isinstance(done, FailedCall):
                return done
            if unknown and outcome_check is not None:
                was_committed = outcome_check()
            is_lost = bool(unknown) and was_committed is None
            is_last = attempt == _ATTEMPTS or time.monotonic() > ends
            if is_lost or is_last or not self.is_repeated(done.error):
                if not unknown:
                    raise self.typed(done.error)
                raise OutcomeUnknownError(
                    f"{self.shown}: the connection was lost while a write was being committed; it "
                    "is stored whole or not at all: look before writing it again"
                )
            self._prepare_repetition(done.error)
        raise AssertionError("unreachable")

    def is_repeated(self, error: BaseException) -> bool:
        """Return whether `write` restarts its work after an error."""
        if isinstance(error, NAMES_NO_AGENTS):
            return not self.has_row_security
        if not isinstance(error, psycopg.Error) or isinstance(error, PoolClosed):
            return False
        code = code_of(error)
        return code is not None and failure_of(code).is_repeated

    def _write_once(
        self,
        agents: Sequence[str] | None,
        work: Callable[[Session], Result],
        unknown: list[Result],
    ) -> Result:
        """Run work in a transaction; its result is in `unknown` if the commit is not answered."""
        with self._pool.lease(PATIENCE) as connection:
            session, names = self._session(connection, agents)
            first = ["BEGIN", _LIMIT_PAUSES, *([] if names is None else [names])]
            first += [_LIMIT_LOCKS.format(is_local="true")] * connection.is_pooled
            first += [_LIMIT_LOCKS_OF_SEVERAL] * (len(agents or ()) > 1)
            # Always in the same order.
            first += [_LOCK.format(name).as_string(connection) for name in sorted(agents or ())]
            try:
                session.script("; ".join(first))
                result = work(session)
            except BaseException as error:
                _undo(connection, error)
                raise
            try:
                session.run("COMMIT")
            except psycopg.OperationalError:
                if connection.closed:  # else it was undone
                    unknown[:] = [result]
                raise
            except BaseException:
                connection.close()
                raise
            connection.renew_statements()
            return result

    def typed(self, error: psycopg.Error) -> Exception:
        """Return mnemic's error for one of PostgreSQL."""
        if isinstance(error, PoolClosed):
            return StoreClosedError(f"the memory was closed ({self.shown})")
        if isinstance(error, PoolTimeout):
            reason = self._refusal() or (
                "the server cannot be reached, or all connections are busy; try again"
            )
            return StoreUnavailableError(
                f"{self.shown}: no connection within {PATIENCE:.0f} s: {reason}"
            )
        return typed(error, self.shown)

    def _refusal(self) -> str | None:
        """Return why a connection is refused now; the pool does not tell why its own were."""
        open_one = partial(Connection.connect, self._target.conninfo, connect_timeout=2)
        done = attempted(lambda: open_one().close())
        return reason_of(done.error) if isinstance(done, FailedCall) else None

    def _wait(self, deadline: float | None) -> None:
        check_deadline(deadline)
        if deadline is None:  # it waits for the network, once for each broken connection
            self._pool.check()
        time.sleep(0.05)

    def close(self) -> None:
        """Close every connection; one that is leased is closed when it comes back."""
        if self._is_closed or self.is_foreign:
            return
        self._is_closed = True
        self._pool.close()
        self._apart.close()


@contextmanager
def connected(target: Target) -> Generator[Session, None, None]:
    """Connect to a database, beside the connections of its stores."""
    with Connection.connect(target.conninfo) as connection:
        prepare(connection)
        yield Session(connection, POSTGRES)


def _seconds_until(deadline: float | None) -> float:
    """Return how long a call waits for a connection."""
    return PATIENCE if deadline is None else min(PATIENCE, deadline - time.monotonic())


def _undo(connection: Connection, error: BaseException) -> None:
    """Undo a transaction after an error, or give its connection up.

    A KeyboardInterrupt may have cut a message to the server short, or left a pipeline open: the
    answer to another statement would never come.
    """
    is_sound = isinstance(error, Exception) and not connection.pgconn.pipeline_status
    if connection.closed:
        return
    if is_sound:
        connection.rollback()  # which makes psycopg forget what it takes for prepared
        connection.renew_statements()
    else:
        connection.close()
