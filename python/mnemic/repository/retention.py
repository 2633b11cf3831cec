"""The time for which deleted memories can be restored, and what goes when a memory is full."""

from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args

from mnemic.description import described, quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number, whole
from mnemic.store.quota import Room

WhenFull: TypeAlias = Literal["refuse", "evict"]
"""What becomes of a write that exceeds a quota or a budget; see `Options`."""

RETENTION = timedelta(days=90)
"""Time for which a deleted memory can be restored, unless a memory is opened with another one."""

MAX_RETENTION = timedelta(days=365_000)
"""About a thousand years; what is longer was meant otherwise."""

_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)


def checked_retention(given: object) -> timedelta | None:
    """Return a retention, given as a timedelta or as a number of days; None is without end.

    Raises:
        InvalidArgumentError: If it is neither, negative, or longer than `MAX_RETENTION`.
    """
    if given is None:
        return None
    days = given / timedelta(days=1) if isinstance(given, timedelta) else given
    if not (is_number(days) and 0 <= days <= MAX_RETENTION.days):
        raise InvalidArgumentError(
            "retention must be a timedelta or a number of days, from 0 to "
            f"{MAX_RETENTION.days:,} days, or None to keep deleted memories until they are deleted "
            f"permanently; got {described(given)}"
        )
    return given if isinstance(given, timedelta) else timedelta(days=float(days))


def earliest_kept(now: datetime, retention: timedelta | None) -> datetime:
    """Return the time of deletion from which on a memory can be restored.

    Args:
        now: The time.
        retention: How long it can be; None is without end.
    """
    span = now - _FIRST_MOMENT
    return _FIRST_MOMENT if retention is None else now - min(retention, span)


def checked_room(
    max_entries: int | None, user_max_entries: int | None, when_full: WhenFull
) -> Room:
    """Return budgets of entries and what becomes of a write that exceeds a limit.

    Raises:
        InvalidArgumentError: If a budget is no int from 0 on, or the choice is unknown.
    """
    if when_full not in get_args(WhenFull):
        raise InvalidArgumentError(
            f"when_full must be 'refuse' or 'evict', got {quoted(when_full)}"
        )
    return Room(
        None if max_entries is None else whole("max_entries", max_entries),
        None if user_max_entries is None else whole("user_max_entries", user_max_entries),
        evicts=when_full == "evict",
    )
