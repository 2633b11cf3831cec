"""Accesses that an index is to be told of before they are written down."""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar
from uuid import UUID

MOST_NOTED = 4096
"""From so many accesses on, writing all down takes less time than telling an index of each."""

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
        self._rows: list[tuple[Sequence[int], int]] = []
        self._ids: list[tuple[Sequence[UUID], int]] = []
        self._number = 0
        self._were_dropped = False

    def note(self, ids: Sequence[UUID], rows: Sequence[int] | None, now: int) -> None:
        """Take note of accesses; where they become too many, all are dropped.

        Args:
            ids: Which memories.
            rows: Theirs, if they are known.
            now: Microseconds since 1970 in UTC.
        """
        with self._lock:  # added up when they are taken: most searches do not ask for them
            if rows is None:
                self._ids.append((ids, now))
            else:
                self._rows.append((rows, now))
            self._number += len(ids)
            if self._number > MOST_NOTED:
                self._drop()

    def take(self) -> Noted:
        """Return what was noted since the last time."""
        with self._lock:
            rows, ids = self._rows, self._ids
            self._clear()
        return Noted(_added_up(rows), _added_up(ids))

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
        self._clear()
        self._were_dropped = True

    def _clear(self) -> None:
        self._rows, self._ids, self._number = [], [], 0


def _added_up(noted: Iterable[tuple[Sequence[Key], int]]) -> dict[Key, Accesses]:
    added: dict[Key, Accesses] = {}
    for keys, now in noted:
        for key in keys:
            number, last = added.get(key, (0, now))
            added[key] = number + 1, max(last, now)
    return added
