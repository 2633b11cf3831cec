"""Group commit: write jobs run one after the other, and waiting jobs share a transaction."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from mnemic.errors import MnemicError, StoreBusyError, StoreClosedError
from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger
from mnemic.store.futures import failed, succeeded
from mnemic.threads.background import running_loop, start_thread, thread_of
from mnemic.threads.locks import InnerLock, busy_thread
from mnemic.threads.waited_future import WaitedFuture

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Result = TypeVar("Result")
Connection = TypeVar("Connection")
Job: TypeAlias = Callable[[Any], Any]
"""The work of one write, called with the connection of its transaction; see `Writer`."""

Finish: TypeAlias = Callable[[Any], Any]
"""Turns a job's result into the one of its future, after the commit."""

MAX_GROUP = 512

MAX_DELAY = 1.0
"""Maximum seconds that a delayed job waits for a group."""

_log = logger(__name__)


class Transactions(Protocol[Connection]):
    """The transactions of a store that a writer runs its jobs in, one after the other.

    Its connections have `savepoint`, which begins a part of the transaction that can be undone
    alone, and `release` and `undo`, which end it.

    Attributes:
        turn: Held by the thread that writes.
    """

    turn: InnerLock

    @property
    def holder(self) -> int | None:
        """The thread that writes; set by the writer."""
        ...

    @holder.setter
    def holder(self, thread: int | None) -> None: ...

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        ...

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        ...

    def commit(self, jobs: Sequence[Job], work: Callable[[Connection], Result]) -> Result:
        """Run work in a transaction, and notify of its changes.

        Args:
            jobs: The jobs that the work runs.
            work: The work; a store may run it again where others made the transaction fail.
        """
        ...

    def is_lost(self, connection: Connection, error: BaseException, /) -> bool:
        """Return whether an error in a part ended the whole transaction."""
        ...

    def is_repeated(self, error: BaseException) -> bool:
        """Return whether `commit` runs its work again after this error."""
        ...

    def typed(self, error: BaseException) -> BaseException:
        """Return mnemic's error for one of the database, or another error itself."""
        ...


def unchanged(result: Any) -> Any:
    """Return a job's result as the future's."""
    return result


class _Item(NamedTuple):
    """A submitted job.

    Attributes:
        job: The work.
        future: Receives the result.
        finish: Turns the job's result into the future's.
    """

    job: Job
    future: Future[Any]
    finish: Finish = unchanged


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


class _PendingWrite(WaitedFuture[Result]):
    """The future of a job submitted by an event loop.

    The loop wakes the writer once it has run its other callers. Waiting in a thread wakes the
    writer at once, since the thread may block that loop.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def hurry(self) -> None:
        """Wake the writer now, for a thread waits."""
        self._wake_writer()

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
    at once; see `AddJob`. Where a group finds the memories of one of its jobs' `agents` locked for
    too long, each agent's jobs become a group of their own.

    Args:
        transactions: The store's transactions.
    """

    def __init__(self, transactions: Transactions[Any]) -> None:
        self._transactions = transactions
        self._items: deque[_Item] = deque()
        self._delayed: deque[_DelayedItem] = deque()
        self._lock = InnerLock()
        self._is_closed = False
        self._enqueued = 0  # changed under the lock
        self._finished = 0  # changed by the writing thread alone
        self._is_next = False  # whether the writing thread waits for the connection
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._is_woken = False
        self._waking_loop: AbstractEventLoop | None = None
        self._thread = thread_of("writer", self._work)
        start_thread(self._thread)

    def write(self, job: Job, finish: Finish = unchanged) -> Future[Any]:
        """Hand in a job; its future is settled once its group is on disk, or has failed.

        In a thread that runs an event loop the job is queued. In another one it runs in this
        thread if the writer is idle; a call of `submit` would take a change of threads longer.

        Args:
            job: The work.
            finish: Turns its result into the future's.

        Raises:
            StoreClosedError: If the writer was closed.
            BusyThreadError: If this thread is in the midst of a write.
        """
        self._check_open()  # before any lock, which a fork may have left locked
        loop = running_loop()
        if loop is not None:
            return self._write_soon(loop, job, finish)
        transactions = self._transactions
        if self._is_idle() and transactions.holder is None:
            with transactions.turn:  # which a KeyboardInterrupt cannot leave locked
                if self._is_idle():
                    self._check_open()
                    try:
                        result = self._held(lambda: transactions.commit([job], job))
                        return succeeded(finish(result))
                    except Exception as error:  # noqa: BLE001 - the future gets it
                        return failed(transactions.typed(error))
        self.check_free()
        return self._submit(_Item(job, WaitedFuture(), finish))

    def _write_soon(self, loop: "AbstractEventLoop", job: Job, finish: Finish) -> Future[Any]:
        future = _PendingWrite[Any](self._wake)
        self._enqueue(_Item(job, future, finish))
        # Woken once the loop has run what is ready, so that all its callers form one group.
        if self._waking_loop is not loop:
            loop.call_soon(self._wake)
            self._waking_loop = loop  # last, or an interrupt between the two would stop the writes
        return future

    def check_free(self) -> None:
        """Raise if this thread is in the midst of a write: waiting for itself would never end.

        Raises:
            BusyThreadError: If it is.
        """
        if self.is_held_here():
            raise busy_thread()

    def is_held_here(self) -> bool:
        """Return whether this thread is in the midst of a write."""
        return self._transactions.turn.is_held_here()

    def submit(self, job: Callable[[Any], Result]) -> Future[Result]:
        """Queue a job; its future is settled once its group is on disk, or has failed.

        Whoever waits for it calls `check_free` before.
        """
        return self._submit(_Item(job, WaitedFuture()))

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
                _log.warning("A write that no caller waits for was dropped: %s", reason)
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
        if self._transactions.is_foreign:
            return True
        with self._lock:
            self._is_closed = True
        self._wake()
        if self.is_held_here() or threading.current_thread() is self._thread:
            return False
        if self._thread.is_alive():
            self._thread.join()
        return True

    def _check_open(self) -> None:
        self._transactions.check_usable()
        if self._is_closed:
            raise StoreClosedError("the memory was closed")

    def _is_idle(self) -> bool:
        return self._enqueued == self._finished and not self._is_next

    def _enqueue(self, item: _Item) -> None:
        self._transactions.check_usable()  # before the lock, which a fork may have left locked
        with self._lock:
            self._check_open()
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
        while self._items or self._is_delayed_due():
            self._settle(self._in_turn(self._run_group))

    def _is_delayed_due(self) -> bool:
        delayed = self._delayed
        return bool(delayed) and (self._is_closed or delayed[0].deadline <= time.monotonic())

    def _run_group(self) -> list[_Outcome]:
        """Run the jobs that wait now, those included that came while the turn was waited for."""
        group = [self._items.popleft() for _ in range(min(len(self._items), MAX_GROUP))]
        delayed = min(len(self._delayed), MAX_GROUP)
        group += [self._delayed.popleft().item for _ in range(delayed)]
        outcomes = self._run_started(group)
        self._finished += len(group) - delayed
        return outcomes

    def _settle(self, outcomes: Iterable[_Outcome]) -> None:
        for outcome in outcomes:
            future, finish = outcome.item.future, outcome.item.finish
            try:
                if outcome.error is not None:
                    future.set_exception(self._transactions.typed(outcome.error))
                else:
                    future.set_result(finish(outcome.result))
            except BaseException as error:  # noqa: BLE001 - its future gets it, and the thread goes on
                future.set_exception(error)

    def _in_turn(self, work: Callable[[], Result]) -> Result:
        self._is_next = True  # or a series of callers could delay it for long
        with self._transactions.turn:
            self._is_next = False
            return self._held(work)

    def _held(self, work: Callable[[], Result]) -> Result:
        """Do work as the holder of the turn."""
        self._transactions.holder = threading.get_ident()
        try:
            return work()
        finally:
            self._transactions.holder = None

    def _run_started(self, items: Sequence[_Item]) -> list[_Outcome]:
        """Run the jobs that were not cancelled; from now on they cannot be."""
        return self._run_together(
            [item for item in items if item.future.set_running_or_notify_cancel()]
        )

    def _run_together(self, items: list[_Item]) -> list[_Outcome]:
        try:
            return self._commit(items) if items else []
        except StoreBusyError as error:
            parts = _by_agents(items)
            if len(parts) > 1:
                return [outcome for part in parts for outcome in self._run_together(part)]
            return [_Outcome(item, error=error) for item in items]
        except BaseException as error:  # noqa: BLE001 - each future gets it
            return [_Outcome(item, error=error) for item in items]

    def _commit(self, items: list[_Item]) -> list[_Outcome]:
        jobs = [item.job for item in items]
        try:
            return self._transactions.commit(jobs, lambda on: self._run_plainly(on, items))
        except _JobError as failure:
            if len(items) == 1:
                return [_Outcome(items[0], error=failure.__cause__)]
        # Savepoints cost a third of a small job, so only a group that needs them has them.
        return self._transactions.commit(
            jobs, lambda on: [self._run_in_savepoint(on, item) for item in items]
        )

    def _run_plainly(self, connection: Any, items: list[_Item]) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        try:
            for kind, alike in groupby(items, _kind_of):
                run = list(alike)
                if kind is None or len(run) == 1:
                    results = [item.job(connection) for item in run]
                else:
                    jobs: list[Any] = [item.job for item in run]
                    results = jobs[0].run_together(connection, jobs)
                pairs = zip(run, results, strict=True)
                outcomes += [_Outcome(item, result) for item, result in pairs]
        except BaseException as error:  # of one job, whatever it is
            if self._transactions.is_repeated(error):
                raise
            raise _JobError from error
        return outcomes

    def _run_in_savepoint(self, connection: Any, item: _Item) -> _Outcome:
        connection.savepoint()
        try:
            result = item.job(connection)
            connection.release()
        except BaseException as error:
            if self._transactions.is_lost(connection, error):
                raise
            connection.undo()
            return _Outcome(item, error=error)
        return _Outcome(item, result)


def _kind_of(item: _Item) -> object:
    return getattr(item.job, "kind", None)


def _by_agents(items: Iterable[_Item]) -> list[list[_Item]]:
    """Return items apart by the agents of their jobs, in their order."""
    parts: dict[object, list[_Item]] = {}
    for item in items:
        parts.setdefault(getattr(item.job, "agents", None), []).append(item)
    return list(parts.values())
