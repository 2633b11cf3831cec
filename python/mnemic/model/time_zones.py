"""Time zones, for the days that a query names."""

import time
from array import array
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from mnemic.errors import InvalidArgumentError
from mnemic.model.timestamps import to_microseconds
from mnemic.reporting.description import must_be, quoted

_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Between which offsets are asked for: no system knows less."""

_STEP = timedelta(days=14)  # two changes are a month apart at least, around Ramadan
_SECOND = timedelta(seconds=1)


def checked_time_zone(given: object) -> tzinfo | None:
    """Return a time zone by its name or by itself; None is the system's."""
    if given is None or isinstance(given, ZoneInfo | timezone):
        return given
    wanted = "the name of a time zone such as 'Europe/Berlin', a ZoneInfo, or None"
    if not isinstance(given, str):
        raise must_be("time_zone", wanted, given)
    try:
        return ZoneInfo(given)
    except (ValueError, KeyError, OSError) as error:
        message = (
            f"time_zone must be {wanted}; {quoted(given)} is not known here. Install the package "
            "tzdata if the system has no time zones"
        )
        raise InvalidArgumentError(message) from error


def offset_changes(zone: tzinfo | None) -> bytes:
    """Return when a zone's offset from UTC changes, and what it is from then on.

    Args:
        zone: The zone; None is the system's.

    Returns:
        For each change a moment since 1970 in UTC and the offset, in microseconds, as integers of
        eight bytes in the machine's order; nothing for UTC.
    """
    return _changes(zone, time.tzname)


@lru_cache(maxsize=64)
def _changes(zone: tzinfo | None, names: tuple[str, str]) -> bytes:  # noqa: ARG001 # pyright: ignore[reportUnusedParameter] - the system's zone may change
    begin = _FIRST
    changes = [(begin, _offset(begin, zone))]
    while begin < _LAST:
        end = begin + _STEP
        if _offset(end, zone) != changes[-1][1]:
            moment = _first_after(begin, end, zone)
            changes.append((moment, _offset(moment, zone)))
        begin = end
    if not any(offset for _, offset in changes):
        return b""
    pairs = [
        (to_microseconds(moment), offset // timedelta(microseconds=1)) for moment, offset in changes
    ]
    return array("q", [number for pair in pairs for number in pair]).tobytes()


def _first_after(begin: datetime, end: datetime, zone: tzinfo | None) -> datetime:
    """Return the first second with another offset than a begin, which an end has."""
    before = _offset(begin, zone)
    low, high = 0, (end - begin) // _SECOND
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _offset(begin + middle * _SECOND, zone) != before else (middle, high)
        )
    return begin + high * _SECOND


def _offset(moment: datetime, zone: tzinfo | None) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)
