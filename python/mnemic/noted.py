"""Accesses that an index is to be told of before they are written down."""

import threading
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, TypeVar
from uuid import UUID

MOST_NOTED = 1024
"""How many memories; from here on writing all down takes less time than looking each up."""

Key = TypeVar("Key", int, UUID)

Accesses: TypeAlias = tuple[int, int]
"""How many there were, and when the last was, in microseconds since 1970 in UTC."""


class Noted(NamedTuple):
    """What was noted of memories.

    Attributes:
        rows: Of those whose rows were known.
        ids: Of the others.
    """

    rows: dict[int, Accesses]
    ids: dict[UUID, Accesses]


class NotedAccesses:
    """Gathers accesses until somebody ranks by them. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted = Noted({}, {})
        self._were_dropped = False

    def note_rows(self, rows: Iterable[int], now: int) -> None:
        """Take note of accesses; where they become too many, all are dropped."""
        with self._lock:
            self._count(self._noted.rows, rows, now)

    def note_ids(self, ids: Iterable[UUID], now: int) -> None:
        """Take note of accesses; where they become too many, all are dropped."""
        with self._lock:
            self._count(self._noted.ids, ids, now)

    def take(self) -> Noted:
        """Return what was noted since the last time."""
        with self._lock:
            taken, self._noted = self._noted, Noted({}, {})
            return taken

    def drop(self) -> None:
        """Forget what was noted: the store tells of it once it is written down there."""
        with self._lock:
            self._drop()

    def were_dropped(self) -> bool:
        """Return whether some were dropped since the last time."""
        with self._lock:
            were, self._were_dropped = self._were_dropped, False
            return were

    def _drop(self) -> None:
        self._noted = Noted({}, {})
        self._were_dropped = True

    def _count(self, noted: dict[Key, Accesses], keys: Iterable[Key], now: int) -> None:
        for key in keys:
            number, last = noted.get(key, (0, now))
            noted[key] = number + 1, max(last, now)
        if len(noted) > MOST_NOTED:
            self._drop()
