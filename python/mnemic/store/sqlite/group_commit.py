"""Group commit: write jobs run one after the other, and waiting jobs share a transaction."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import apsw

from mnemic.description import failure
from mnemic.errors import MnemicError, StoreClosedError, StoreError
from mnemic.logs import logger
from mnemic.store.change_listeners import COMMITTED
from mnemic.store.futures import WriteFuture, failed, running_loop, succeeded
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.hardening import GuardedConnection

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Result = TypeVar("Result")
Job: TypeAlias = Callable[[apsw.Connection], Any]
Finish: TypeAlias = Callable[[Any], Any]
"""Turns a job's result into the one of its future, after the commit."""

MAX_GROUP = 512

MAX_DELAY = 1.0
"""Maximum seconds that a delayed job waits for a group."""

_log = logger(__name__)


def unchanged(result: Any) -> Any:
    """Return a job's result as the future's."""
    return result


class _Item(NamedTuple):
    """A submitted job.

    Attributes:
        job: The work.
        future: Receives the result.
        finish: Turns the job's result into the future's.
        is_outside: Whether it runs outside any transaction.
    """

    job: Job
    future: Future[Any]
    finish: Finish = unchanged
    is_outside: bool = False


class _Outcome(NamedTuple):
    """A job's result, or its error."""

    item: _Item
    result: Any = None
    error: BaseException | None = None


class _DelayedItem(NamedTuple):
    item: _Item
    deadline: float


class _JobError(Exception):
    """A job of a group failed; the cause is its error."""


class _Pending(WriteFuture[Result]):
    """The future of a job submitted by an event loop.

    The loop wakes the writer once it has run its other callers. Waiting in a thread wakes the
    writer at once, since the thread may block that loop.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result."""
        self._wake_writer()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the error, None if there is none."""
        self._wake_writer()
        return super().exception(timeout)

    def _wake_writer(self) -> None:
        if not self.done():
            self._wake()


class Writer:
    """Runs write jobs one after the other, in the order of submission.

    A thread that finds the writer idle runs its own job; no other thread takes part. Other jobs are
    queued to the writing thread: jobs that arrive during a commit share the next one (group
    commit), so durability costs one flush per group. A failed job is undone alone: its group is
    rolled back and run again, with a savepoint for each job. So a job may run twice, and must have
    no effect outside the connection. Consecutive jobs of one `kind` are run by their `run_together`
    at once; see `writes.AddJob`.

    Args:
        connections: Lends the writing connection.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._items: deque[_Item] = deque()
        self._delayed: deque[_DelayedItem] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        self._enqueued = 0  # changed under the lock
        self._finished = 0  # changed by the writing thread alone
        self._is_next = False  # whether the writing thread waits for the connection
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._is_woken = False
        self._waking_loop: AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="mnemic-writer", daemon=True)
        self._thread.start()

    def write(self, job: Job, finish: Finish = unchanged) -> Future[Any]:
        """Hand in a job; its future is settled once its group is on disk, or has failed.

        In a thread that runs an event loop the job is queued. In another one it runs in this
        thread if the writer is idle; a call of `submit` would take a change of threads longer.

        Args:
            job: The work.
            finish: Turns its result into the future's.

        Raises:
            StoreClosedError: If the writer was closed.
            StoreError: If this thread is in the midst of a write.
        """
        self._check_open()  # before any lock, which a fork may have left locked
        loop = running_loop()
        if loop is not None:
            return self._write_soon(loop, job, finish)
        turn = self._connections.turn
        if self._is_idle() and not turn.locked():
            with turn:  # which a KeyboardInterrupt cannot leave locked
                if self._is_idle():
                    self._check_open()
                    return self._write_here(job, finish)
        if self._connections.holder == threading.get_ident():
            # A signal handler or a finalizer interrupted a write: waiting for it would never end.
            raise StoreError("this thread is in the midst of a write and cannot begin another")
        return self._submit(_Item(job, WriteFuture(), finish))

    def _write_soon(self, loop: "AbstractEventLoop", job: Job, finish: Finish) -> Future[Any]:
        future = _Pending[Any](self._wake)
        self._enqueue(_Item(job, future, finish))
        # Woken once the loop has run what is ready, so that all its callers form one group.
        if self._waking_loop is not loop:
            loop.call_soon(self._wake)
            self._waking_loop = loop  # last, or an interrupt between the two would stop the writes
        return future

    def _write_here(self, job: Job, finish: Finish) -> Future[Any]:
        try:
            result = finish(self._use_connection(lambda on: _committed(on, job)))
        except Exception as error:  # noqa: BLE001 - the future gets it
            return failed(self._typed(error))
        return succeeded(result)

    def submit(self, job: Callable[[apsw.Connection], Result]) -> Future[Result]:
        """Queue a job; its future is settled once its group is on disk, or has failed."""
        return self._submit(_Item(job, WriteFuture()))

    def submit_outside(self, job: Callable[[apsw.Connection], Result]) -> Future[Result]:
        """Queue a job that runs outside any transaction, between two groups."""
        return self._submit(_Item(job, WriteFuture(), is_outside=True))

    def _submit(self, item: _Item) -> Future[Any]:
        self._enqueue(item)
        self._wake()
        return item.future

    def submit_delayed(self, job: Job, ended: Callable[[], None] | None = None) -> None:
        """Submit a job without a waiting caller; a failure is logged, and the job dropped.

        It runs with the writing thread's next group, at the latest after about a second or at
        `close`.

        Args:
            job: The work.
            ended: Called in the writing thread when the job is on disk or was dropped.
        """

        def finish(future: Future[Any]) -> None:
            error = future.exception()
            if error is not None:
                reason = str(error) if isinstance(error, MnemicError) else failure(error)
                _log.warning("A write that nobody waits for was dropped: %s", reason)
            if ended is not None:
                ended()

        self._check_open()
        future: Future[Any] = Future()
        future.add_done_callback(finish)
        with self._lock:
            self._check_open()
            self._delayed.append(_DelayedItem(_Item(job, future), time.monotonic() + MAX_DELAY))
            is_first = len(self._delayed) == 1
        if is_first:
            self._wake()

    def close(self) -> bool:
        """Run the submitted jobs, and stop.

        Returns:
            Whether the writer has stopped. It has not if the calling thread is writing itself,
            which happens when the garbage collector runs there; it stops as soon as it can. In a
            forked process there is nothing to stop.
        """
        if self._connections.is_foreign:
            return True
        with self._lock:
            self._is_closed = True
        self._wake()
        if threading.get_ident() in (self._connections.holder, self._thread.ident):
            return False
        if self._thread.is_alive():
            self._thread.join()
        return True

    def _check_open(self) -> None:
        self._connections.check_usable()
        if self._is_closed:
            raise StoreClosedError("the memory was closed")

    def _is_idle(self) -> bool:
        return self._enqueued == self._finished and not self._is_next

    def _enqueue(self, item: _Item) -> None:
        self._connections.check_usable()  # before the lock, which a fork may have left locked
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the memory was closed")
            self._enqueued += 1
            self._items.append(item)

    def _wake(self) -> None:
        """Wake the writing thread, after its work was queued."""
        self._waking_loop = None
        if not self._is_woken:
            self._is_woken = True
            self._wakeups.put(None)

    def _work(self) -> None:
        while not self._is_closed:
            self._wait()
            self._run_all()
        self._run_all()

    def _wait(self) -> None:
        """Sleep until woken, or until a delayed job is due."""
        time_left = (
            max(0.0, self._delayed[0].deadline - time.monotonic()) if self._delayed else None
        )
        with suppress(Empty):
            self._wakeups.get(timeout=time_left)
        self._is_woken = False  # before the queue is read: later jobs wake the thread again

    def _run_all(self) -> None:
        items = self._items
        while items or self._is_delayed_due():
            if items and items[0].is_outside:
                self._run_outside_group(items.popleft())
                continue
            group: list[_Item] = []
            while items and not items[0].is_outside and len(group) < MAX_GROUP:
                group.append(items.popleft())
            self._run_group(group)

    def _is_delayed_due(self) -> bool:
        delayed = self._delayed
        return bool(delayed) and (self._is_closed or delayed[0].deadline <= time.monotonic())

    def _run_group(self, group: list[_Item]) -> None:
        delayed = min(len(self._delayed), MAX_GROUP)
        items = group + [self._delayed.popleft().item for _ in range(delayed)]
        outcomes = self._with_connection(lambda on: _run_together(on, items))
        self._finished += len(group)
        self._settle(outcomes)

    def _run_outside_group(self, item: _Item) -> None:
        outcomes = self._with_connection(lambda on: _run_outside(on, item))
        self._finished += 1
        self._settle(outcomes)

    def _settle(self, outcomes: Iterable[_Outcome]) -> None:
        for outcome in outcomes:
            future, finish = outcome.item.future, outcome.item.finish
            try:
                if outcome.error is not None:
                    future.set_exception(self._typed(outcome.error))
                else:
                    future.set_result(finish(outcome.result))
            except Exception as error:  # noqa: BLE001 - its future gets it
                future.set_exception(error)

    def _typed(self, error: BaseException) -> BaseException:
        return self._connections.typed(error) if isinstance(error, apsw.Error) else error

    def _use_connection(self, work: Callable[[apsw.Connection], Result]) -> Result:
        self._connections.holder = threading.get_ident()
        try:
            connection = self._connections.writer
            connection.renew()
            return self._notifying(connection, work)
        finally:
            self._connections.holder = None

    def _notifying(
        self, connection: GuardedConnection, work: Callable[[apsw.Connection], Result]
    ) -> Result:
        """Do work, then notify of its changes: before its futures are settled.

        Also where it failed, for a commit may have failed after it was on disk.
        """
        connection.changed_users = set()
        try:
            return work(connection)
        finally:
            if connection.changed_users:
                COMMITTED.notify(self._connections.file, connection.changed_users)

    def _with_connection(self, work: Callable[[apsw.Connection], Result]) -> Result:
        self._is_next = True  # or a series of callers could delay it for long
        with self._connections.turn:
            self._is_next = False
            return self._use_connection(work)


def _starts(item: _Item) -> bool:
    """Return whether a job is to run; from now on it cannot be cancelled."""
    return item.future.set_running_or_notify_cancel()


def _run_together(connection: apsw.Connection, items: list[_Item]) -> list[_Outcome]:
    wanted = [item for item in items if _starts(item)]
    try:
        try:
            return _committed(connection, lambda on: _run_without_savepoints(on, wanted))
        except _JobError as failure:
            if len(wanted) == 1:
                return [_Outcome(wanted[0], error=failure.__cause__)]
            # Savepoints cost a third of a small job, so only a group that needs them has them.
            return _committed(
                connection, lambda on: [_run_in_savepoint(on, item) for item in wanted]
            )
    except BaseException as failure:  # noqa: BLE001 - each future gets it
        return [_Outcome(item, error=failure) for item in wanted]


def _run_outside(connection: apsw.Connection, item: _Item) -> list[_Outcome]:
    if not _starts(item):
        return []
    try:
        return [_Outcome(item, item.job(connection))]
    except BaseException as failure:  # noqa: BLE001 - its future gets it
        return [_Outcome(item, error=failure)]


def _committed(connection: apsw.Connection, work: Callable[[apsw.Connection], Result]) -> Result:
    try:
        if connection.in_transaction:  # a KeyboardInterrupt cut a rollback short
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _run_without_savepoints(connection: apsw.Connection, items: list[_Item]) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    try:
        for kind, alike in groupby(items, _kind_of):
            run = list(alike)
            if kind is None or len(run) == 1:
                results = [item.job(connection) for item in run]
            else:
                jobs: list[Any] = [item.job for item in run]
                results = jobs[0].run_together(connection, jobs)
            outcomes += [_Outcome(item, result) for item, result in zip(run, results, strict=True)]
    except Exception as error:
        raise _JobError from error
    return outcomes


def _kind_of(item: _Item) -> object:
    return getattr(item.job, "kind", None)


def _run_in_savepoint(connection: apsw.Connection, item: _Item) -> _Outcome:
    connection.execute("SAVEPOINT job")
    try:
        result = item.job(connection)
    except Exception as error:
        # A full or failing disk may have undone the whole transaction, so the group with it.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return _Outcome(item, error=error)
    connection.execute("RELEASE job")
    return _Outcome(item, result)
