"""Blocking work of an event loop in threads, handed over and returned in groups.

A change of threads takes as long as a short search, and every thread that wants the interpreter
lock delays the others. So the work of one turn of the loop is handed over together, few threads do
it, and the loop is woken for several results at once.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from mnemic.errors import StoreClosedError
from mnemic.threads.calls import Call, LoopTurn
from mnemic.threads.locks import InnerLock, settling

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio import Future as Waiter
    from concurrent.futures import Executor, Future

Result = TypeVar("Result")

FEW_THREADS = 3
"""Threads that work at once while they get on; more of them wait for the interpreter lock."""

MAX_ACTIVE = 32
"""Threads at most where the work itself waits, for an embedder in the network say; the executor may
have fewer (`MAX_THREADS` in `mnemic.store.futures`)."""

TICK = 0.005
"""Seconds after which waiting work that no thread gets on with gets a further one, and results that
are not returned yet are."""

MAX_SECONDS = 0.01
"""Seconds after which a thread lets other event loops' work go before, if it is not in its midst.
"""

RETURNED_AT_ONCE = 32
"""Results that wake the loop though more work waits."""


class LoopThreads:
    """Lets one event loop await futures and blocking work; used in the loop's thread.

    Its queue of results has no lock: a finalizer may interrupt the holder and settle a future.

    Args:
        loop: The event loop.
    """

    def __init__(self, loop: "AbstractEventLoop") -> None:
        self.loop = loop
        self._due: deque[Waiter[None]] = deque()
        self._is_scheduled = False
        self._queues: WeakKeyDictionary[Executor, _WorkQueue] = WeakKeyDictionary()

    async def wait(self, future: "Future[Any]") -> None:
        """Wait until a future is done; a cancellation cancels it if its work has not begun."""
        waiter = self.loop.create_future()
        with settling():
            future.add_done_callback(lambda _: self.arrive(waiter))
        try:
            await waiter
        finally:
            with settling():
                future.cancel()  # has an effect only before it is done and its work begins

    async def run(
        self, work: Callable[[], Result], executor: "Executor", announced: object = None
    ) -> Result:
        """Do blocking work in an executor's threads; for `announced` see `Call`."""
        call, waiter = Call(work, announced), self.loop.create_future()
        queue = self._queues.get(executor)
        if queue is None:
            queue = self._queues[executor] = _WorkQueue(self)
        queue.put(_AwaitedCall(call, waiter), executor)
        try:
            await waiter
        except BaseException:
            call.cancel()
            raise
        result: Result = call.result()
        return result

    def arrive(self, waiter: "Waiter[None]", others: Collection[object] = ()) -> None:
        """Wake a waiter, from any thread; while other work waits, with its results or at a tick."""
        self._due.append(waiter)
        # After the entry: work that waits now arrives after it, and wakes this waiter too.
        if self._is_scheduled or (others and len(self._due) < RETURNED_AT_ONCE):
            return
        self._is_scheduled = True
        with suppress(RuntimeError):  # the event loop was closed: no waiter is left
            self.loop.call_soon_threadsafe(self.wake)

    def wake_after(self, work: Callable[[], object]) -> None:
        """Do work that ends futures, in the loop: a call from another thread takes far longer."""
        self._is_scheduled = True  # by the end of this
        try:
            work()
        finally:
            self.wake()

    def wake(self) -> None:
        """Wake the waiters that are due; runs in the loop."""
        self._is_scheduled = False  # before the queue is read: later waiters schedule it again
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(None)


class _AwaitedCall(NamedTuple):
    """A call, and the waiter that the loop wakes after it."""

    call: Call
    waiter: "Waiter[None]"


class _WorkQueue:
    """Work of one event loop for one executor.

    Args:
        threads: The loop's.
    """

    def __init__(self, threads: LoopThreads) -> None:
        self._threads = threads
        self._new: list[_AwaitedCall] = []  # of this turn; used by the loop alone
        self._lock = InnerLock()
        self._waiting: deque[_AwaitedCall] = deque()
        self._active = 0  # threads at work, or about to be
        self._finished = 0
        self._is_watched = False

    def put(self, work: _AwaitedCall, executor: "Executor") -> None:
        """Queue work; it is handed over once the loop has run what is ready."""
        self._new.append(work)
        if len(self._new) == 1:
            self._threads.loop.call_soon(self._hand_over, executor)

    def _hand_over(self, executor: "Executor") -> None:
        new, self._new = self._new, []
        announced = [work.call.announced for work in new if work.call.announced is not None]
        turn = LoopTurn(announced)
        for work in new:
            work.call.turn = work.call.whole_turn = turn
        with self._lock:
            self._waiting.extend(new)
            active = self._active
        for _ in new[: max(0, FEW_THREADS - active)]:
            self._start(executor)
        if (active or len(new) > 1) and not self._is_watched:
            self._is_watched = True
            self._watch(executor)

    def _start(self, executor: "Executor") -> None:
        with self._lock:
            self._active += 1
        try:
            with settling():
                executor.submit(self._work, executor)
        except RuntimeError:  # it was shut down
            with self._lock:
                self._active -= 1
                waiting, self._waiting = self._waiting, deque()
            for work in waiting:
                work.call.fail(StoreClosedError("the memory was closed"))
                self._threads.arrive(work.waiter)

    def _watch(self, executor: "Executor") -> None:
        check = partial(self._check_progress, executor, self._finished)
        self._threads.loop.call_later(TICK, check)

    def _check_progress(self, executor: "Executor", finished: int) -> None:
        """Return results, and start a further thread if none got on since the last check."""
        is_done = not self._waiting  # before the results are returned: no later one waits for it
        self._threads.wake()
        if is_done:
            self._is_watched = False
            return
        if self._finished == finished and self._active < MAX_ACTIVE:
            self._start(executor)
        self._watch(executor)

    def _work(self, executor: "Executor") -> None:
        """Do the waiting work; runs in a thread of the executor."""
        end = time.monotonic() + MAX_SECONDS
        while True:
            with self._lock:
                if not self._waiting:
                    self._active -= 1
                    return
                call, waiter = self._waiting.popleft()
            if not waiter.cancelled():
                call.run()
            self._finished += 1  # one that is lost between two threads is no harm
            self._threads.arrive(waiter, self._waiting)
            del call, waiter  # they hold the work's result
            if time.monotonic() >= end and self._goes_on_later(executor):
                return

    def _goes_on_later(self, executor: "Executor") -> bool:
        """Return whether the executor does its other work before this queue's."""
        with suppress(RuntimeError), settling():  # it was shut down
            executor.submit(self._work, executor)
            return True
        return False


_this_thread = threading.local()


def threads_of(loop: "AbstractEventLoop") -> LoopThreads:
    """Return the only `LoopThreads` of an event loop, in the loop's thread."""
    threads: LoopThreads | None = getattr(_this_thread, "threads", None)
    if threads is None or threads.loop is not loop:
        threads = _this_thread.threads = LoopThreads(loop)
    return threads
