"""Time zones: of the days that a query names, of times that name none, and of dates in blocks.

A zone is known by its name, which records, files and keys of caches can hold.
"""

import os
import time
from array import array
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final

from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import must_be, named

LOCAL: Final = "local"
"""Name of the system's zone, whichever it is."""

_WANTED = "the name of a time zone such as 'Europe/Berlin' or '+02:00', a ZoneInfo, or None"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Between which offsets are asked for: no system knows less."""

_STEP = timedelta(days=7)  # Recife in 2000 and Gaza in 2040 have two changes a week apart
_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)

_of_naive_times = ContextVar[str | None]("_of_naive_times", default=None)


def checked_time_zone(given: object) -> str | None:
    """Return the name of a time zone that is given by its name or by itself; None stays None."""
    if given is None:
        return None
    name = given
    if isinstance(given, timezone):
        name = datetime(2000, 1, 1, tzinfo=given).isoformat()[len("2000-01-01T00:00:00") :]
    elif isinstance(given, tzinfo):
        name = getattr(given, "key", None)
    if not isinstance(name, str):
        raise must_be("time_zone", _WANTED, given)
    try:
        zone_of(name)
    except (ValueError, KeyError, OSError):
        message = (
            f"time_zone must be {_WANTED}; {named(name)} is not known here. Install the package "
            "tzdata if the system has no time zones"
        )
        raise InvalidArgumentError(message) from None
    return name


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo | None:
    """Return the zone of a name; None is the system's."""
    if name == LOCAL:
        return None
    if name == "UTC":
        return UTC
    if name.startswith(("+", "-")):
        return datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - a millisecond

    return ZoneInfo(name)


def system_time_zone() -> str:
    """Return the name of the system's zone; `LOCAL` where the system names none that agrees."""
    return _system_time_zone(time.tzname, os.environ.get("TZ"))


@lru_cache(maxsize=8)
def _system_time_zone(_: tuple[str, str], variable: str | None) -> str:
    path = variable or ""
    if variable is None:
        with suppress(OSError):
            path = os.readlink("/etc/localtime")  # noqa: PTH115 - pathlib is slow to import
    for name in ("UTC", path.rpartition("zoneinfo/")[2].lstrip(":")):
        with suppress(ValueError, KeyError, OSError):
            zone = zone_of(name)
            if all(_offset(moment, zone) == _offset(moment, None) for moment in _MOMENTS):
                return name
    return LOCAL


_MOMENTS = [datetime(2020 + month // 12, 1 + month % 12, 1, tzinfo=UTC) for month in range(240)]
"""At which a zone must have the system's offset."""


@contextmanager
def naive_times_in(name: str | None) -> Generator[None, None, None]:
    """Read times without a zone in this one, in place of the system's; None changes nothing."""
    token = _of_naive_times.set(name or _of_naive_times.get())
    try:
        yield
    finally:
        _of_naive_times.reset(token)


def as_utc(naive: datetime) -> datetime:
    """Return a time without a zone in UTC.

    Of a time that comes twice, when clocks are set back, it is the first one unless `fold` is 1;
    one that is skipped, when they are set forward, is as much later as is skipped.

    Raises:
        OverflowError, ValueError, OSError: If it lies outside the years 1 to 9999 in UTC, or what
            the system knows.
    """
    zone = zone_of(_of_naive_times.get() or system_time_zone())
    return (naive if zone is None else naive.replace(tzinfo=zone)).astimezone(UTC)


def offset_changes(name: str) -> bytes:
    """Return when a zone's offset from UTC changes, and what it is from then on.

    Args:
        name: The zone.

    Returns:
        For each change a moment since 1970 in UTC and the offset, in microseconds, as integers of
        eight bytes in the machine's order; nothing for UTC.
    """
    return _changes(name, time.tzname)


@lru_cache(maxsize=64)
def _changes(name: str, _: tuple[str, str]) -> bytes:
    zone = zone_of(name)
    begin = _FIRST
    changes = [(begin, _offset(begin, zone))]
    last = begin if isinstance(zone, timezone) else _LAST  # UTC and other fixed offsets
    while begin < last:
        end = begin + _STEP
        if _offset(end, zone) != changes[-1][1]:
            moment = _first_after(begin, end, zone)
            changes.append((moment, _offset(moment, zone)))
        begin = end
    if not any(offset for _, offset in changes):
        return b""
    pairs = [
        ((moment - _EPOCH) // _MICROSECOND, offset // _MICROSECOND) for moment, offset in changes
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
