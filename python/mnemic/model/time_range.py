"""A range of creation times."""

from datetime import datetime
from typing import NamedTuple, Self

from mnemic.errors import InvalidArgumentError
from mnemic.model.filter import Expression, Field, Op, Test, parse_times


class TimeRange(NamedTuple):
    """A range of creation times.

    Attributes:
        start: Its begin, inclusive; None is the earliest time.
        end: Its end; None is the latest time.
        includes_end: Whether the end is inclusive.
    """

    start: datetime | None = None
    end: datetime | None = None
    includes_end: bool = False

    @classmethod
    def parse(cls, since: object, until: object) -> Self:
        """Return the range of the times given to a search, without its end.

        Raises:
            FilterError: If a value is not a time; the message names it.
        """
        times = {
            test.op: test.value
            for test in parse_times(since, until)
            if isinstance(test, Test) and isinstance(test.value, datetime)
        }
        return cls(times.get(Op.GTE), times.get(Op.LT))

    @property
    def tests(self) -> tuple[Expression, ...]:
        """The tests of a memory in the range."""
        created_at = Field("created_at")
        before = Op.LTE if self.includes_end else Op.LT
        given = ((Op.GTE, self.start), (before, self.end))
        return tuple(Test(created_at, op, time) for op, time in given if time is not None)

    def check_order(self) -> None:
        """Check that the range does not end before it begins."""
        if self.start is not None and self.end is not None and self.start > self.end:
            raise InvalidArgumentError(
                "the range ends before it begins: "
                f"from {self.start.isoformat()} to {self.end.isoformat()}"
            )


ANY_TIME = TimeRange()
"""The range of all times."""
