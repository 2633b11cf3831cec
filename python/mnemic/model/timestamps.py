"""Times as whole microseconds since 1970 in UTC, the form of stores, indexes and cursors."""

from datetime import UTC, datetime, timedelta

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
