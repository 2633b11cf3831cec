"""Calls of functions that programs give: plain ones and coroutine functions."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mnemic.threads.sync_bridge import awaited, run_blocking, run_sync

Result = TypeVar("Result")


def is_awaited(function: object) -> bool:
    """Return whether a function, or the call of an object, is a coroutine function."""
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object's


async def called(
    function: Callable[..., Any],
    *values: object,
    callback: Callable[..., Awaitable[Any]] | None = None,
    **named: object,
) -> Any:
    """Return the result of a function, plain or awaited.

    A plain one runs in another thread if an event loop waits for it. A synchronous call gives
    an awaited one an event loop.

    Args:
        function: The function.
        values: Its arguments.
        callback: A coroutine function that is one more; a plain function gets a plain one.
        named: Its named arguments.
    """
    if is_awaited(function):
        given = values if callback is None else (*values, callback)
        returned = function(*given, **named)
    else:
        given = values if callback is None else (*values, _plain(callback))
        returned = await run_blocking(lambda: function(*given, **named))
    return await awaited(returned) if inspect.isawaitable(returned) else returned


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: run_sync(function(*values))
