"""Lines on standard error while a measurement runs."""

from __future__ import annotations

import time

from benches.support.datasets import report

EVERY_SECONDS = 5.0


class Line:
    """A line that is printed once every few seconds, however often it changes."""

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        self._every = every
        self._last = time.monotonic()

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            report(text)


class Progress:
    """The number of questions searched of those that a method has before it."""

    def __init__(self, label: str, total: int, line: Line | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._seconds = 0.0
        self._line = line or Line()

    def searched(self, seconds: float) -> None:
        """Count a question that took so long."""
        self._done += 1
        self._seconds += seconds
        left = self._seconds / self._done * (self._total - self._done)
        self._line.show(
            f"{self._label}: {self._done:,} of {self._total:,} questions, about {left:.0f} s left"
        )
