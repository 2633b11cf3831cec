"""Group commit: write jobs run one after the other, and waiting jobs share a transaction."""

import logging
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
from mnemic.store.sqlite.connections import Connections
from mnemic.sync_bridge import runs_sync

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")
Job = Callable[[apsw.Connection], Any]
_AnyFuture: TypeAlias = "Future[Any] | asyncio.Future[Any]"
_Outcome: TypeAlias = "tuple[_AnyFuture, Any, BaseException | None]"

MAX_GROUP = 512

MAX_DELAY = 1.0
"""Maximum seconds that a delayed job waits for a group."""

_log = logging.getLogger(__name__)


class _Item(NamedTuple):
    """A submitted job.

    Attributes:
        job: The work.
        future: Receives the result, for a thread or an event loop.
        is_outside: Whether it runs outside any transaction.
    """

    job: Job
    future: _AnyFuture
    is_outside: bool = False


class _DelayedItem(NamedTuple):
    item: _Item
    deadline: float


class _JobError(Exception):
    """A job of a group failed; the cause is its error."""


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
        self._waking_loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="mnemic-writer", daemon=True)
        self._thread.start()

    async def run(self, job: Callable[[apsw.Connection], Result]) -> Result:
        """Run a job; it is on disk when this returns.

        Under `run_sync` it may run in the caller's thread; an event loop is never blocked. A job
        whose task was cancelled before its turn does not run.
        """
        if runs_sync():
            return self.run_here(job)
        import asyncio  # noqa: PLC0415 - a third of the import budget, unused at the front door

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._enqueue(_Item(job, future))
        # Woken once the loop has run what is ready, so that all its callers form one group.
        if self._waking_loop is not loop:
            self._waking_loop = loop
            loop.call_soon(self._wake)
        return await future

    def run_here(self, job: Callable[[apsw.Connection], Result]) -> Result:
        """Run a job in this thread if the writer is idle, else wait for the writing thread."""
        self._check_open()  # before any lock, which a fork may have left locked
        turn = self._connections.turn
        if self._is_idle() and not turn.locked():
            with turn:  # which a KeyboardInterrupt cannot leave locked
                if self._is_idle():
                    self._check_open()
                    return self._use_connection(lambda on: _committed(on, job))
        if self._connections.holder == threading.get_ident():
            # A signal handler or a finalizer interrupted a write: waiting for it would never end.
            raise StoreError("this thread is in the midst of a write and cannot begin another")
        return self.submit(job).result()

    def submit(self, job: Callable[[apsw.Connection], Result]) -> "Future[Result]":
        """Submit a job; its future is settled once its group is on disk, or has failed."""
        future: Future[Result] = Future()
        self._enqueue(_Item(job, future))
        self._wake()
        return future

    def submit_outside(self, job: Callable[[apsw.Connection], Result]) -> "Future[Result]":
        """Submit a job that runs outside any transaction, between two groups."""
        future: Future[Result] = Future()
        self._enqueue(_Item(job, future, is_outside=True))
        self._wake()
        return future

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
        _settle(outcomes)

    def _run_outside_group(self, item: _Item) -> None:
        outcomes = self._with_connection(lambda on: _run_outside(on, item))
        self._finished += 1
        _settle(outcomes)

    def _use_connection(self, work: Callable[[apsw.Connection], Result]) -> Result:
        self._connections.holder = threading.get_ident()
        try:
            connection = self._connections.writer
            connection.renew()
            return work(connection)
        finally:
            self._connections.holder = None

    def _with_connection(self, work: Callable[[apsw.Connection], Result]) -> Result:
        self._is_next = True  # or a series of callers could delay it for long
        with self._connections.turn:
            self._is_next = False
            return self._use_connection(work)


def _starts(item: _Item) -> bool:
    """Return whether a job is to run; from now on a thread cannot cancel it."""
    if isinstance(item.future, Future):
        return item.future.set_running_or_notify_cancel()
    return not item.future.cancelled()


def _run_together(connection: apsw.Connection, items: list[_Item]) -> list[_Outcome]:
    wanted = [item for item in items if _starts(item)]
    try:
        try:
            return _committed(connection, lambda on: _run_without_savepoints(on, wanted))
        except _JobError as failure:
            if len(wanted) == 1:
                return [(wanted[0].future, None, failure.__cause__)]
            # Savepoints cost a third of a small job, so only a group that needs them has them.
            return _committed(
                connection, lambda on: [_run_in_savepoint(on, item) for item in wanted]
            )
    except BaseException as failure:  # noqa: BLE001 - each future gets it
        return [(item.future, None, failure) for item in wanted]


def _run_outside(connection: apsw.Connection, item: _Item) -> list[_Outcome]:
    if not _starts(item):
        return []
    try:
        return [(item.future, item.job(connection), None)]
    except BaseException as failure:  # noqa: BLE001 - its future gets it
        return [(item.future, None, failure)]


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
            outcomes += [
                (item.future, result, None) for item, result in zip(run, results, strict=True)
            ]
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
        return item.future, None, error
    connection.execute("RELEASE job")
    return item.future, result, None


def _settle(outcomes: Iterable[_Outcome]) -> None:
    """Settle the futures of a group, all those of one event loop in one call."""
    of_loops: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for outcome in outcomes:
        future = outcome[0]
        if isinstance(future, Future):
            _settle_one(outcome)
        else:
            of_loops.setdefault(future.get_loop(), []).append(outcome)
    for loop, of_loop in of_loops.items():
        with suppress(RuntimeError):  # the event loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle_all, of_loop)


def _settle_all(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        _settle_one(outcome)


def _settle_one(outcome: _Outcome) -> None:
    future, result, error = outcome
    if future.done():  # cancelled too late: it has happened all the same
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
