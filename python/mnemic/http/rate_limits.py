"""The times that a service names in its headers, and the pause they mean."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PAUSE = 60.0
"""Seconds at most without a request, however long a service wants; later ones are tried."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_RESETS = ("requests", "tokens")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a service takes the next request; None if it names none.

    Read are `retry-after-ms`, `Retry-After` in seconds or as a date, and the resets of the limits
    that are used up (`x-ratelimit-remaining-…`, `x-ratelimit-reset-…`).

    Args:
        headers: Headers of a response, found by lower-case names.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    named = headers.get("retry-after")
    if named is not None:
        seconds = _number(named)
        return _seconds_until(named, headers.get("date")) if seconds is None else seconds
    return max(filter(None, (_reset(headers, what) for what in _RESETS)), default=None)


def _reset(headers: Mapping[str, str], what: str) -> float | None:
    if _number(headers.get(f"x-ratelimit-remaining-{what}")) != 0:
        return None
    named = headers.get(f"x-ratelimit-reset-{what}", "").strip()
    if re.fullmatch(f"(?:{_PART})+", named):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, named))
    return _number(named)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(number, 0.0) if isfinite(number) else None


def _seconds_until(date: str, now: str | None) -> float | None:
    """Return the seconds to a date, by the service's own clock if it names its time."""
    until = _time(date)
    begin = _time(now or "") or datetime.now(UTC)
    return None if until is None else max((until - begin).total_seconds(), 0.0)


def _time(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


class Pause:
    """The time before which a service wants no request.

    Threads share it without a lock, which a fork might leave locked; of two times that are noted at
    once either may be kept.
    """

    def __init__(self) -> None:
        self._until = 0.0

    def extend(self, seconds: float) -> None:
        """Make the pause last for at least these seconds from now, at most `MAX_PAUSE`."""
        self._until = max(self._until, time.monotonic() + min(seconds, MAX_PAUSE))

    @property
    def seconds_left(self) -> float:
        """Seconds until the next request; 0 if it may be sent."""
        return max(self._until - time.monotonic(), 0.0)
