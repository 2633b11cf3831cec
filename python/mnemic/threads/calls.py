"""Calls of an event loop that run in threads: their turn, their context, and their cancellation."""

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar

from mnemic.threads.locks import Lock

Result = TypeVar("Result")


class LoopTurn:
    """Values shared by the work that one turn of an event loop handed over.

    Args:
        announced: The descriptions of that work, where it has one; an attribute too.
    """

    def __init__(self, announced: Sequence[object] = ()) -> None:
        self.announced = announced
        self._values: dict[Hashable, Any] = {}

    def value(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return a value that the first piece of work computes for all."""
        if key not in self._values:
            self._values[key] = compute()
        found: Result = self._values[key]
        return found

    def only(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return the one object of a key, though several threads ask for it at once."""
        found: Result = self._values.get(key) or self._values.setdefault(key, make())
        return found


class Call:
    """One piece of blocking work, with its caller's context.

    Args:
        work: The work.
        announced: A description of it for the work beside it in its turn; an attribute too.

    Attributes:
        turn: The turn that it was handed over in, until it used a value of that moment.
        whole_turn: The same, to the end of the work.
    """

    def __init__(self, work: Callable[[], Any], announced: object = None) -> None:
        self.announced = announced
        self.turn: LoopTurn | None = None
        self.whole_turn: LoopTurn | None = None
        self._work = work
        self._context: Context = copy_context()
        self._result: Any = None
        self._error: BaseException | None = None
        self._lock = Lock()
        self._callbacks: list[Callable[[], object]] | None = []  # None once cancelled

    def run(self) -> None:
        """Do the work, and keep its result or error."""
        try:
            self._result = self.run_in_context()
        except BaseException as error:  # noqa: BLE001 - its caller gets it
            self._error = error

    def run_in_context(self) -> Any:
        """Do the work with the caller's context variables."""
        self._context.run(CURRENT_CALL.set, self)
        work, self._work = self._work, _nothing  # the context refers to this object
        return self._context.run(work)

    def fail(self, error: BaseException) -> None:
        """Let the work fail that was not begun."""
        self._error = error

    def result(self) -> Any:
        """Return the result of the work, or raise its error."""
        if self._error is None:
            return self._result
        try:
            raise self._error
        finally:
            self._error = None  # its traceback refers to this frame

    def cancel(self) -> None:
        """Call the callbacks."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks or [], None
        for callback in callbacks:
            callback()

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call a function when the call is cancelled, at once if it was before."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback()

    def remove_callback(self, callback: Callable[[], object]) -> None:
        """Remove a callback. Repeated calls have no effect."""
        with self._lock:
            if self._callbacks is not None and callback in self._callbacks:
                self._callbacks.remove(callback)


def _nothing() -> None:
    """Take the place of work that is done."""


CURRENT_CALL: Final[ContextVar[Call | None]] = ContextVar("mnemic_call", default=None)
"""The call of an event loop that this thread works for; set by whoever runs it."""


@contextmanager
def on_cancellation(callback: Callable[[], object]) -> Generator[None, None, None]:
    """Call a function, from another thread, if the awaiting task is cancelled inside this block.

    In a synchronous call it is never called.
    """
    call = CURRENT_CALL.get()
    if call is None:
        yield
        return
    call.add_callback(callback)
    try:
        yield
    finally:
        call.remove_callback(callback)


def shared_in_turn(key: Hashable, compute: Callable[[], Result]) -> Result:
    """Return a value computed since this work was handed over, perhaps by work beside it.

    Only the first such value of each piece of work is shared: later ones must see what happened
    meanwhile.
    """
    call = CURRENT_CALL.get()
    if call is None or call.turn is None:
        return compute()
    turn, call.turn = call.turn, None
    return turn.value(key, compute)


def current_turn() -> LoopTurn | None:
    """Return the turn of the work that this thread does for an event loop, or None."""
    call = CURRENT_CALL.get()
    return None if call is None else call.whole_turn
