"""A future that threads wait for, safe from Ctrl-C and from signal handlers."""

from concurrent.futures import Future
from typing import TypeVar

from mnemic.threads.conditions import Condition
from mnemic.threads.locks import InnerLock

Result = TypeVar("Result")


class WaitedFuture(Future[Result]):
    """A future that another thread settles whatever interrupts the wait for it.

    A KeyboardInterrupt leaves its lock free. A signal handler that comes while the waiting thread
    holds the lock is refused: it may wait for the very thread that settles the future.
    """

    def __init__(self) -> None:
        super().__init__()
        self._condition = Condition(InnerLock())

    def __repr__(self) -> str:
        # Without the lock, which an error about its state holds.
        return f"<{type(self).__name__} {self._state.lower()}>"
