"""Ends statements on the server whose caller has gone."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg

from mnemic.store.postgres.session import Connection
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.cancellation import on_cancellation
from mnemic.threads.locks import Lock

_SECONDS: Final = 5.0
"""Seconds that a request to cancel may take."""


class _CancelRequest:
    """At most one request to cancel what a connection does, until `end`.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._has_ended = False
        self._is_sent = False

    def send_soon(self) -> None:
        """Send it from another thread, for it takes a connection of its own to the server."""
        start_thread(thread_of("cancel", self._send))

    def _send(self) -> None:
        # An error is that of an unreachable server: its statement ends too.
        with self._lock, suppress(psycopg.Error):
            if not self._has_ended:
                self._is_sent = True
                self._connection.cancel_safe(timeout=_SECONDS)

    def end(self) -> None:
        """Send none from now on; close a connection on which one may still arrive."""
        with self._lock:
            self._has_ended = True
        if self._is_sent:
            self._connection.close()


@contextmanager
def cancelled_with_task(connection: Connection) -> Generator[None, None, None]:
    """Have the server end the statement of this block if the task that waits for it is cancelled.

    A block that no task waits for is not affected.
    """
    request = _CancelRequest(connection)
    try:
        with on_cancellation(request.send_soon):
            yield
    finally:
        request.end()
