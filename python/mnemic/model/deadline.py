"""Deadlines: moments of `time.monotonic()` after which a call gives up."""

import time

from mnemic.errors import DeadlineExceededError


def check_deadline(deadline: float | None) -> None:
    """Raise DeadlineExceededError if a deadline has passed; None never passes."""
    if deadline is not None and time.monotonic() > deadline:
        late = time.monotonic() - deadline
        raise DeadlineExceededError(
            f"the search was not done in time: its deadline passed {late * 1000:.1f} ms ago; allow "
            "more time, or make the search smaller by filters or a limit"
        )
