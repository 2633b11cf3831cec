"""Runs one coroutine for two interfaces: awaited in an event loop, or synchronously in a thread.

Blocking work runs in another thread, and its result returns to the event loop. In a synchronous
call the same coroutine does that work in the caller's thread, without an event loop or a further
thread.
"""

import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, cast

from mnemic.errors import MnemicError, WrongFormError
from mnemic.reporting.near_names import explain_failure
from mnemic.threads.background import running_loop
from mnemic.threads.calls import CURRENT_CALL, Call
from mnemic.threads.locks import OF_THREAD, check_no_lock_is_held, settling
from mnemic.threads.loop_threads import threads_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_this_thread = threading.local()


def runs_sync() -> bool:
    """Return whether this thread runs a coroutine by `run_sync`, without an event loop."""
    return getattr(_this_thread, "runs_sync", False)


class HasExecutor(Protocol):
    """Has threads for blocking work, such as a store."""

    @property
    def executor(self) -> "Executor":
        """The threads."""
        ...


async def run_blocking(
    work: Callable[[], Result], threads: HasExecutor | None = None, *, announced: object = None
) -> Result:
    """Run blocking work without blocking an event loop.

    In a synchronous call it runs in the caller's thread; in an event loop it runs in another one,
    with a copy of the caller's context variables.

    Args:
        work: The work.
        threads: Has the thread it runs in; None takes one of the event loop's own.
        announced: A description of the work for that beside it in one turn of the event loop; see
            `mnemic.threads.loop_threads.LoopTurn`.
    """
    if runs_sync():
        return work()
    import asyncio  # noqa: PLC0415 - a third of the import budget, unused by plain calls

    loop = asyncio.get_running_loop()
    if threads is not None:
        return await threads_of(loop).run(work, threads.executor, announced)
    call = Call(work)
    with settling():
        running = loop.run_in_executor(None, call.run_in_context)
    try:
        result: Result = await running
    except asyncio.CancelledError:
        call.cancel()
        raise
    return result


async def awaited(awaitable: Awaitable[Result]) -> Result:
    """Await an awaitable that may need an event loop; a synchronous call gets a new one."""
    if not runs_sync():
        return await awaitable
    import asyncio  # noqa: PLC0415 - as above
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

    async def outside() -> Result:
        return await awaitable

    # In another thread, because this one may be running an event loop already.
    with ThreadPoolExecutor(1, "mnemic-await") as elsewhere:
        with settling():
            result = elsewhere.submit(copy_context().run, asyncio.run, outside())
        return result.result()


async def arrived(future: "Future[Result]") -> Result:
    """Wait for a future, such as that of a store's write.

    A cancellation cancels the future too, if its work has not begun.
    """
    with settling():
        is_done = future.done()
    if not is_done:
        if runs_sync():
            _wait_here(future)
        else:
            import asyncio  # noqa: PLC0415 - as above

            await threads_of(asyncio.get_running_loop()).wait(future)
    try:
        with settling():
            return future.result()
    finally:
        del future  # the traceback of its error refers to this frame


def _wait_here(future: "Future[Any]") -> None:
    """Wait in this thread for a future, without a lock of it: a signal handler may write."""
    hurry = getattr(future, "hurry", None)
    if hurry is not None:
        hurry()
    from queue import SimpleQueue  # noqa: PLC0415 - only where another thread writes

    done: SimpleQueue[object] = SimpleQueue()
    with settling():
        future.add_done_callback(done.put)
    done.get()


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
    call = CURRENT_CALL.get()
    if call is not None:
        call.turn = None  # this call sees what happened since that one was handed over
    try:
        is_amid = outer or call is not None or OF_THREAD.settling.is_held_here()
        if is_amid or running_loop() is not None:
            check_no_lock_is_held()  # a signal handler may have interrupted one that does
        _this_thread.runs_sync = True
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
    inner: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]] = getattr(
        method, "__wrapped__", method
    )  # without the frame that checks awaited calls

    @wraps(inner)
    def call(this: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return run_sync(inner(this, *args, **named))
        except (TypeError, MnemicError) as error:
            explain_failure(error, inner, (this, *args), named)
            raise

    call.__qualname__ = method.__qualname__.removeprefix("Async")
    return call


Other = TypeVar("Other", bound="Twin")


class Twin:
    """Either form of an object, which leads to the other form of the same object."""

    _maker: "weakref.ref[Twin] | None" = None

    def _other_form(self, kind: type[Other]) -> Other:
        """Return the other form, which shares all attributes; the same object each time.

        The form that makes the other one holds it, and is held by it weakly: a circle would keep a
        dropped memory open until the garbage collector runs.
        """
        maker = None if self._maker is None else self._maker()
        if isinstance(maker, kind):
            return maker
        others = vars(self).setdefault("_others", {})
        if kind not in others:
            made = kind.__new__(kind)
            vars(made).update(vars(self), _others={}, _maker=weakref.ref(self))
            others.setdefault(kind, made)  # of several threads, the first one's
        return cast("Other", others[kind])


class WrongForm:
    """A member that a class lacks: looking for it says what to write instead.

    Args:
        hint: The message, in which `{name}` is the class, and `{plain}` and `{awaited}` its forms.
    """

    def __init__(self, hint: str) -> None:
        self._hint = hint

    def __get__(self, instance: object, owner: type) -> NoReturn:
        plain = owner.__name__.removeprefix("Async")
        hint = self._hint.format(name=owner.__name__, plain=plain, awaited=f"Async{plain}")
        raise WrongFormError(hint)


class EnteredPlainly:
    """What `with` enters and `async with` does not."""

    if not TYPE_CHECKING:
        __aenter__ = WrongForm(
            "{name} is entered by 'with'; to await its calls, take {awaited} and 'async with'"
        )


class EnteredAwaited:
    """What `async with` enters and `with` does not."""

    if not TYPE_CHECKING:
        __enter__ = WrongForm(
            "{name} is entered by 'async with'; for plain calls, take {plain} and 'with'"
        )


def is_awaited(function: object) -> bool:
    """Return whether a function, or the call of an object, is a coroutine function."""
    import inspect  # noqa: PLC0415 - takes milliseconds

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
    import inspect  # noqa: PLC0415 - as above

    if is_awaited(function):
        given = values if callback is None else (*values, callback)
        returned = function(*given, **named)
    else:
        given = values if callback is None else (*values, _plain(callback))
        returned = await run_blocking(lambda: function(*given, **named))
    return await awaited(returned) if inspect.isawaitable(returned) else returned


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: run_sync(function(*values))
