"""The writing transactions of a file."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import apsw

from mnemic.errors import StoreFullError
from mnemic.store.changes import COMMITTED
from mnemic.store.group_commit import Job
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.log_mark import FIRST_PAGE

Result = TypeVar("Result")


class FileTransactions:
    """See `Transactions`.

    Args:
        connections: Lends the writing connection.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.turn = connections.turn
        self._may_repeat = False

    @property
    def holder(self) -> int | None:
        """The thread that uses the writing connection."""
        return self._connections.holder

    @holder.setter
    def holder(self, thread: int | None) -> None:
        self._connections.holder = thread

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return self._connections.is_foreign

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        self._connections.check_usable()

    def commit(self, jobs: Sequence[Job], work: Callable[[GuardedConnection], Result]) -> Result:
        """Run work in a transaction, and notify of its changes: before its futures are settled.

        Also where it failed, for a commit may have failed after it was on disk.
        """
        del jobs
        connection = self._connections.writer
        connection.changed_users = set()
        try:
            return self._committed_or_repeated(connection, work)
        finally:
            if connection.changed_users:
                COMMITTED.notify(self._connections.file, connection.changed_users)

    def _committed_or_repeated(
        self, connection: GuardedConnection, work: Callable[[GuardedConnection], Result]
    ) -> Result:
        """Run work in a transaction; on a full disk once more, if emptying the log makes room."""
        self._may_repeat = True
        try:
            return self._committed(connection, work)
        except (apsw.FullError, StoreFullError):
            if not self._connections.empty_log():
                raise
        finally:
            self._may_repeat = False
        return self._committed(connection, work)

    def _committed(
        self, connection: GuardedConnection, work: Callable[[GuardedConnection], Result]
    ) -> Result:
        connection.renew()
        try:
            if connection.in_transaction:  # a KeyboardInterrupt cut a rollback short
                connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
            connection.summed_rows.begin(connection)
            before = connection.total_changes()
            pages = connection.pragma("page_count")
            result = work(connection)
            connection.summed_rows.settle(connection)
            if connection.total_changes() != before:
                connection.execute(FIRST_PAGE)
                if connection.pragma("page_count") > pages:
                    self._connections.reserve_space(connection.pragma("page_count"))
            connection.execute("COMMIT")
            connection.summed_rows.keep_triggers()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def is_lost(self, connection: apsw.Connection, error: BaseException) -> bool:
        """Return whether a full or failing disk has undone the whole transaction."""
        del error
        return not connection.in_transaction

    def is_repeated(self, error: BaseException) -> bool:
        """Return whether the disk is full, and emptying the log was not tried yet."""
        return self._may_repeat and isinstance(error, apsw.FullError | StoreFullError)

    def typed(self, error: BaseException) -> BaseException:
        """Return mnemic's error for one of SQLite, or another error itself."""
        return self._connections.typed(error) if isinstance(error, apsw.Error) else error
