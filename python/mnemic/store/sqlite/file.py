"""What the parts of the SQLite store share: its file, the codec of its rows, and its threads."""

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from mnemic.errors import MnemicError, StoreFullError
from mnemic.store.futures import MAX_THREADS, Workers
from mnemic.store.group_commit import Finish, Job, Writer, unchanged
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.accesses import AccessFlush, PendingAccesses, write_accesses
from mnemic.store.sql.session import OpenedSql
from mnemic.store.sqlite import fork_guard
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import one_moment as at_one_moment
from mnemic.store.sqlite.transactions import FileTransactions
from mnemic.threads.background import start_thread, thread_of

Result = TypeVar("Result")

_Deletion: TypeAlias = Callable[[int | None, GuardedConnection], list[UUID]]

PART: Final = 64
"""Entries that a transaction deletes on a full disk; fewer if they do not fit."""


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
        self._is_read_only = read_only
        fork_guard.check_not_inherited(path)
        self._connections = Connections(path, read_only=read_only)
        number = fork_guard.register_open(path)
        self._writer = Writer(FileTransactions(self._connections))
        self._accesses = PendingAccesses()
        self._workers = Workers(MAX_THREADS)
        # Runs at `close`, or when the store is collected, or at exit, whichever comes first.
        self._close = weakref.finalize(
            self, _close, self._workers, self._writer, self._connections, number
        )

    def close(self) -> None:
        """Finish submitted writes, then release the file. Repeated calls have no effect."""
        self._close()

    def _reading(self, deadline: float | None = None) -> AbstractContextManager[GuardedConnection]:
        return self._connections.reading(deadline)

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
            with at_one_moment(on):
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
        self._connections.check_writable()
        if after_accesses and self._accesses.is_pending():
            return self._write_after_accesses(job, finish)
        return self._writer.write(job, finish)

    def _write_after_accesses(self, job: Job, finish: Finish) -> Future[Any]:
        """Write pending accesses, and run a job after them in the same transaction."""
        flush = self._accesses.flush()
        after = _AfterAccesses(flush, job, finish)
        try:
            future = self._writer.write(after, after.finish)
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


def _close(workers: Workers, writer: Writer, connections: Connections, number: int) -> None:
    if not connections.is_foreign:  # in a forked process their locks may never be released
        workers.close()
    if not writer.close():
        # This thread is writing; the write must end before the rest can be closed.
        closing = thread_of("close", _close, workers, writer, connections, number)
        closing.daemon = False
        start_thread(closing)
        return
    connections.close()
    fork_guard.register_closed(number)


class _FailedJob(NamedTuple):
    """A job's error, after which its transaction goes on."""

    error: MnemicError


class _AfterAccesses:
    """A job that sees all accesses recorded before it: they are written in its transaction.

    If the job is refused it is undone alone: the accesses are no part of it.

    Args:
        flush: The accesses.
        job: The job.
        finish: Turns its result into the future's.
    """

    def __init__(
        self,
        flush: AccessFlush,
        job: Callable[[GuardedConnection], Any],
        finish: Callable[[Any], Any],
    ) -> None:
        self._flush = flush
        self._job = job
        self._finish = finish

    def __call__(self, connection: GuardedConnection) -> Any:
        """Write the accesses and run the job."""
        write_accesses(connection, self._flush.taken())
        connection.savepoint()
        try:
            result = self._job(connection)
            connection.release()
        except MnemicError as error:
            connection.undo()
            return _FailedJob(error)
        return result

    def finish(self, result: Any) -> Any:
        """Return the future's result, or raise the job's error."""
        if isinstance(result, _FailedJob):
            raise result.error
        return self._finish(result)
