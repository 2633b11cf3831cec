"""Buffer of accesses that are not in the index yet."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from mnemic.threads.locks import InnerLock

MAX_BUFFERED = 4096
"""Accesses from which on writing all to the store is faster than adding each to an index."""

MAX_SPACED = 16_384
"""Rows from which on those with an expired interval are dropped."""

Accesses: TypeAlias = tuple[int, int]
"""Number of accesses, and the last one, in microseconds since 1970 in UTC."""


class AccessBuffer:
    """Collects accesses until a ranking needs them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = InnerLock()
        self._rows: list[tuple[Sequence[int], int]] = []
        self._number = 0
        self._were_dropped = False

    def add(self, rows: Sequence[int], now: int) -> None:
        """Record accesses; if there are too many, all are dropped.

        Args:
            rows: Rows of the memories.
            now: Microseconds since 1970 in UTC.
        """
        with self._lock:  # merged when taken: most searches do not need them
            self._rows.append((rows, now))
            self._number += len(rows)
            if self._number > MAX_BUFFERED:
                self._drop()

    def take(self) -> dict[int, Accesses]:
        """Remove and return the recorded accesses of each row."""
        with self._lock:
            rows = self._rows
            self._clear()
        return _merged(rows)

    def drop(self) -> None:
        """Drop the recorded accesses; they will be read from the store."""
        with self._lock:
            self._drop()

    def were_dropped(self) -> bool:
        """Return whether accesses were dropped since the last call."""
        with self._lock:
            were, self._were_dropped = self._were_dropped, False
            return were

    def _drop(self) -> None:
        self._clear()
        self._were_dropped = True

    def _clear(self) -> None:
        self._rows, self._number = [], 0


class AccessSpacing:
    """Decides which accesses count if those of one memory must be an interval apart.

    Callers hold `lock` while they call `due` and record the accesses.

    Attributes:
        lock: Serialises decisions.
    """

    def __init__(self) -> None:
        self.lock = InnerLock()
        self._counted: dict[int, int] = {}

    def due(self, accessed: Mapping[int, int | None], now: int, interval: int) -> list[int]:
        """Return the rows of which an access counts now, and record it as counted.

        Args:
            accessed: Last known access of each row; None is never.
            now: Microseconds since 1970 in UTC, like all times here.
            interval: Minimum microseconds between two accesses that count.
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


def _merged(calls: Iterable[tuple[Sequence[int], int]]) -> dict[int, Accesses]:
    added: dict[int, Accesses] = {}
    for rows, now in calls:
        for row in rows:
            number, last = added.get(row, (0, now))
            added[row] = number + 1, max(last, now)
    return added
