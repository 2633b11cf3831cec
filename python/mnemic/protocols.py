"""Interfaces supplied from outside: clock, id factory, counters, files, listeners."""

import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import IO, Protocol, TypeAlias
from uuid import UUID

Clock = Callable[[], datetime]
"""Returns the time now, aware and in UTC."""

IdFactory = Callable[[datetime], UUID]
"""Returns a new id for the given creation time."""

Summarizer = Callable[[Sequence[str]], str | Awaitable[str]]
"""Returns a shorter summary of the given texts, oldest first: a plain or a coroutine function."""


UserLimit: TypeAlias = int | Callable[[str | None], int | None]
"""A limit of each user, or a function of the user id; None is no user, and no limit."""


class TokenCounter(Protocol):
    """Counts the tokens of a text for a language model. Must be thread-safe."""

    def count(self, text: str, /) -> int:
        """Return the number of tokens of a text, at least 0.

        Args:
            text: Any text.
        """
        ...


Target: TypeAlias = str | os.PathLike[str] | IO[str]
"""A path, or a file opened for writing text."""

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, or a file opened for reading."""


def system_clock() -> datetime:
    """Return the system time; mnemic reads it nowhere else."""
    return datetime.now(UTC)
