"""The results of turns: one is kept, and concurrent calls for one turn share its flight.

Calls may come from any number of event loops and threads. A flight is a task of the loop of its
first caller; the others are woken in their own loops.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from mnemic.errors import DeadlineExceededError, StoreClosedError
from mnemic.threads.locks import InnerLock

Value = TypeVar("Value")

Timer = Callable[[], float]
"""Returns seconds that never go back."""


class Outcome(NamedTuple, Generic[Value]):
    """The end of a flight.

    Attributes:
        value: The result.
        is_cacheable: Whether later calls for the turn get it.
        seconds: How long they do; None for as long as the turn is the kept one.
    """

    value: Value
    is_cacheable: bool = True
    seconds: float | None = None


class _CachedResult(NamedTuple, Generic[Value]):
    """The cached result.

    Attributes:
        turn_id: Id of the turn.
        number: Number of its flight.
        value: The result.
        until: End of its validity by the timer; None for none.
    """

    turn_id: str
    number: int
    value: Value
    until: float | None


class _FlightResult(NamedTuple, Generic[Value]):
    """What a waiting call is woken with.

    Attributes:
        value: The result.
        error: The error of a flight that raised; None otherwise.
    """

    value: Value | None = None
    error: Exception | None = None


_Waiter = asyncio.Future["_FlightResult[Any] | None"]
"""Is woken with None where the flight was cancelled with its event loop."""


class _Flight(Generic[Value]):
    """A result that is being computed.

    Args:
        number: Later flights have larger ones; an attribute too.

    Attributes:
        task: Computes it; None until it began.
        waiters: The calls that wait for it.
        is_left: Whether all of them left.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.task: asyncio.Task[Outcome[Value]] | None = None
        self.waiters: set[_Waiter] = set()
        self.is_left = False

    def cancel(self) -> None:
        """Cancel the task, from any thread."""
        if self.task is not None:
            with suppress(RuntimeError):  # its event loop was closed
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)


class TurnCache(Generic[Value]):
    """Keeps the result of one turn, and lets concurrent calls for a turn share one flight.

    A turn that began later is never replaced by one that began before it. Thread-safe.

    Args:
        timer: Gives the seconds that results are kept.
    """

    def __init__(self, timer: Timer = time.monotonic) -> None:
        self._timer = timer
        self._lock = InnerLock()
        self._cached: _CachedResult[Value] | None = None
        self._flights: dict[str, _Flight[Value]] = {}
        self._number = 0
        self._is_closed = False

    def cached(self, turn_id: str) -> Value | None:
        """Return the cached result of a turn, or None."""
        cached = self._cached
        if cached is None or cached.turn_id != turn_id:
            return None
        if cached.until is not None and self._timer() >= cached.until:
            return None
        return cached.value

    def replace(self, turn_id: str, before: Value, after: Value) -> None:
        """Keep another result of a turn, unless its result was replaced meanwhile."""
        with self._lock:
            cached = self._cached
            if cached is not None and cached.turn_id == turn_id and cached.value is before:
                self._cached = cached._replace(value=after)

    def forget(self, turn_id: str, value: Value) -> None:
        """Keep a result of a turn no longer, unless it was replaced meanwhile."""
        with self._lock:
            cached = self._cached
            if cached is not None and cached.turn_id == turn_id and cached.value is value:
                self._cached = None

    def close(self) -> None:
        """Forget the cached result, cancel all flights, and begin none any more."""
        with self._lock:
            self._is_closed = True
            self._cached = None
            flights, self._flights = list(self._flights.values()), {}
        for flight in flights:
            flight.is_left = True
            flight.cancel()
            self._wake(flight, None)

    async def shared(
        self,
        turn_id: str,
        compute: Callable[[], Coroutine[Any, Any, Outcome[Value]]],
        seconds: float,
    ) -> Value:
        """Return the result of a turn: the kept one, that of a flight, or that of a new flight.

        The flight goes on while any of its callers waits; it is cancelled when the last one leaves.

        Args:
            turn_id: Id of the turn.
            compute: Makes the coroutine of a new flight.
            seconds: Seconds that the call waits at most.

        Raises:
            DeadlineExceededError: If they pass.
            StoreClosedError: If this is closed.
        """
        end = time.monotonic() + seconds
        while True:
            cached = self.cached(turn_id)
            if cached is not None:
                return cached
            ended = await self._awaited(turn_id, compute, end - time.monotonic())
            if ended is None:  # the event loop of its first caller ended
                continue
            if ended.error is not None:
                raise ended.error
            value: Any = ended.value
            return value  # type: ignore[no-any-return]

    async def _awaited(
        self,
        turn_id: str,
        compute: Callable[[], Coroutine[Any, Any, Outcome[Value]]],
        seconds: float,
    ) -> "_FlightResult[Value] | None":
        if seconds <= 0:
            raise DeadlineExceededError
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        flight, leads = self._flight_of(turn_id, waiter)
        late = loop.call_later(seconds, _wake, waiter, _FlightResult(error=DeadlineExceededError()))
        try:
            if leads:
                self._begin(turn_id, flight, loop.create_task(compute(), name="mnemic-hyde-turn"))
            return await waiter
        finally:
            late.cancel()
            self._leave(turn_id, flight, waiter)

    def _flight_of(self, turn_id: str, waiter: _Waiter) -> tuple[_Flight[Value], bool]:
        """Return the flight of a turn that a call waits for now, and whether it is to begin it."""
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the engine is closed")
            flight = self._flights.get(turn_id)
            leads = flight is None
            if flight is None:
                self._number += 1
                flight = self._flights[turn_id] = _Flight(self._number)
            flight.waiters.add(waiter)
            return flight, leads

    def _begin(
        self, turn_id: str, flight: _Flight[Value], task: asyncio.Task[Outcome[Value]]
    ) -> None:
        flight.task = task
        task.add_done_callback(partial(self._complete, turn_id, flight))
        if flight.is_left:
            task.cancel()

    def _leave(self, turn_id: str, flight: _Flight[Value], waiter: _Waiter) -> None:
        """Leave a flight; the last call that leaves cancels it."""
        with self._lock:
            flight.waiters.discard(waiter)
            if flight.waiters or flight.is_left:
                return
            flight.is_left = True
            self._remove(turn_id, flight)
        flight.cancel()

    def _complete(
        self, turn_id: str, flight: _Flight[Value], task: asyncio.Task[Outcome[Value]]
    ) -> None:
        """Keep the result of a flight, and wake its callers."""
        ended = _end_of(task)
        with self._lock:
            self._remove(turn_id, flight)
            is_left, flight.is_left = flight.is_left, True
            if not is_left and ended is not None and ended.error is None:
                self._keep(turn_id, flight.number, task.result())
        self._wake(flight, ended, task.get_loop())

    def _wake(
        self,
        flight: _Flight[Value],
        ended: _FlightResult[Value] | None,
        here: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Wake the calls that wait for a flight.

        Args:
            flight: The flight.
            ended: Its end.
            here: The event loop of this thread: its waiters are woken at once, because a call from
                another thread takes as long as a short search.
        """
        with self._lock:
            waiters, flight.waiters = list(flight.waiters), set()
        for waiter in waiters:
            loop = waiter.get_loop()
            if loop is here:
                _wake(waiter, ended)
                continue
            with suppress(RuntimeError):  # it was closed
                loop.call_soon_threadsafe(_wake, waiter, ended)

    def _remove(self, turn_id: str, flight: _Flight[Value]) -> None:
        if self._flights.get(turn_id) is flight:
            del self._flights[turn_id]

    def _keep(self, turn_id: str, number: int, outcome: Outcome[Value]) -> None:
        is_older = self._cached is not None and self._cached.number > number
        if not outcome.is_cacheable or is_older:
            return
        until = None if outcome.seconds is None else self._timer() + outcome.seconds
        self._cached = _CachedResult(turn_id, number, outcome.value, until)


def _end_of(task: asyncio.Task[Outcome[Value]]) -> _FlightResult[Value] | None:
    """Return the end of a flight; None if it was cancelled or interrupted."""
    if task.cancelled():
        return None
    error = task.exception()
    if error is None:
        return _FlightResult(task.result().value)
    return _FlightResult(error=error) if isinstance(error, Exception) else None


def _wake(waiter: _Waiter, ended: _FlightResult[Any] | None) -> None:
    if not waiter.done():
        waiter.set_result(ended)
