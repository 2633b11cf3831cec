"""Rate limiters: how many searches each user may cause."""

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import NamedTuple, Protocol

from mnemic.model.timestamps import checked_timer
from mnemic.model.validation import positive, whole
from mnemic.policy.breaker import Timer
from mnemic.reporting.near_names import names_arguments
from mnemic.threads.locks import InnerLock

MAX_USERS = 100_000
"""Users remembered at once, some 20 MB, unless a limiter is made with another number."""


class Allowance(NamedTuple):
    """The answer of a limiter; true if the search may be made.

    Attributes:
        is_granted: Whether it may be made.
        retry_after: Seconds until one may be made, 0 if it may be made now.
    """

    is_granted: bool
    retry_after: float = 0.0

    def __bool__(self) -> bool:
        return self.is_granted


GRANTED = Allowance(is_granted=True)


def _allowance(wait: float) -> Allowance:
    return Allowance(is_granted=False, retry_after=wait) if wait > 0 else GRANTED


class RateLimiter(Protocol):
    """Decides whether a user may cause one more search. Must be thread-safe and must not wait."""

    def acquire(self, user: str | None, /) -> Allowance | bool:
        """Take one search from a user's allowance; return something false if none is left.

        Args:
            user: The user; None is the memories without a user.
        """
        ...


class _PerUser(ABC):
    """State of each user, until it is the same as that of a user never seen.

    A limiter says how long a user waits for a search, and what one takes.

    Only such users are forgotten, so nobody's allowance comes back early. If all the remembered
    users, as many as there may be, are still in the midst of theirs, a further user is refused
    until one of them can be forgotten.

    Args:
        max_users: Maximum number of users.
        clock: Gives the seconds.
    """

    def __init__(self, max_users: int, clock: Timer) -> None:
        self._max_users = whole("max_users", max_users, minimum=1)
        self._now = checked_timer(clock)
        self._lock = InnerLock()
        self._free_at: OrderedDict[str | None, float] = OrderedDict()
        self._full_until = float("-inf")

    def __len__(self) -> int:
        """Return the number of remembered users."""
        with self._lock:
            return len(self._free_at)

    def acquire(self, user: str | None, /) -> Allowance:
        """Take one search from a user's allowance; see `RateLimiter.acquire`.

        Args:
            user: The user; None is the memories without a user.
        """
        with self._lock:
            now = self._now()
            wait = self._wait(user, now) or self._wait_for_capacity(user, now)
            if not wait:
                self._take(user, now)
            return _allowance(wait)

    def check(self, user: str | None, /) -> Allowance:
        """Return whether a user's allowance has a search left, and take none.

        Args:
            user: The user; None is the memories without a user.
        """
        with self._lock:
            return _allowance(self._wait(user, self._now()))

    @abstractmethod
    def _wait(self, user: str | None, now: float) -> float:
        """Return the seconds until a user's allowance has a search; 0 if it has one."""

    @abstractmethod
    def _take(self, user: str | None, now: float) -> None:
        """Take a search from a user's allowance, which has one."""

    def _wait_for_capacity(self, user: str | None, now: float) -> float:
        """Return the seconds until another user can be remembered, 0 if one can now."""
        free_at = self._free_at
        if user in free_at or len(free_at) < self._max_users:
            self._drop_oldest(now)
            return 0.0
        if now < self._full_until:
            return self._full_until - now
        for other in [other for other, at in free_at.items() if at <= now]:
            self._drop(other)
        if len(free_at) < self._max_users:
            return 0.0
        self._full_until = min(free_at.values())
        return self._full_until - now

    def _drop_oldest(self, now: float) -> None:
        """Forget up to two users that can be, so that idle ones do not stay."""
        for _ in range(2):
            oldest = next(iter(self._free_at.items()), None)
            if oldest is None or oldest[1] > now:
                return
            self._drop(oldest[0])

    def _keep(self, user: str | None, free_at: float) -> None:
        self._free_at[user] = free_at
        self._free_at.move_to_end(user)

    def _drop(self, user: str | None) -> None:
        del self._free_at[user]


@names_arguments
class FixedWindow(_PerUser):
    """Allows each user so many searches in a window of time.

    A user's window begins with the first search and ends after so many seconds; the next search
    begins another. Up to twice the limit may fall close together, around the end of a window.
    Thread-safe, for any number of event loops; no call waits.

    Example:
        >>> from mnemic.policy import FixedWindow
        >>> limiter = FixedWindow(2, seconds=60)
        >>> [bool(limiter.acquire("alice")) for _ in range(3)]
        [True, True, False]

    Args:
        limit: Searches in a window, at least 1.
        seconds: Length of the window, above 0.
        max_users: Maximum number of users with a window at a time; a further one is refused.
        clock: Gives the seconds; they never go back.
    """

    def __init__(
        self,
        limit: int,
        seconds: float,
        *,
        max_users: int = MAX_USERS,
        clock: Timer = time.monotonic,
    ) -> None:
        super().__init__(max_users, clock)
        self.limit = whole("limit", limit, minimum=1)
        self.seconds = positive("seconds", seconds)
        self._taken: dict[str | None, int] = {}

    def _wait(self, user: str | None, now: float) -> float:
        left = self._free_at.get(user, now) - now
        return left if left > 0 and self._taken[user] >= self.limit else 0.0

    def _take(self, user: str | None, now: float) -> None:
        if self._free_at.get(user, now) <= now:
            self._keep(user, now + self.seconds)
            self._taken[user] = 0
        self._taken[user] += 1

    def _drop(self, user: str | None) -> None:
        super()._drop(user)
        del self._taken[user]


@names_arguments
class TokenBucket(_PerUser):
    """Allows each user a steady rate of searches, and a number of them at once after a rest.

    A bucket holds up to `burst` searches, is full at first, and is refilled at the rate. It is kept
    as the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371, annex
    A). Thread-safe, for any number of event loops; no call waits.

    Example:
        >>> from mnemic.policy import TokenBucket
        >>> limiter = TokenBucket(rate=1, burst=2)
        >>> [bool(limiter.acquire("alice")) for _ in range(3)]
        [True, True, False]

    Args:
        rate: Searches a second, above 0.
        burst: Searches at once, at least 1.
        max_users: Maximum number of users with a bucket that is not full; a further one is refused.
        clock: Gives the seconds; they never go back.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        max_users: int = MAX_USERS,
        clock: Timer = time.monotonic,
    ) -> None:
        super().__init__(max_users, clock)
        self.rate = positive("rate", rate)
        self.burst = whole("burst", burst, minimum=1)

    def _wait(self, user: str | None, now: float) -> float:
        missing = self._missing(user, now)
        wait = missing - (self.burst - 1) / self.rate
        return wait if wait > _ROUNDING * missing else 0.0

    def _take(self, user: str | None, now: float) -> None:
        self._keep(user, now + self._missing(user, now) + 1 / self.rate)

    def _missing(self, user: str | None, now: float) -> float:
        """Return the seconds until a bucket is full."""
        return max(0.0, self._free_at.get(user, now) - now)


_ROUNDING = 1e-9
"""Share of a bucket's time within which a token counts as there: times are rounded sums."""
