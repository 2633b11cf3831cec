"""The writes of one store: one at a time, in the order in which they were handed in."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from mnemic.errors import StoreClosedError, StoreError
from mnemic.store.futures import WriteFuture, failed, running_loop, succeeded

Result = TypeVar("Result")


class _Item(NamedTuple):
    """A write that waits for its turn, and the future that receives its result."""

    work: Callable[[], Any]
    future: Future[Any]


class WriteQueue:
    """Runs writes one after the other: in the calling thread if none runs, else in a thread.

    The latter's can be cancelled until they begin. A thread that runs an event loop waits for none.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()  # held by the thread that writes
        self._holder: int | None = None
        self._changed = threading.Condition()
        self._items: deque[_Item] = deque()
        self._unfinished = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def is_held_here(self) -> bool:
        """Return whether this thread is in the midst of a write."""
        return self._holder == threading.get_ident()

    def write(self, work: Callable[[], Result]) -> Future[Result]:
        """Hand in a write.

        Raises:
            StoreClosedError: After `close`.
            StoreError: If this thread is in the midst of a write.
        """
        self._check_open()
        if self.is_held_here():
            # A signal handler or a finalizer interrupted a write: waiting for it would never end.
            raise StoreError("this thread is in the midst of a write and cannot begin another")
        is_idle = running_loop() is None and not self._unfinished
        if not is_idle or not self._turn.acquire(blocking=False):
            return self._submit(work)
        try:
            return succeeded(self._held(work))
        except Exception as error:  # noqa: BLE001 - the future gets it
            return failed(error)
        finally:
            self._turn.release()

    def _submit(self, work: Callable[[], Result]) -> Future[Result]:
        future = WriteFuture[Result]()
        with self._changed:
            self._check_open()
            self._items.append(_Item(work, future))
            self._unfinished += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mnemic-writer", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def _run(self) -> None:
        while self._wait():
            with self._turn:  # until then the write can be cancelled
                work, future = self._items.popleft()
                if future.set_running_or_notify_cancel():
                    self._settle(work, future)
            with self._changed:
                self._unfinished -= 1

    def _wait(self) -> bool:
        """Wait for a write; return whether there is one."""
        with self._changed:
            while not self._items and not self._is_closed:
                self._changed.wait()
            return bool(self._items)

    def _settle(self, work: Callable[[], Any], future: Future[Any]) -> None:
        try:
            result = self._held(work)
        except BaseException as error:  # noqa: BLE001 - the future gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    def _held(self, work: Callable[[], Result]) -> Result:
        self._holder = threading.get_ident()
        try:
            return work()
        finally:
            self._holder = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError("the memory was closed")

    def close(self) -> None:
        """Finish the writes that were handed in, and take no further ones."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self.is_held_here():  # the garbage collector may run in a write
            return
        if self._thread is not None:
            self._thread.join()
        with self._turn:
            pass
