"""Awaiting callers' coroutines within a deadline, whether or not they heed a cancellation."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from mnemic.errors import DeadlineExceededError

Result = TypeVar("Result")


class CallCancelledError(Exception):
    """A call of a caller's object was cancelled by itself."""


class CallInterruptedError(Exception):
    """A call of a caller's object raised SystemExit or KeyboardInterrupt."""


class LimitedTasks:
    """Runs coroutines as tasks of their own, and leaves those that are late. Thread-safe."""

    def __init__(self) -> None:
        self._left: set[asyncio.Task[Any]] = set()

    async def result(self, coroutine: Coroutine[Any, Any, Result], deadline: float) -> Result:
        """Return the result of a coroutine; its task is cancelled at the deadline, or with this.

        Args:
            coroutine: The coroutine.
            deadline: In seconds of `time.monotonic()`.

        Raises:
            CallCancelledError: If it cancelled itself.
            CallInterruptedError: If it raises SystemExit or KeyboardInterrupt, but in the main
                thread: there these end the program, as they do elsewhere.
            DeadlineExceededError: If the deadline passes.
        """
        task = asyncio.get_running_loop().create_task(_contained(coroutine))
        task.add_done_callback(lambda _: coroutine.close())  # a cancellation came before its begin
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            if not task.done():
                self._leave(task)
        if not task.done():
            raise DeadlineExceededError
        if task.cancelled():
            raise CallCancelledError
        return task.result()

    async def end(self, seconds: float) -> None:
        """Wait for a bounded time until the tasks of this event loop that were left have ended."""
        loop = asyncio.get_running_loop()
        mine = {task for task in self._left.copy() if task.get_loop() is loop}
        if mine:
            await asyncio.wait(mine, timeout=seconds)

    def _leave(self, task: asyncio.Task[Any]) -> None:
        self._left.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs that it was not read


async def _contained(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Await a coroutine; raise an error for one that would end the event loop."""
    try:
        return await coroutine
    except (KeyboardInterrupt, SystemExit) as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise CallInterruptedError from error
