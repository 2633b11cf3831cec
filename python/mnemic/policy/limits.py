"""What limits searches: rate limits of each user, and a circuit breaker after repeated failures.

The pattern of the breaker is Michael Nygard's (Release It!, 2nd edition, chapter 5).
"""

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias

from mnemic.model.timestamps import checked_timer
from mnemic.model.validation import positive, whole
from mnemic.reporting.near_names import checks_arguments, names_arguments
from mnemic.threads.locks import InnerLock

CircuitState: TypeAlias = Literal["closed", "open", "half_open"]
"""Calls pass; none pass; or one passes as a probe."""

Timer: TypeAlias = Callable[[], float]
"""Returns seconds that never go back, such as `time.monotonic`."""

FAILURE_THRESHOLD = 5
RECOVERY_SECONDS = 30.0


class CircuitChange(NamedTuple):
    """A change of state.

    Attributes:
        before: State before.
        after: State after.
    """

    before: CircuitState
    after: CircuitState


class CircuitBreaker:
    """Refuses calls after repeated failures, and lets single calls through to test the back end.

    Closed, it lets every call pass and opens at so many failures without a success between them.
    Open, it refuses every call until the recovery time is over. Then it is half-open: one call at a
    time passes as a probe, whose success closes it and whose failure opens it again. A call that
    was let in before the last change of state changes nothing by its end. A probe that has not
    ended after a further recovery time is given up, and the next call is the probe.

    Thread-safe, for any number of event loops; no call waits.

    Example:
        >>> from mnemic.policy import CircuitBreaker
        >>> breaker = CircuitBreaker(failure_threshold=1)
        >>> with breaker.admit() as permit:
        ...     permit.failed()
        >>> breaker.state, breaker.admit() is None
        ('open', True)

    Args:
        failure_threshold: Failures in a row that open it, at least 1.
        recovery_seconds: Seconds without calls before a probe, above 0.
        clock: Gives the seconds.
    """

    @checks_arguments
    def __init__(
        self,
        failure_threshold: int = FAILURE_THRESHOLD,
        recovery_seconds: float = RECOVERY_SECONDS,
        *,
        clock: Timer = time.monotonic,
    ) -> None:
        self.failure_threshold = whole("failure_threshold", failure_threshold, minimum=1)
        self.recovery_seconds = positive("recovery_seconds", recovery_seconds)
        self._now = checked_timer(clock)
        self._listeners: tuple[Callable[[CircuitChange], object], ...] = ()
        self._lock = InnerLock()
        self._state: CircuitState = "closed"
        self._failures = 0
        self._opened_at = 0.0
        self._probe_at: float | None = None
        self._generation = 0  # permits of an earlier one have no effect

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.state})"

    @property
    def state(self) -> CircuitState:
        """The state of the last call; an open breaker turns half-open when a call comes."""
        return self._state

    def watch(self, listener: Callable[[CircuitChange], object]) -> None:
        """Call a function with each change of state from now on.

        Args:
            listener: It is called under the breaker's lock: it must be short, and must not call the
                breaker.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def admit(self) -> "Permit | None":
        """Return a permit for one call, or None if the call must not be made.

        Record the outcome by a method of the permit, or use the permit in a `with` statement.
        """
        with self._lock:
            if self._state == "closed":
                return Permit(self, self._generation)
            now = self._now()
            if self._state == "open":
                if now - self._opened_at < self.recovery_seconds:
                    return None
                self._change("half_open")
            elif self._probe_at is not None and now - self._probe_at < self.recovery_seconds:
                return None
            self._probe_at = now
            self._generation += 1
            return Permit(self, self._generation)

    def _record(self, generation: int, *, failed: bool | None) -> None:
        """Apply the outcome of a call; None is a call that was given up."""
        with self._lock:
            if generation != self._generation:
                return
            if failed is None:
                self._probe_at = None
            elif failed:
                self._fail()
            else:
                self._succeed()

    def _fail(self) -> None:
        self._failures += 1
        if self._state == "half_open" or self._failures >= self.failure_threshold:
            self._opened_at = self._now()
            self._change("open")

    def _succeed(self) -> None:
        self._failures = 0
        if self._state == "half_open":
            self._change("closed")

    def _change(self, state: CircuitState) -> None:
        change = CircuitChange(self._state, state)
        self._state, self._probe_at = state, None
        self._failures = 0
        self._generation += 1
        for listener in self._listeners:
            listener(change)


class Permit:
    """Leave to make one call; its outcome decides about later ones.

    As a context manager it is released at the end of the block. Only the first call of its
    methods has an effect.
    """

    __slots__ = ("_breaker", "_generation", "_is_recorded")

    def __init__(self, breaker: CircuitBreaker, generation: int) -> None:
        self._breaker = breaker
        self._generation = generation
        self._is_recorded = False

    def succeeded(self) -> None:
        """The back end answered, be it with an error about the call itself."""
        self._record(failed=False)

    def failed(self) -> None:
        """The back end failed, or did not answer in time."""
        self._record(failed=True)

    def release(self) -> None:
        """Give the call up without an outcome, as after a cancellation: another may be made."""
        self._record(failed=None)

    def _record(self, *, failed: bool | None) -> None:
        if not self._is_recorded:
            self._is_recorded = True
            self._breaker._record(self._generation, failed=failed)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of this module

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


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
