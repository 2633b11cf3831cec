"""The writing transactions of a database, for one writer."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

import psycopg

from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.jobs import outcome_check
from mnemic.store.postgres.session import Session
from mnemic.threads.locks import InnerLock

Result = TypeVar("Result")

_NO_SESSION: Final[Any] = None


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
