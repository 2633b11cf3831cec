"""Functions of callers, such as a language model's: plain ones in threads, awaited ones in time."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from mnemic.errors import DeadlineExceededError
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.calls import Call
from mnemic.threads.locks import InnerLock
from mnemic.threads.loop_threads import LoopThreads, threads_of

Result = TypeVar("Result")


class CallCancelledError(Exception):
    """A call of a caller's object was cancelled by itself."""


class CallInterruptedError(Exception):
    """A call of a caller's object raised SystemExit or KeyboardInterrupt."""


class LimitedTasks:
    """Runs coroutines as tasks of their own, and leaves those that are late. Thread-safe."""

    def __init__(self) -> None:
        self._left: set[asyncio.Task[Any]] = set()

    async def result(self, coroutine: Coroutine[Any, Any, Result], deadline: float) -> Result:
        """Return the result of a coroutine; its task is cancelled at the deadline, or with this.

        Args:
            coroutine: The coroutine.
            deadline: In seconds of `time.monotonic()`.

        Raises:
            CallCancelledError: If it cancelled itself.
            CallInterruptedError: If it raises SystemExit or KeyboardInterrupt, but in the main
                thread: there these end the program, as they do elsewhere.
            DeadlineExceededError: If the deadline passes.
        """
        task = asyncio.get_running_loop().create_task(_contained(coroutine))
        task.add_done_callback(lambda _: coroutine.close())  # a cancellation came before its begin
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            if not task.done():
                self._leave(task)
        if not task.done():
            raise DeadlineExceededError
        if task.cancelled():
            raise CallCancelledError
        return task.result()

    async def end(self, seconds: float) -> None:
        """Wait for a bounded time until the tasks of this event loop that were left have ended."""
        loop = asyncio.get_running_loop()
        mine = {task for task in self._left.copy() if task.get_loop() is loop}
        if mine:
            await asyncio.wait(mine, timeout=seconds)

    def _leave(self, task: asyncio.Task[Any]) -> None:
        self._left.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs that it was not read


async def _contained(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Await a coroutine; raise an error for one that would end the event loop."""
    try:
        return await coroutine
    except (KeyboardInterrupt, SystemExit) as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise CallInterruptedError from error


MAX_THREADS = 32
"""Functions that run at once, hanging ones included; further ones wait for their turn."""

MAX_IDLE = 2
IDLE_SECONDS = 10.0
"""Threads that wait for a further function, and how long: to start one takes as long as a short
search."""


class _Job(NamedTuple):
    """A call, and the waiter that its event loop wakes after it."""

    call: Call
    waiter: "asyncio.Future[None]"
    threads: LoopThreads


class CallThreads:
    """Runs functions in daemon threads, few of which stay for a while. Thread-safe.

    Nothing waits for a hanging function at the end of the program, and nothing has to be closed:
    threads without work end by themselves, or by `join`.

    Args:
        name: Name of the threads; see `thread_of`.
        max_threads: See `MAX_THREADS`.
    """

    def __init__(self, name: str, max_threads: int = MAX_THREADS) -> None:
        self._name = name
        self._max_threads = max_threads
        self.renew()

    def renew(self) -> None:
        """Forget the threads of another process, whose locks may never be released."""
        self._lock = InnerLock()
        self._waiting: deque[_Job] = deque()
        self._active = 0  # threads, those that wait for a function apart
        self._idle = 0
        self._is_closed = False
        self._handed: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function; a cancelled caller leaves it, and a coroutine that it waits for ends.

        Args:
            work: The function; it gets a copy of the caller's context variables.

        Raises:
            CallInterruptedError: If it raises SystemExit or KeyboardInterrupt.
        """
        loop = asyncio.get_running_loop()
        job = _Job(Call(work), loop.create_future(), threads_of(loop))
        self._begin(job)
        try:
            await job.waiter
        except BaseException:
            job.call.cancel()
            raise
        try:
            result: Result = job.call.result()
        except (KeyboardInterrupt, SystemExit) as error:  # which would end the event loop
            raise CallInterruptedError from error
        return result

    def join(self, seconds: float) -> None:
        """End the threads without work, keep none from now on, and wait for the end of all.

        Args:
            seconds: Most seconds to wait.
        """
        end = time.monotonic() + seconds
        with self._lock:
            self._is_closed = True
            threads, idle = list(self._threads), self._idle
            self._idle = 0
        for _ in range(idle):
            self._handed.put(None)
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _begin(self, job: _Job) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._active += 1
                self._handed.put(job)
                return
            if self._active >= self._max_threads:
                self._waiting.append(job)
                return
            self._active += 1
        try:
            self._start(job)
        except RuntimeError as error:  # no thread to be had
            with self._lock:
                self._active -= 1
            job.call.fail(error)
            job.threads.arrive(job.waiter)

    def _start(self, job: _Job) -> None:
        # Not as an argument, which a thread holds to its end, and with it the first result.
        thread = thread_of(self._name, self._work)
        start_thread(thread)
        self._handed.put(job)
        with self._lock:
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _work(self) -> None:
        job = self._handed.get()
        while job is not None:
            if not job.waiter.cancelled():
                job.call.run()
            job.threads.arrive(job.waiter)
            del job  # it holds the result
            job = self._next()

    def _next(self) -> _Job | None:
        """Return the next job of a thread; None if it is to end."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._active -= 1
            if self._is_closed or self._idle >= MAX_IDLE:
                return None
            self._idle += 1
            handed = self._handed
        try:
            return handed.get(timeout=IDLE_SECONDS)
        except Empty:
            pass
        with self._lock:
            if self._idle:
                self._idle -= 1
                return None
        return handed.get()  # another call counted on this thread meanwhile
