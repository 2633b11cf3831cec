"""Accesses that an index is to be told of before they are written down."""

import threading
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

MOST_NOTED = 1024
"""How many memories; from here on writing all down takes less time than looking each up."""


class NotedAccess(NamedTuple):
    """What was noted of one memory.

    Attributes:
        number: How many accesses.
        last: When the last one was, in microseconds since 1970 in UTC.
    """

    number: int
    last: int


class NotedAccesses:
    """Gathers accesses until somebody ranks by them. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[UUID, NotedAccess] = {}
        self._are_too_many = False

    def note(self, ids: Iterable[UUID], now: int) -> None:
        """Take note of accesses; of too many, only that there were some."""
        with self._lock:
            for entry_id in ids:
                number, last = self._noted.get(entry_id, (0, now))
                self._noted[entry_id] = NotedAccess(number + 1, max(last, now))
            if len(self._noted) > MOST_NOTED:
                self._noted.clear()
                self._are_too_many = True

    def take(self) -> dict[UUID, NotedAccess]:
        """Return what was noted since the last time."""
        with self._lock:
            taken, self._noted = self._noted, {}
            return taken

    def were_too_many(self) -> bool:
        """Return whether some were dropped since the last time, and must be read from the store."""
        with self._lock:
            were, self._are_too_many = self._are_too_many, False
            return were
