"""Let one coroutine serve two doors: awaited in an event loop, or driven in the caller's thread.

The store's writer is a plain thread (C176). Under an event loop its results come back by
`call_soon_threadsafe`; at the synchronous front door the caller's thread simply waits for them,
with no event loop and no further thread between.
"""

import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

_this_thread = threading.local()


def is_driving() -> bool:
    """Return whether this thread runs a coroutine by `drive`, with no event loop around it."""
    return getattr(_this_thread, "is_driving", False)


class Settled(Generic[Result]):
    """An awaitable for the result of work that another thread is doing.

    Args:
        future: The work's future, not bound to any event loop.
    """

    __slots__ = ("_future",)

    def __init__(self, future: Future[Result]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, Result]:
        if is_driving():
            return self._future.result()
        import asyncio  # noqa: PLC0415 - a third of the import budget, unused at the front door

        return (yield from asyncio.wrap_future(self._future).__await__())


async def computed(work: Callable[[], Result]) -> Result:
    """Run work that computes or waits for long without holding up an event loop.

    At the synchronous front door it runs in the caller's thread; in an event loop it runs in
    another one, with a copy of the caller's context variables.
    """
    if is_driving():
        return work()
    import asyncio  # noqa: PLC0415 - as above

    return await asyncio.to_thread(work)


async def awaited(awaitable: Awaitable[Result]) -> Result:
    """Await what may need an event loop; at the synchronous front door it gets one of its own."""
    if not is_driving():
        return await awaitable
    import asyncio  # noqa: PLC0415 - as above
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    async def outside() -> Result:
        return await awaitable

    # In another thread, because this one may be running an event loop already.
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(copy_context().run, asyncio.run, outside()).result()


def drive(coroutine: Coroutine[Any, None, Result]) -> Result:
    """Run a coroutine to its end in this thread, waiting wherever it awaits a `Settled`.

    Args:
        coroutine: One that awaits nothing but `Settled` and coroutines like itself.

    Returns:
        What the coroutine returns.

    Raises:
        RuntimeError: If it awaits something that needs an event loop.
    """
    outer = is_driving()
    _this_thread.is_driving = True
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        _this_thread.is_driving = outer
        coroutine.close()
    raise RuntimeError("this coroutine needs an event loop and cannot be driven without one")
