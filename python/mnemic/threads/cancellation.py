"""Tells blocking work in a thread that the task that waits for it was cancelled."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol


class AwaitedWork(Protocol):
    """Work in a thread that a task of an event loop waits for."""

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call a function when the task is cancelled, at once if it was before."""
        ...

    def remove_callback(self, callback: Callable[[], object]) -> None:
        """Remove a callback. Repeated calls have no effect."""
        ...


CURRENT_WORK: Final[ContextVar[AwaitedWork | None]] = ContextVar("mnemic_work", default=None)
"""The work that this thread does for an event loop; set by whoever runs it."""


@contextmanager
def on_cancellation(callback: Callable[[], object]) -> Generator[None, None, None]:
    """Call a function, from another thread, if the awaiting task is cancelled inside this block.

    In a synchronous call it is never called.
    """
    work = CURRENT_WORK.get()
    if work is None:
        yield
        return
    work.add_callback(callback)
    try:
        yield
    finally:
        work.remove_callback(callback)
