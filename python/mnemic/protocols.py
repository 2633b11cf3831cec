"""What the parts are given from outside: the clock, and the maker of ids."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

Clock = Callable[[], datetime]
"""Returns the time now, aware and in UTC."""

IdFactory = Callable[[datetime], UUID]
"""Returns a new id for something that came to be at the given time."""


def system_clock() -> datetime:
    """Return the machine's time; the only place where mnemic asks for it (C183)."""
    return datetime.now(UTC)
