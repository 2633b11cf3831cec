"""The time for which deleted memories can be restored."""

from datetime import UTC, datetime, timedelta

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number
from mnemic.reporting.description import described

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
