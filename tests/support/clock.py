"""Times of tests, and a clock that stands still until it is set."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class Clock:
    """Returns `now`, which goes forward by `step` before each reading."""

    def __init__(self, now=NOON, step=timedelta()):
        self.now, self.step = now, step

    def __call__(self):
        self.now += self.step
        return self.now


def clock_of(memory):
    """Return the clock that a memory was opened with."""
    return memory.repository.now.args[0]
