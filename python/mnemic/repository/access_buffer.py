"""Accesses that an index is to be told of before they are written down."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

MAX_BUFFERED = 4096
"""From so many accesses on, writing all down takes less time than telling an index of each."""

MAX_SPACED = 16_384
"""Rows from which on those whose interval is over are forgotten."""

Accesses: TypeAlias = tuple[int, int]
"""How many there were, and when the last was, in microseconds since 1970 in UTC."""


class AccessBuffer:
    """Gathers accesses until somebody ranks by them. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[tuple[Sequence[int], int]] = []
        self._number = 0
        self._were_dropped = False

    def add(self, rows: Sequence[int], now: int) -> None:
        """Take note of accesses; where they become too many, all are dropped.

        Args:
            rows: Of which memories.
            now: Microseconds since 1970 in UTC.
        """
        with self._lock:  # added up when they are taken: most searches do not ask for them
            self._rows.append((rows, now))
            self._number += len(rows)
            if self._number > MAX_BUFFERED:
                self._drop()

    def take(self) -> dict[int, Accesses]:
        """Return what was noted of each row since the last time."""
        with self._lock:
            rows = self._rows
            self._clear()
        return _added_up(rows)

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
        self._rows, self._number = [], 0


class AccessSpacing:
    """Decides which accesses count where those of one memory must lie an interval apart.

    Decisions are made one after the other: hold `lock` while asking for what is due and noting it.

    Attributes:
        lock: Held by whoever decides.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._counted: dict[int, int] = {}

    def due(self, accessed: Mapping[int, int | None], now: int, interval: int) -> list[int]:
        """Return the rows of which an access counts now, and take them for counted.

        Args:
            accessed: When each row was last read, as far as is known; None is never.
            now: Microseconds since 1970 in UTC, like all times here.
            interval: Microseconds that must lie between two accesses that count.
        """
        if len(self._counted) > MAX_SPACED:
            lately = {row: at for row, at in self._counted.items() if now - at < interval}
            self._counted = lately
        rows = [
            row
            for row, last in accessed.items()
            if all(at is None or now - at >= interval for at in (last, self._counted.get(row)))
        ]
        self._counted.update(dict.fromkeys(rows, now))
        return rows


def _added_up(noted: Iterable[tuple[Sequence[int], int]]) -> dict[int, Accesses]:
    added: dict[int, Accesses] = {}
    for rows, now in noted:
        for row in rows:
            number, last = added.get(row, (0, now))
            added[row] = number + 1, max(last, now)
    return added
