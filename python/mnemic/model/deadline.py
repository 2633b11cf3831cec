"""Deadlines: moments of `time.monotonic()` after which a call gives up."""

import time
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.model.validation import is_number, word
from mnemic.reporting.description import quoted

OnTimeout: TypeAlias = Literal["raise", "partial"]
"""Treatment of a search that is not done in time."""
_ON_TIMEOUT: tuple[str, ...] = get_args(OnTimeout)
_MAX_TIMEOUT = 1e9


class TimeLimit(NamedTuple):
    """The time limit of one call.

    Attributes:
        deadline: In seconds of `time.monotonic()`; None is no limit.
        takes_partial: Whether what is complete at the deadline is returned in place of an error.
    """

    deadline: float | None = None
    takes_partial: bool = False

    @classmethod
    def after(cls, timeout: float | None, on_timeout: OnTimeout) -> Self:
        """Return the limit of a call that begins now and may take so many seconds.

        Raises:
            InvalidArgumentError: If one of them is outside its range.
        """
        word("on_timeout", on_timeout, _ON_TIMEOUT)
        if timeout is None:
            return cls(None, on_timeout == "partial")
        if not (is_number(timeout) and 0 <= timeout <= _MAX_TIMEOUT):
            raise InvalidArgumentError(
                f"timeout must be a number of seconds from 0 to {_MAX_TIMEOUT:.0f}, or None; got "
                f"{quoted(timeout)}"
            )
        return cls(time.monotonic() + float(timeout), on_timeout == "partial")


NO_LIMIT = TimeLimit()


def check_deadline(deadline: float | None) -> None:
    """Raise DeadlineExceededError if a deadline has passed; None never passes."""
    if deadline is not None and time.monotonic() > deadline:
        raise DeadlineExceededError


def seconds_left(deadline: float) -> float:
    """Return the seconds until a deadline, at least 0."""
    return max(0.0, deadline - time.monotonic())
