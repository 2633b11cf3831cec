"""Runs one coroutine for two interfaces: awaited in an event loop, or synchronously in a thread.

Blocking work runs in another thread, and its result returns to the event loop. In a synchronous
call the same coroutine does that work in the caller's thread, without an event loop or a further
thread.
"""

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor, Future

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_this_thread = threading.local()


class _Cancellation:
    """Informs work in another thread that its caller was cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._is_cancelled = False

    def cancel(self) -> None:
        """Call the callbacks."""
        with self._lock:
            self._is_cancelled = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Generator[None, None, None]:
        """Call a function if the caller is cancelled inside this block, or was before."""
        with self._lock:
            self._callbacks.append(callback)
            is_cancelled = self._is_cancelled
        if is_cancelled:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


_cancellation: ContextVar[_Cancellation | None] = ContextVar("mnemic_cancellation", default=None)


@contextmanager
def on_cancellation(callback: Callable[[], object]) -> Generator[None, None, None]:
    """Call a function, from another thread, if the awaiting task is cancelled inside this block.

    In a synchronous call it is never called.
    """
    cancellation = _cancellation.get()
    if cancellation is None:
        yield
        return
    with cancellation.calling(callback):
        yield


def runs_sync() -> bool:
    """Return whether this thread runs a coroutine by `run_sync`, without an event loop."""
    return getattr(_this_thread, "runs_sync", False)


class HasExecutor(Protocol):
    """Has threads for blocking work, such as a store."""

    @property
    def executor(self) -> "Executor":
        """The threads."""
        ...


async def run_blocking(work: Callable[[], Result], threads: HasExecutor | None = None) -> Result:
    """Run blocking work without blocking an event loop.

    In a synchronous call it runs in the caller's thread; in an event loop it runs in another one,
    with a copy of the caller's context variables.

    Args:
        work: The work.
        threads: Has the thread it runs in; None takes one of the event loop's own.
    """
    if runs_sync():
        return work()
    import asyncio  # noqa: PLC0415 - a third of the import budget, unused at the front door

    cancellation, context = _Cancellation(), copy_context()
    context.run(_cancellation.set, cancellation)
    try:
        if threads is None:
            return await asyncio.get_running_loop().run_in_executor(None, context.run, work)
        return await arrived(threads.executor.submit(context.run, work))
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


async def awaited(awaitable: Awaitable[Result]) -> Result:
    """Await an awaitable that may need an event loop; a synchronous call gets a new one."""
    if not runs_sync():
        return await awaitable
    import asyncio  # noqa: PLC0415 - as above
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    async def outside() -> Result:
        return await awaitable

    # In another thread, because this one may be running an event loop already.
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(copy_context().run, asyncio.run, outside()).result()


async def arrived(future: "Future[Result]") -> Result:
    """Wait for a future, such as that of a store's write.

    A cancellation cancels the future too, if its work has not begun.
    """
    if not (future.done() or runs_sync()):
        import asyncio  # noqa: PLC0415 - as above

        await _arrivals_of(asyncio.get_running_loop()).wait(future)
    try:
        return future.result()
    finally:
        del future  # the traceback of its error refers to this frame


class _Arrivals:
    """Wakes the waiting tasks of one event loop, all that are due in one call of the loop.

    It has no lock: a finalizer may interrupt the holder and settle another future.
    """

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self.loop = loop
        self._due: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    async def wait(self, future: "Future[Any]") -> None:
        """Wait until a future is done."""
        waiter = self.loop.create_future()
        future.add_done_callback(partial(self._wake_soon, waiter))
        try:
            await waiter
        finally:
            future.cancel()  # has an effect only before it is done and its work begins

    def _wake_soon(self, waiter: "asyncio.Future[None]", _: "Future[Any]") -> None:
        self._due.append(waiter)
        if self._is_scheduled:
            return
        self._is_scheduled = True
        with suppress(RuntimeError):  # the event loop was closed: nobody waits there any more
            self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_scheduled = False  # before the queue is read: later futures schedule it again
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(None)


def _arrivals_of(loop: "asyncio.AbstractEventLoop") -> _Arrivals:
    arrivals: _Arrivals | None = getattr(_this_thread, "arrivals", None)
    if arrivals is None or arrivals.loop is not loop:
        arrivals = _this_thread.arrivals = _Arrivals(loop)
    return arrivals


def run_sync(coroutine: Coroutine[Any, None, Result]) -> Result:
    """Run a coroutine to its end in this thread; its waits block the thread.

    Args:
        coroutine: It checks `runs_sync` before it awaits anything that needs an event loop.

    Returns:
        The coroutine's result.

    Raises:
        RuntimeError: If it awaits something that needs an event loop.
    """
    outer = runs_sync()
    _this_thread.runs_sync = True
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        _this_thread.runs_sync = outer
        coroutine.close()
    raise RuntimeError("this coroutine needs an event loop and cannot run without one")


def sync_method(
    method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Return a synchronous method for a coroutine method, with its signature and docstring.

    Args:
        method: It is called with an object of another class, so it may only use members of both.
    """

    @wraps(method)
    def call(this: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> Result:
        return run_sync(method(this, *args, **named))

    call.__qualname__ = method.__qualname__.removeprefix("Async")
    return call
