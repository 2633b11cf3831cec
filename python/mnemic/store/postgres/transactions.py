"""The writing transactions of a database, for one writer, and the jobs that they run.

A job has the agents whose memories it may change, and by what it stored is found whether a
transaction was committed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

import psycopg

from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.session import Session
from mnemic.store.row_codec import uuid_of
from mnemic.store.sql.accesses import AccessFlush, write_accesses
from mnemic.store.sql.new_rows import AddedRows
from mnemic.threads.locks import InnerLock

Result = TypeVar("Result")

_NO_SESSION: Final[Any] = None


_LOGGED: Final = (
    "SELECT EXISTS (SELECT FROM mnemic.agent_memory_changes WHERE agent_id = %s "
    "AND seq > %s AND seq <= %s AND entry_row = %s AND entry_id = %s AND kind = 'add')"
)


class AgentsJob(Protocol):
    """A job that changes memories of known agents."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents whose memories it may change, which are locked for it."""
        ...

    @property
    def stored(self) -> AddedRows | None:
        """What its last run stored under new ids; None if it stores none or has not run."""
        ...

    def __call__(self, session: Session) -> Any:
        """Do the work."""
        ...


class AgentJob:
    """A job that changes memories of one agent.

    Args:
        agent_id: The agent.
        work: The work.
        is_idempotent: Whether doing it twice is as good as once.
    """

    __slots__ = ("_work", "agents", "is_idempotent")

    stored: AddedRows | None = None

    def __init__(
        self, agent_id: str, work: Callable[[Session], Any], *, is_idempotent: bool = False
    ) -> None:
        self.agents = (agent_id,)
        self.is_idempotent = is_idempotent
        self._work = work

    def __call__(self, session: Session) -> Any:
        """Do the work."""
        return self._work(session)


class AccessJob:
    """A job that writes the accesses of an agent.

    It takes them under the agent's lock: a memory may be stored again while it waits for that, and
    must not get the accesses of the old one.

    Args:
        flush: The accesses.
        agent_id: The agent.
    """

    __slots__ = ("_flush", "agents")

    stored: AddedRows | None = None

    def __init__(self, flush: AccessFlush, agent_id: str) -> None:
        self._flush = flush
        self.agents = (agent_id,)

    def __call__(self, session: Session) -> None:
        """Write them."""
        taken = self._flush.taken(self.agents)
        if taken:
            session.positions.update(write_accesses(session, taken))


class TurnJob:
    """A job that does nothing: its future is done once all jobs before it are."""

    __slots__ = ()

    agents: tuple[str, ...] = ()
    stored: AddedRows | None = None

    def __call__(self, session: Session) -> None:
        """Do nothing."""


class Write(Protocol):
    """Runs work in a transaction with the locks of agents; see `Connections.write`."""

    def __call__(
        self,
        agents: Sequence[str],
        work: Callable[[Session], Result],
        outcome_check: Callable[[], Callable[[Session], bool] | None],
        /,
    ) -> Result:
        """Run it, and make its changes known."""
        ...


class ServerTransactions:
    """See `Transactions`. Each runs on any connection, with the locks of its jobs' agents.

    Args:
        connections: The connections.
        write: Runs a transaction.
    """

    def __init__(self, connections: Connections, write: Write) -> None:
        self._connections = connections
        self._write = write
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
            return work(_NO_SESSION)
        return self._write(agents, work, lambda: outcome_check(jobs))

    def savepoint(self, session: Session) -> None:
        """Begin a part of the transaction that can be undone alone."""
        session.savepoint()

    def release(self, session: Session) -> None:
        """End that part."""
        session.release()

    def undo(self, session: Session) -> None:
        """Undo that part, and end it."""
        session.undo()

    def is_lost(self, session: Session, error: BaseException) -> bool:
        """Return whether an error ended the transaction, or `commit` has to restart it."""
        return session.connection.closed or self.is_repeated(error)

    def is_repeated(self, error: BaseException) -> bool:
        """Return whether `commit` runs its work again after this error."""
        return self._connections.is_repeated(error)

    def typed(self, error: BaseException) -> BaseException:
        """Return mnemic's error for one of PostgreSQL, or another error itself."""
        return self._connections.typed(error) if isinstance(error, psycopg.Error) else error


def outcome_check(jobs: Sequence[AgentsJob]) -> Callable[[Session], bool] | None:
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
