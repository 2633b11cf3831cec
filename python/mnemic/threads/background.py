"""Threads of the package: each has a name, and none keeps a program from ending."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from mnemic.threads.locks import settling

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def thread_of(name: str, work: Callable[..., object], *values: object) -> threading.Thread:
    """Return a thread that is not started yet, a daemon.

    Args:
        name: What it does; "mnemic-" stands before it.
        work: A function.
        values: Its arguments.
    """
    return threading.Thread(target=work, args=values, name=f"mnemic-{name}", daemon=True)


def start_thread(thread: threading.Thread) -> None:
    """Start a thread, under the locks of `threading`, which a signal handler must not wait for.

    Raises:
        RuntimeError: If no thread is to be had.
    """
    with settling():
        thread.start()


class Background:
    """Work in a thread of its own, one piece at a time; whoever uses it has a lock.

    Args:
        name: See `thread_of`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether work goes on."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, work: Callable[..., object], *values: object) -> None:
        """Begin work, unless some goes on or no thread is to be had: the next call tries again."""
        if not self.is_running:
            self._thread = thread_of(self._name, work, *values)
            with suppress(RuntimeError):
                start_thread(self._thread)

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of the work, unless this is its own thread.

        Args:
            seconds: Most seconds to wait; None is no limit.
        """
        thread = self._thread
        # One whose start was interrupted is not alive, cannot be joined, and ends by itself.
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join(seconds)


def running_loop() -> "AbstractEventLoop | None":
    """Return the event loop that this thread runs; without one, asyncio is not imported."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    return None if running is None else running()
