"""A circuit breaker: after repeated failures the back end is left alone for a while.

The pattern is Michael Nygard's (Release It!, 2nd edition, chapter 5).
"""

import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Self, TypeAlias

from mnemic.model.timestamps import checked_timer
from mnemic.model.validation import positive, whole
from mnemic.reporting.near_names import checks_arguments
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
