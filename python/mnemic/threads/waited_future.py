"""Futures that threads wait for, safe from Ctrl-C and from signal handlers."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TypeVar

from mnemic.errors import DeadlineExceededError
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import Condition, InnerLock

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


def started(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in a thread of its own, which nothing waits for at the end of the program."""
    made: Future[Result] = WaitedFuture()
    context = copy_context()
    try:
        start_thread(thread_of("embed", context.run, _run, work, made))
    except RuntimeError:  # no thread to be had
        _run(work, made)
    return made


def _run(work: Callable[[], Result], made: Future[Result]) -> None:
    try:
        made.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
        made.set_exception(error)


def result_until(made: Future[Result], deadline: float) -> Result:
    """Return the result of started work; the work goes on where the deadline passes.

    Raises:
        DeadlineExceededError: If the deadline passes.
    """
    if not wait([made], max(0.0, deadline - time.monotonic())).done:
        raise DeadlineExceededError
    return made.result()
