"""Times as whole microseconds since 1970 in UTC, and the clocks that give them.

Stores, indexes and cursors have times in this form.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.reporting.description import failure, must_be

Reading = TypeVar("Reading")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    """Return microseconds since 1970, exactly."""
    return (time - EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Return the aware time in UTC, exactly."""
    if type(microseconds) is not int:  # a damaged file may hold anything
        raise TypeError(f"a time of type {type(microseconds).__name__}")
    return EPOCH + timedelta(0, 0, microseconds)  # by name it takes half as long again


def checked_clock(given: Callable[[], datetime]) -> Callable[[], datetime]:
    """Return a clock whose times are in UTC; what it gives in place of one is an error."""
    validation.function("clock", given)
    return partial(_read, given, _moment)


def checked_timer(given: Callable[[], float]) -> Callable[[], float]:
    """Return a clock of seconds; what it gives in place of them is an error."""
    validation.function("clock", given)
    return partial(_read, given, _seconds)


def _read(clock: Callable[[], object], check: Callable[[object], Reading]) -> Reading:
    try:
        read = clock()
    except Exception as error:
        raise InvalidArgumentError(f"clock failed: {failure(error)}") from error
    return check(read)


def _moment(read: object) -> datetime:
    if not isinstance(read, datetime) or read.utcoffset() is None:
        wanted = "a function that returns a time with a zone, such as datetime.now(UTC)"
        raise must_be("clock", wanted, read)
    return validation.time("the time of clock", read)


def _seconds(read: object) -> float:
    if not validation.is_number(read):
        raise must_be("clock", "a function that returns seconds, such as time.monotonic", read)
    return read
