"""A lock that many readers hold at once, or one writer."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

from mnemic.threads.locks import Condition, InnerLock, busy_thread


class SharedLock:
    """Readers share it; a writer has it alone, and new readers wait while one waits for it.

    A thread that holds it gets a `BusyThreadError` where it would wait for itself.
    """

    def __init__(self) -> None:
        self._changed = Condition(InnerLock())
        self._holders: set[int] = set()  # threads
        self._readers = 0
        self._writers = 0  # those that wait, and the one that has it
        self._is_written = False

    @contextmanager
    def reading(self) -> Generator[None, None, None]:
        """Hold it with other readers."""
        with self._changed:
            self._check_holder()
            while self._writers:
                self._changed.wait()
            self._readers += 1
            self._holders.add(threading.get_ident())
        try:
            yield
        finally:
            with self._changed:
                self._holders.discard(threading.get_ident())
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Hold it alone."""
        with self._changed:
            self._check_holder()
            self._writers += 1
            while self._readers or self._is_written:
                self._changed.wait()
            self._is_written = True
            self._holders.add(threading.get_ident())
        try:
            yield
        finally:
            with self._changed:
                self._holders.discard(threading.get_ident())
                self._writers -= 1
                self._is_written = False
                self._changed.notify_all()

    def _check_holder(self) -> None:
        if threading.get_ident() in self._holders:
            raise busy_thread()
