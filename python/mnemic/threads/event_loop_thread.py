"""Runs coroutines, such as those of an embedder, on one event loop in a thread of its own."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.calls import on_cancellation
from mnemic.threads.locks import InnerLock
from mnemic.threads.waited_future import WaitedFuture

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Event, Task
    from collections.abc import Awaitable, Callable

Result = TypeVar("Result")

CLOSE_SECONDS = 10.0
"""Seconds that `close` waits for a coroutine that ignores its cancellation."""


class _Interruption(NamedTuple):
    """An error that would end the event loop if a task raised it."""

    error: BaseException


class LoopEndedError(RuntimeError):
    """An awaitable, or what it began, ended the event loop: by SystemExit, say, or its `stop`."""


class EventLoopThread:
    """Runs awaitables on one event loop, started by the first of them.

    One loop serves all calls, so that a client kept by the embedder, such as a pool of connections,
    stays usable from one call to the next, whatever loops the callers have. Thread-safe. The thread
    ends at `close`, when this object is collected, or at exit. Where an awaitable stops the loop,
    or a task or a callback that it began raises SystemExit or KeyboardInterrupt, its loop ends:
    what waits then fails, and the next call begins another loop.

    Args:
        owner: What the coroutines belong to, in the names of threads and in errors.
    """

    def __init__(self, owner: str = "embedder") -> None:
        self._owner = owner
        self._lock = InnerLock()
        self._running: _LoopRun | None = None
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._running is not None

    def run(self, awaitable: Awaitable[Result], seconds: float | None = None) -> Result:
        """Wait in this thread for an awaitable that runs in the loop's thread.

        The context variables of this thread are copied. If the caller is cancelled or interrupted
        meanwhile, so is the awaitable.

        Args:
            awaitable: The awaitable.
            seconds: Most seconds to wait; None for no limit.

        Raises:
            CancelledError: That of `concurrent.futures`, if it was cancelled.
            LoopEndedError: If another awaitable ended the loop, a task or callback of this one, or
                `close`.
            RuntimeError: If this is the loop's own thread.
            TimeoutError: If the seconds pass; the awaitable is cancelled.
            BaseException: What the awaitable raises. SystemExit and KeyboardInterrupt leave the
                loop running.
        """
        work = _Work(awaitable)
        try:
            self._begin(work)
            with on_cancellation(work.cancel):
                return work.result.result(seconds)
        finally:
            work.cancel()  # no effect if it is done
            del work  # the traceback of its error refers to this frame

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Cancel running awaitables and end the thread. Repeated calls have no effect.

        Args:
            seconds: Most seconds to wait for awaitables that ignore their cancellation.
        """
        with self._lock:
            self._is_closed = True
            running, self._running = self._running, None
        if running is not None:
            running.stop(seconds)

    def _begin(self, work: _Work[Any]) -> None:
        with self._lock:
            while not self._started().begin(work):
                self._running = None  # that one has ended

    def _started(self) -> _LoopRun:
        if self._is_closed:
            raise LoopEndedError(f"the event loop of the {self._owner} is closed")
        if self._running is None or self._running.process != os.getpid():
            self._running = _LoopRun(self._owner)
            weakref.finalize(self, self._running.stop)
        if threading.current_thread() is self._running.thread:
            raise RuntimeError(f"a coroutine {self._owner} cannot wait for itself; let it await")
        return self._running


class _LoopRun:
    """One event loop in a thread, from its start to its end.

    Args:
        owner: See `EventLoopThread`.

    Attributes:
        process: The process of the thread.
        thread: The thread.
    """

    def __init__(self, owner: str) -> None:
        self.process = os.getpid()
        self._owner = owner
        self._lock = InnerLock()
        self._works: set[_Work[Any]] | None = set()  # None once the loop takes no more
        started: Future[tuple[AbstractEventLoop, Event]] = Future()
        # A daemon, so that a program which forgets to close can end; `finalize` ends it before.
        self.thread = thread_of(owner, self._run, started)
        start_thread(self.thread)
        self._loop, self._stop = started.result()

    def begin(self, work: _Work[Any]) -> bool:
        """Begin an awaitable; return False if the loop has ended."""
        with self._lock:
            if self._works is None:
                return False
            self._works.add(work)
            work.hand_over(self._loop, self._left)
        return True

    def stop(self, seconds: float = CLOSE_SECONDS) -> None:
        """End the loop, and wait for the end of its thread; its running tasks are cancelled."""
        # A forked child has no such thread, and shares the pipe that would wake the parent's.
        if self.process != os.getpid() or not self.thread.is_alive():
            return
        with suppress(RuntimeError):  # it was closed meanwhile
            self._loop.call_soon_threadsafe(self._stop.set)
        if threading.current_thread() is not self.thread:
            self.thread.join(seconds)

    def _run(self, started: Future[tuple[AbstractEventLoop, Event]]) -> None:
        works: set[_Work[Any]] = set()
        try:
            import asyncio  # noqa: PLC0415 - a third of the import budget, seldom used

            async def serve() -> None:
                stop = asyncio.Event()
                started.set_result((asyncio.get_running_loop(), stop))
                await stop.wait()

            with asyncio.Runner() as runner:
                try:
                    runner.run(serve())
                except BaseException as error:
                    works = self._ended()
                    self._fail(works, self._kind(error))  # before its tasks are cancelled
                    raise
                works = self._ended()
                self._fail(works, "close()")
        except BaseException as error:  # noqa: BLE001 - that of a cancelled task, too
            if not started.done():
                started.set_exception(error)
            self._fail(works, self._kind(error))

    def _ended(self) -> set[_Work[Any]]:
        """Take no more awaitables; return those that wait."""
        with self._lock:
            works, self._works = self._works or set(), None
        return works

    def _fail(self, works: set[_Work[Any]], what: str) -> None:
        for work in works:
            work.fail(LoopEndedError(f"{what} ended the event loop of the {self._owner}"))

    @staticmethod
    def _kind(error: BaseException) -> str:
        return "stop()" if isinstance(error, RuntimeError) else type(error).__name__

    def _left(self, work: _Work[Any]) -> None:
        with self._lock:
            if self._works is not None:
                self._works.discard(work)


class _Work(Generic[Result]):
    """An awaitable on an event loop, whose result a thread waits for.

    Args:
        awaitable: The awaitable, which this closes if it never begins.

    Attributes:
        result: Its result.
    """

    def __init__(self, awaitable: Awaitable[Result]) -> None:
        self.result: Future[Result] = WaitedFuture()
        self._awaitable = awaitable
        self._loop: AbstractEventLoop | None = None
        self._left: Callable[[_Work[Any]], object] = bool
        self._task: Task[Result | _Interruption] | None = None

    def hand_over(self, loop: AbstractEventLoop, left: Callable[[_Work[Any]], object]) -> None:
        """Begin in a loop's thread; what that has may be closed there alone.

        Args:
            loop: The event loop.
            left: Called in its thread when the awaitable is done.
        """
        self._loop, self._left = loop, left
        loop.call_soon_threadsafe(self._begin, loop)

    def _begin(self, loop: AbstractEventLoop) -> None:
        """Begin, in the context of the caller."""
        if self.result.done():
            self._left(self)
            _close(self._awaitable)
            return
        self._task = loop.create_task(_contained(self._awaitable))
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Wait no more, and cancel the awaitable; no effect if it is done."""
        if not self.result.cancel():
            return
        if self._loop is None:
            _close(self._awaitable)
            return
        with suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._cancel_task)

    def fail(self, error: Exception) -> None:
        """Give the waiting thread an error; in the loop's thread, while the loop does not run."""
        with suppress(InvalidStateError):  # it is done
            self.result.set_exception(error)
        if self._task is None:
            _close(self._awaitable)

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._left(self)
            _close(self._awaitable)  # interrupted in the midst of being handed over

    def _settle(self, task: Task[Result | _Interruption]) -> None:
        self._left(self)
        _close(self._awaitable)  # the task may have been cancelled before its begin
        if task.cancelled():
            self.result.cancel()
            return
        error = task.exception()
        with suppress(InvalidStateError):  # its caller left, or it has failed
            if error is not None:
                self.result.set_exception(error)
            elif isinstance(outcome := task.result(), _Interruption):
                self.result.set_exception(outcome.error)
            else:
                self.result.set_result(outcome)


def _close(awaitable: object) -> None:
    """Close a coroutine that never began; otherwise Python warns that it was not awaited."""
    if isinstance(awaitable, Coroutine):
        awaitable.close()


async def _contained(awaitable: Awaitable[Result]) -> Result | _Interruption:
    """Await an awaitable; return what asyncio would end the event loop with."""
    try:
        return await awaitable
    except (KeyboardInterrupt, SystemExit) as error:
        return _Interruption(error)
