"""The results of turns: one is kept, and concurrent calls for one turn share its flight.

Calls may come from any number of event loops and threads. A flight is a task of the loop of its
first caller; the others are woken in their own loops.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from mnemic.errors import DeadlineExceededError, StoreClosedError
from mnemic.hyde.turn_memory import TurnMemory, entries_of
from mnemic.model.marks import UNMARKED, Marks
from mnemic.threads.loop_threads import LoopThreads, threads_of
from mnemic.threads.single_flight import AbandonedError, Bounds, Flight, SingleFlightCache


class CachedTurn(NamedTuple):
    """The memories of a turn.

    Attributes:
        memories: Best first.
        seq: Number of the store's last change before they were read.
        expires_at: When the first of them expires; None if none does.
        marks: What holds of all of them.
        seconds: How long later calls for the turn get them; a negative number is not at all.
        until: The end of that, in seconds of a `TurnCache`.
    """

    memories: tuple[TurnMemory, ...] = ()
    seq: int = -1
    expires_at: datetime | None = None
    marks: Marks = UNMARKED
    seconds: float = math.inf
    until: float = math.inf

    @classmethod
    def of(cls, memories: Sequence[TurnMemory], seq: int, marks: Marks) -> "CachedTurn":
        """Return the result of memories as they were after a change of the store."""
        times = [
            entry.expires_at
            for each in memories
            for entry in entries_of(each)
            if entry.expires_at is not None
        ]
        return cls(tuple(memories), seq, min(times, default=None), marks)


NO_MEMORIES = CachedTurn()
NOT_CACHED = CachedTurn(seconds=-math.inf)
"""The result of a turn that could not be tried."""


class TurnCache(SingleFlightCache[str, CachedTurn]):
    """Keeps the result of one turn, and lets concurrent calls for a turn share one flight.

    A turn that began later is never replaced by one that began before it. Thread-safe.

    Args:
        timer: Gives the seconds that results are kept; they never go back.
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        super().__init__(Bounds(), lambda _, __: 0, is_kept=lambda turn: turn.seconds >= 0)
        self._timer = timer
        self._is_closed = False

    def cached(self, turn_id: str) -> CachedTurn | None:
        """Return the kept result of a turn, or None."""
        turn = self.peek(turn_id)
        return None if turn is None or not self._is_valid(turn) else turn

    def close(self) -> None:
        """Forget the kept result, cancel all flights, and begin none any more."""
        self._is_closed = True
        self.clear()

    async def shared(
        self,
        turn_id: str,
        compute: Callable[[], Coroutine[Any, Any, CachedTurn]],
        seconds: float,
    ) -> CachedTurn:
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
        loop = asyncio.get_running_loop()
        threads = threads_of(loop)
        while True:
            found, own, awaited = self.claim([turn_id], blocks=False, is_valid=self._is_valid)
            if found:
                return found[turn_id]
            (flight,) = own or awaited
            waiter = loop.create_future()
            late = loop.call_later(end - time.monotonic(), threads.arrive, waiter)
            try:
                if self._is_closed:
                    raise StoreClosedError("the engine is closed")
                if own:
                    task = asyncio.create_task(compute(), name="mnemic-hyde-turn")
                    task.add_done_callback(partial(self._complete, flight))
                    flight.add_done_callback(partial(_cancel, task))
                flight.add_done_callback(partial(_wake, threads, waiter))
                await waiter
                if not flight.done():
                    raise DeadlineExceededError
                return flight.result()
            except AbandonedError:
                continue  # the event loop of the first caller ended
            finally:
                late.cancel()
                self.leave(flight)

    def _complete(self, flight: Flight[CachedTurn], task: asyncio.Task[CachedTurn]) -> None:
        """Keep the result of a flight, and wake its callers."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            self.fail([flight], error)
            return
        turn = task.result()
        kept = turn._replace(until=self._timer() + turn.seconds)
        settle = partial(self.settle, [flight], [kept], flight.number)
        threads_of(task.get_loop()).wake_after(settle)

    def _is_valid(self, turn: CachedTurn) -> bool:
        return self._timer() < turn.until


def _wake(threads: LoopThreads, waiter: "asyncio.Future[None]", _: object) -> None:
    threads.arrive(waiter)


def _cancel(task: asyncio.Task[CachedTurn], _: object) -> None:
    """Cancel a task, from any thread."""
    if not task.done():
        with suppress(RuntimeError):  # its event loop was closed
            task.get_loop().call_soon_threadsafe(task.cancel)
