"""Erases the bytes of what was deleted a moment later, for many deletions at once."""

import time
from contextlib import suppress

import apsw

from mnemic.errors import MnemicError, StoreClosedError
from mnemic.store.futures import Workers
from mnemic.store.group_commit import MAX_DELAY, Writer
from mnemic.store.sqlite.connections import Connections
from mnemic.threads.locks import settling


class LaterErasure:
    """Erases about a second after the first deletion, or as the store is closed.

    A deletion whose bytes are erased at once syncs eight times in place of once: the log is
    emptied, and the next one begins and is named in the file.

    Args:
        connections: Erase.
        writer: Wakes up in time, and as the store is closed.
        workers: Have a thread for the erasure, which may wait for whoever writes a snapshot.
    """

    def __init__(self, connections: Connections, writer: Writer, workers: Workers) -> None:
        self._connections = connections
        self._writer = writer
        self._workers = workers
        self._is_due = False
        self._time = 0.0

    def begin(self) -> None:
        """Erase what was deleted so far, some time from now."""
        if not self._is_due:
            self._is_due = True
            self._time = time.monotonic() + MAX_DELAY / 2
            self._wait()

    def _wait(self) -> None:
        self._writer.submit_delayed(_nothing, self._woken)

    def _woken(self) -> None:
        try:
            if time.monotonic() < self._time:  # it woke up for others
                self._wait()
            else:
                self._is_due = False  # before it begins: what is deleted from now on is due again
                executor = self._workers.executor
                with settling():
                    executor.submit(self._connections.erase)
        except (StoreClosedError, RuntimeError):  # the store, or the interpreter, is being closed
            with suppress(MnemicError):
                self._connections.erase()


def _nothing(_: apsw.Connection) -> None:
    """Take the writer's turn, and change nothing."""
