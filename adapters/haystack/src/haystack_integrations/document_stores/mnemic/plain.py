"""Plain forms of methods that are awaited, so that every method is written once."""

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from mnemic import AsyncScopedMemory, ScopedMemory

Given = ParamSpec("Given")
Result = TypeVar("Result")
_is_plain = ContextVar("is_plain", default=False)


class _Immediate:
    """The verbs of a memory as coroutines that are done at their first step."""

    def __init__(self, memory: ScopedMemory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            return getattr(self._memory, name)(*args, **named)

        return call


def verbs_of(memory: ScopedMemory) -> AsyncScopedMemory:
    """Return the verbs of a memory; below a plain method they never wait."""
    return cast("AsyncScopedMemory", _Immediate(memory)) if _is_plain.get() else memory.aio


def plain(awaited: Callable[Given, Coroutine[Any, Any, Result]]) -> Callable[Given, Result]:
    """Return a method that takes the steps of an awaited one, which has verbs alone to wait for."""

    @wraps(awaited)
    def call(*args: Given.args, **named: Given.kwargs) -> Result:
        before = _is_plain.set(True)
        try:
            awaited(*args, **named).send(None)
        except StopIteration as done:
            return cast("Result", done.value)
        finally:
            _is_plain.reset(before)
        raise AssertionError("a verb waited")

    return call
