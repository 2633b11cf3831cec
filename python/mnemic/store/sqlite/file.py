"""What the parts of the SQLite store share: its file, the codec of its rows, and its threads."""

import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import apsw

from mnemic.errors import MnemicError, StoreClosedError, StoreFullError
from mnemic.store.accesses import PendingAccesses
from mnemic.store.changes import COMMITTED
from mnemic.store.futures import MAX_THREADS, Workers
from mnemic.store.group_commit import MAX_DELAY, Finish, Job, Writer, unchanged
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import write_accesses
from mnemic.store.sql.session import OpenedSql
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.file_locks import check_not_inherited
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.log_mark import FIRST_PAGE
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import settling

Result = TypeVar("Result")

_Deletion: TypeAlias = Callable[[int | None, GuardedConnection], list[UUID]]

PART: Final = 64
"""Entries that a transaction deletes on a full disk; fewer if they do not fit."""


class FileTransactions(Connections):
    """The writing transactions of a file; see `Transactions`."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        super().__init__(path, read_only=read_only)
        self._may_repeat = False

    def commit(self, jobs: Sequence[Job], work: Callable[[GuardedConnection], Result]) -> Result:
        """Run work in a transaction, and notify of its changes: before its futures are settled.

        Also where it failed, for a commit may have failed after it was on disk. On a full disk it
        runs once more, if emptying the log makes room.
        """
        del jobs
        connection = self.writer
        connection.changed_users = set()
        self._may_repeat = True
        try:
            try:
                return self._committed(connection, work)
            except (apsw.FullError, StoreFullError):
                self._may_repeat = False
                if not self.empty_log():
                    raise
            return self._committed(connection, work)
        finally:
            self._may_repeat = False
            if connection.changed_users:
                COMMITTED.notify(self.file, connection.changed_users)

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
                    self.reserve_space(connection.pragma("page_count"))
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


class SqliteFile(OpenedSql):
    """One file, which every part of a store reads and writes.

    Args:
        path: The file, or ":memory:".
        codec: Codec of the entries.
        read_only: Whether nothing of the file may change.
    """

    _dialect = SQLITE

    def __init__(self, path: str, codec: RowCodec, *, read_only: bool) -> None:
        self.path = path
        self._codec = codec
        self.marked = codec.marked
        self._is_read_only = read_only
        check_not_inherited(path)
        self._connections = FileTransactions(path, read_only=read_only)
        self._writer = Writer(self._connections)
        self.accesses = PendingAccesses()
        self._workers = Workers(MAX_THREADS)
        # Runs at `close`, or when the store is collected, or at exit, whichever comes first.
        self._close = weakref.finalize(self, _close, self._workers, self._writer, self._connections)

    def close(self) -> None:
        """Finish submitted writes, then release the file. Repeated calls have no effect."""
        self._close()

    def _read(
        self,
        agent_id: str | None,  # noqa: ARG002 - all share a file
        work: Callable[[GuardedConnection], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
        apart: bool = False,  # noqa: ARG002 - all reads are
    ) -> Result:
        with self._connections.reading(deadline) as on:
            if not one_moment:
                return work(on)
            with on.one_moment():
                return work(on)

    def _check_writable(self) -> None:
        self._connections.check_writable()

    def _submit(
        self,
        agent_id: str | None,  # noqa: ARG002 - all share a file
        job: Job,
        finish: Finish = unchanged,
        *,
        is_idempotent: bool = False,  # noqa: ARG002 - no connection is lost
        after_accesses: bool = False,
    ) -> Future[Any]:
        if self._is_read_only:
            self._connections.check_writable()
        if after_accesses and self.accesses.is_pending():
            return self._write_after_accesses(job, finish)
        return self._writer.write(job, finish)

    def _write_after_accesses(self, job: Job, finish: Finish) -> Future[Any]:
        """Write pending accesses, and run a job after them in the same transaction.

        A job that is refused is undone alone: the accesses are no part of it.
        """
        flush = self.accesses.flush()

        def work(on: GuardedConnection) -> Any:
            write_accesses(on, flush.taken())
            on.savepoint()
            try:
                result = job(on)
                on.release()
            except MnemicError as error:
                on.undo()
                return _FailedJob(error)
            return result

        def finished(result: Any) -> Any:
            if isinstance(result, _FailedJob):
                raise result.error
            return finish(result)

        try:
            future = self._writer.write(work, finished)
        except BaseException:
            flush.ended()
            raise
        future.add_done_callback(lambda _: flush.ended())
        return future

    def _write_in_parts(
        self,
        agent_id: str,  # noqa: ARG002 - all share a file
        deletion: _Deletion,
        finish: Callable[[list[UUID]], list[UUID]] = unchanged,
    ) -> Future[list[UUID]]:
        whole = self._submit(None, partial(deletion, None))
        return self._workers.run(lambda: finish(self._deleted(deletion, whole)))

    def _deleted(self, deletion: _Deletion, whole: Future[list[UUID]]) -> list[UUID]:
        """Return what was deleted at once, or on a full disk in parts that fit into the log."""
        with suppress(StoreFullError):
            return whole.result()
        deleted: list[UUID] = []
        limit = PART
        while True:
            try:
                part = self._submit(None, partial(deletion, limit)).result()
            except StoreFullError as error:
                if limit == 1 and not deleted:
                    raise
                if limit == 1:
                    raise StoreFullError(f"{error}; {len(deleted)} were deleted before") from error
                limit //= 4
                continue
            deleted += part
            if len(part) < limit:  # not until none is left: others may go on adding
                return deleted


def _close(workers: Workers, writer: Writer, connections: Connections) -> None:
    if not connections.is_foreign:  # in a forked process their locks may never be released
        workers.close()
    if not writer.close():
        # This thread is writing; the write must end before the rest can be closed.
        closing = thread_of("close", _close, workers, writer, connections)
        closing.daemon = False
        start_thread(closing)
        return
    connections.close()


class _FailedJob(NamedTuple):
    """A job's error, after which its transaction goes on."""

    error: MnemicError


class LaterErasure:
    """Erases about a second after the first deletion, or as the store is closed.

    A deletion whose bytes are erased at once syncs eight times in place of once: the log is
    emptied, and the next one begins and is named in the file.

    Args:
        connections: Erase.
        writer: Wakes up in time, and as the store is closed.
        workers: Have a thread for the erasure, which may wait for whoever writes a snapshot.
    """

    def __init__(self, connections: Connections, writer: Writer, workers: Workers) -> None:
        self._connections = connections
        self._writer = writer
        self._workers = workers
        self._is_due = False
        self._time = 0.0

    def begin(self) -> None:
        """Erase what was deleted so far, some time from now."""
        if not self._is_due:
            self._is_due = True
            self._time = time.monotonic() + MAX_DELAY / 2
            self._wait()

    def _wait(self) -> None:
        self._writer.submit_delayed(nothing, self._woken)

    def _woken(self) -> None:
        try:
            if time.monotonic() < self._time:  # it woke up for others
                self._wait()
            else:
                self._is_due = False  # before it begins: what is deleted from now on is due again
                executor = self._workers.executor
                with settling():
                    executor.submit(self._connections.erase)
        except (StoreClosedError, RuntimeError):  # the store, or the interpreter, is being closed
            with suppress(MnemicError):
                self._connections.erase()


def nothing(_: apsw.Connection) -> None:
    """Take the writer's turn, and change nothing."""
