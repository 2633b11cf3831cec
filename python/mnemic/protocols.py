"""What the parts are given from outside: the clock, makers of ids, counters, files, listeners."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO, Protocol, TypeAlias
from uuid import UUID

Clock = Callable[[], datetime]
"""Returns the time now, aware and in UTC."""

IdFactory = Callable[[datetime], UUID]
"""Returns a new id for something that came to be at the given time."""

Summarizer = Callable[[Sequence[str]], str]
"""Returns one shorter text that says what the given texts do; they come oldest first."""


class TokenCounter(Protocol):
    """Counts the tokens a language model takes for a text (C042).

    Several threads may call it at once.
    """

    def count(self, text: str, /) -> int:
        """Return how many tokens a text takes, at least 0."""
        ...


Target: TypeAlias = str | os.PathLike[str] | IO[str]
"""A path, or a file opened for writing text."""

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, or a file opened for reading."""

Progress = Callable[[int], object]
"""Called now and then with the number of memories done so far."""


def system_clock() -> datetime:
    """Return the machine's time; the only place where mnemic asks for it (C183)."""
    return datetime.now(UTC)
