"""Futures of writes, and the threads of a store that its blocking calls run in."""

from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import nullcontext, suppress
from typing import Any, Final, TypeVar

from mnemic.errors import StoreClosedError
from mnemic.threads.background import running_loop
from mnemic.threads.locks import InnerLock, settling

Result = TypeVar("Result")

MAX_THREADS: Final = 32
"""Threads of a store: many more than processors, because searches may wait for an embedder."""


def succeeded(result: Result) -> Future[Result]:
    """Return a finished future with a result."""
    future: Future[Result] = Future()
    future.set_result(result)
    return future


def failed(error: BaseException) -> Future[Any]:
    """Return a finished future with an error."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


class Workers:
    """A store's threads, made on first use.

    Args:
        size: Maximum number of threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = InnerLock()
        self._executor: Executor | None = None
        self._is_closed = False

    @property
    def executor(self) -> Executor:
        """The threads.

        Raises:
            StoreClosedError: After `close`.
        """
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the memory was closed")
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow to import

                self._executor = ThreadPoolExecutor(self._size, "mnemic-store")
            return self._executor

    def run(self, work: Callable[[], Result]) -> Future[Result]:
        """Run blocking work in this thread, or in another one if it runs an event loop."""
        if running_loop() is not None:
            executor = self.executor
            with settling():
                return executor.submit(work)
        try:
            return succeeded(work())
        except Exception as error:  # noqa: BLE001 - the future gets it
            return failed(error)

    def close(self) -> None:
        """Take no further work. The threads end after what they were given.

        The collector may close a store in the midst of a `submit` of any executor, whose locks
        `shutdown` would wait for: a thread that is in the midst of nothing waits for them.
        """
        with nullcontext() if self._lock.is_held_here() else self._lock:
            self._is_closed = True
            executor, self._executor = self._executor, None
        if executor is not None:
            with suppress(RuntimeError):  # as the interpreter ends, it ends these threads itself
                start_new_thread(executor.shutdown, (False,))
