"""Plain functions of callers, each in a daemon thread: a hanging one is left behind."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from mnemic.loop_threads import Call, LoopThreads, threads_of

Result = TypeVar("Result")

MAX_THREADS = 32
"""Functions that run at once, hanging ones included; further ones wait for their turn."""


class _Job(NamedTuple):
    """A call, and the waiter that its event loop wakes after it."""

    call: Call
    waiter: "asyncio.Future[None]"
    threads: LoopThreads


class CallThreads:
    """Runs functions in daemon threads, which end when nothing waits. Thread-safe.

    No thread is kept, so nothing has to be closed, and nothing waits for a hanging function at the
    end of the program.

    Args:
        name: Name of the threads.
        max_threads: See `MAX_THREADS`.
    """

    def __init__(self, name: str, max_threads: int = MAX_THREADS) -> None:
        self._name = name
        self._max_threads = max_threads
        self.renew()

    def renew(self) -> None:
        """Forget the threads of another process, whose locks may be held for good."""
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._active = 0
        self._threads: list[threading.Thread] = []

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function; a cancelled caller leaves it, and a coroutine that it waits for ends.

        Args:
            work: The function; it gets a copy of the caller's context variables.
        """
        loop = asyncio.get_running_loop()
        job = _Job(Call(work), loop.create_future(), threads_of(loop))
        self._begin(job)
        try:
            await job.waiter
        except BaseException:
            job.call.cancel()
            raise
        result: Result = job.call.result()
        return result

    def join(self, seconds: float) -> None:
        """Wait for the end of the threads, for a bounded time."""
        end = time.monotonic() + seconds
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _begin(self, job: _Job) -> None:
        with self._lock:
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
        thread = threading.Thread(target=self._work, args=(job,), name=self._name, daemon=True)
        thread.start()
        with self._lock:
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _work(self, job: _Job | None) -> None:
        while job is not None:
            if not job.waiter.cancelled():
                job.call.run()
            done, job = job, self._next()
            done.threads.arrive(done.waiter)

    def _next(self) -> _Job | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._active -= 1
            return None
