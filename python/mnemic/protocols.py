"""What the parts are given from outside: the clock, the maker of ids, files, and listeners."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, TypeAlias
from uuid import UUID

Clock = Callable[[], datetime]
"""Returns the time now, aware and in UTC."""

IdFactory = Callable[[datetime], UUID]
"""Returns a new id for something that came to be at the given time."""

Target: TypeAlias = str | os.PathLike[str] | IO[str]
"""A path, or a file opened for writing text."""

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, or a file opened for reading."""

Progress = Callable[[int], object]
"""Called now and then with the number of memories done so far."""


def system_clock() -> datetime:
    """Return the machine's time; the only place where mnemic asks for it (C183)."""
    return datetime.now(UTC)
