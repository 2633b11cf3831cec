"""Runs coroutines, such as those of an embedder, on one event loop in a thread of its own."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mnemic.threads.cancellation import on_cancellation

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Event
    from collections.abc import Awaitable

Result = TypeVar("Result")

CLOSE_SECONDS = 10.0
"""Seconds that `close` waits for a coroutine that ignores its cancellation."""


class _RunningLoop(NamedTuple):
    """A running loop, its stop event, its thread, and its process."""

    loop: AbstractEventLoop
    stop: Event
    thread: threading.Thread
    process: int


class _Interruption(NamedTuple):
    """An error that would end the event loop if a task raised it."""

    error: BaseException


class EventLoopThread:
    """Runs awaitables on one event loop, started by the first of them.

    One loop serves all calls, so that a client kept by the embedder, such as a pool of connections,
    stays usable from one call to the next, whatever loops the callers have. Thread-safe. The thread
    ends at `close`, when this object is collected, or at exit.

    Args:
        owner: What the coroutines belong to, in the names of threads and in errors.
    """

    def __init__(self, owner: str = "embedder") -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._running: _RunningLoop | None = None
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
            CancelledError: That of `concurrent.futures`, if it was cancelled, by `close` or itself.
            RuntimeError: If this is closed, or this is the loop's own thread.
            TimeoutError: If the seconds pass; the awaitable is cancelled.
            BaseException: What the awaitable raises. SystemExit and KeyboardInterrupt leave the
                loop running.
        """
        future = self._submitted(awaitable)
        try:
            with on_cancellation(future.cancel):
                result = future.result(seconds)
        finally:
            future.cancel()  # no effect if it is done
        if isinstance(result, _Interruption):
            raise result.error
        return result

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Cancel running awaitables and end the thread. Repeated calls have no effect.

        Args:
            seconds: Most seconds to wait for awaitables that ignore their cancellation.
        """
        with self._lock:
            self._is_closed = True
            running, self._running = self._running, None
        if running is not None:
            _stop(running, seconds)

    def _submitted(self, awaitable: Awaitable[Result]) -> Future[Result | _Interruption]:
        import asyncio  # noqa: PLC0415 - a third of the import budget, seldom used

        coroutine = _contained(awaitable)
        try:
            with self._lock:
                return asyncio.run_coroutine_threadsafe(coroutine, self._started().loop)
        except BaseException:
            coroutine.close()  # otherwise Python warns that they were not awaited
            if isinstance(awaitable, Coroutine):
                awaitable.close()
            raise

    def _started(self) -> _RunningLoop:
        if self._is_closed:
            raise RuntimeError(f"the event loop of the {self._owner} is closed")
        if self._running is None or self._running.process != os.getpid():
            self._running = _start(f"mnemic-{self._owner}")
            weakref.finalize(self, _stop, self._running)
        if threading.current_thread() is self._running.thread:
            raise RuntimeError(f"a coroutine {self._owner} cannot wait for itself; let it await")
        return self._running


def _start(name: str) -> _RunningLoop:
    import asyncio  # noqa: PLC0415 - as above

    started: Future[tuple[AbstractEventLoop, Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    # A daemon, so that a program which forgets to close can end; `finalize` ends it before that.
    thread = threading.Thread(target=lambda: asyncio.run(serve()), name=name, daemon=True)
    thread.start()
    return _RunningLoop(*started.result(), thread, os.getpid())


def _stop(running: _RunningLoop, seconds: float = CLOSE_SECONDS) -> None:
    """End a loop; `asyncio.run` cancels its running tasks."""
    # A forked child has no such thread, and shares the pipe that would wake the parent's.
    if running.process != os.getpid() or not running.thread.is_alive():
        return
    running.loop.call_soon_threadsafe(running.stop.set)
    if threading.current_thread() is not running.thread:
        running.thread.join(seconds)


async def _contained(awaitable: Awaitable[Result]) -> Result | _Interruption:
    """Await an awaitable; return what asyncio would end the event loop with."""
    try:
        return await awaitable
    except (KeyboardInterrupt, SystemExit) as error:
        return _Interruption(error)
