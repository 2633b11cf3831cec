"""Joins concurrent calls with few texts into one call of an embedder (natural batching).

The first call goes to the embedder at once. Calls that arrive meanwhile wait; when it ends, one of
them embeds the texts of all. Nothing waits while the embedder is idle.

An embedder that mostly waits, such as a service, is called before the last call has ended: threads
that wait for a fourth of a call's usual time begin the next one. Otherwise each waits for the end
of a call and for its own.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from mnemic.errors import EmbeddingError, StoreClosedError
from mnemic.reporting.description import failure
from mnemic.threads.cancellation import on_cancellation
from mnemic.threads.locks import InnerLock, settling
from mnemic.threads.loop_threads import Call, threads_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]

STALLED_SECONDS = 1.0
"""Seconds after which waiting texts are embedded beside a call that has not ended, so that a
hanging call holds up no others."""

OVERLAPPING = 4
"""Number of calls at a time of an embedder that mostly waits, where threads call it."""

LONG_SECONDS = 0.01
"""Seconds from which on a call is long enough to begin another one beside it."""


class _Waiting:
    """A call that waits, because another one runs.

    Args:
        texts: Its texts.

    Attributes:
        vectors: Its result, once it is there.
        error: The error in place of the result.
        leads: Number of the call by which it is to embed the texts of all that wait; 0 for none.
        is_alone: Whether it is to embed its own texts alone, because a joined call failed.
        is_cancelled: Whether its caller was cancelled.
        joined: The joined call that embeds its texts.
        patience: Seconds after which it begins a call beside one that has not ended.
    """

    needs_thread = True
    """Whether no thread of its own waits, so that it needs one to embed."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.vectors: Vectors | None = None
        self.error: Exception | None = None
        self.leads = 0
        self.is_alone = False
        self.is_cancelled = False
        self.joined: _JoinedCall | None = None
        self.patience = STALLED_SECONDS

    @property
    def is_done(self) -> bool:
        """Whether it has its result or its error."""
        return self.vectors is not None or self.error is not None

    def result(self) -> Vectors:
        """Return its vectors, or raise its error."""
        error, self.error = self.error, None  # whose traceback refers to this frame
        if error is not None:
            raise error
        if self.vectors is None:
            raise CancelledError
        return self.vectors

    def cancel(self) -> None:
        """Leave; a joined call is cancelled with its last member."""
        self.is_cancelled = True
        if self.joined is not None:
            self.joined.cancel_if_unwanted()

    def notify(self) -> None:
        """Let it go on: it is done, or has to embed."""
        raise NotImplementedError


class _WaitingThread(_Waiting):
    """A waiting call of a thread.

    Args:
        texts: Its texts.
        patience: See `_Waiting`.
    """

    needs_thread = False

    def __init__(self, texts: list[str], patience: float) -> None:
        super().__init__(texts)
        self.patience = patience
        # No condition, which is Python: a KeyboardInterrupt in it leaves its lock locked forever.
        self._inbox: SimpleQueue[None] = SimpleQueue()

    def notify(self) -> None:
        self._inbox.put(None)

    def cancel(self) -> None:
        super().cancel()
        self.notify()

    def wait(self) -> bool:
        """Wait to be notified; return False after its patience."""
        with suppress(Empty):
            self._inbox.get(timeout=self.patience)
            return True
        return False


class _WaitingTask(_Waiting):
    """A waiting call of an event loop's task.

    Args:
        texts: Its texts.
        embed: Embeds in a thread of the executor, where it has to.
        executor: The threads.
        wake: Wakes the task, from any thread.

    Attributes:
        end_watch: Ends the checks of `CallJoiner._watch`.
    """

    def __init__(
        self,
        texts: list[str],
        embed: Callable[[_Waiting], None],
        executor: Executor,
        wake: Callable[[], object],
    ) -> None:
        super().__init__(texts)
        self._embed = embed
        self._executor = executor
        self._wake = wake
        self._context = copy_context()
        self.end_watch: Callable[[], object] = wake

    def notify(self) -> None:
        if self.is_done:
            self._wake()
            return
        try:
            with settling():
                self._executor.submit(self._context.run, self._work)
        except RuntimeError:  # it was shut down
            self.error = StoreClosedError("the memory was closed")
            self._wake()

    def _work(self) -> None:
        try:
            self._embed(self)
        except BaseException as error:  # noqa: BLE001 - no other thread would ever wake the task
            self.error = EmbeddingError(f"the embedder failed: {failure(error)}")
        if self.is_done:
            self._wake()


class _JoinedCall:
    """One call for the texts of several.

    Args:
        members: The calls that are joined.
        embed: Embeds their texts.
    """

    def __init__(self, members: list[_Waiting], embed: Callable[[list[str]], Vectors]) -> None:
        self._members = members
        texts = [text for member in members for text in member.texts]
        # In a context of its own, so that it is not cancelled with the one that leads.
        self._call = Call(lambda: embed(texts))

    def run(self) -> None:
        """Give each member its vectors; if the call fails, each of several embeds alone."""
        for member in self._members:
            member.joined = self
        try:
            self._give(self._call.run_in_context())
        except Exception as error:  # noqa: BLE001 - its callers get it
            if len(self._members) == 1:
                self._members[0].error = error
        finally:
            for member in self._members:
                member.joined = None
                member.is_alone = not member.is_done

    def cancel_if_unwanted(self) -> None:
        """Cancel the call if all its members were cancelled."""
        if all(member.is_cancelled for member in self._members):
            self._call.cancel()

    def _give(self, vectors: Vectors) -> None:
        begin = 0
        for member in self._members:
            end = begin + len(member.texts)
            member.vectors, begin = vectors[begin:end], end


class CallJoiner:
    """Embeds texts, together with those that wait at the same time.

    Order: that of arrival. If a joined call fails, each of its members calls the embedder alone, so
    that nobody's text fails another's.

    Args:
        embed: Embeds texts.
        max_texts: Maximum number of texts of a joined call, unless one call alone has more.
    """

    def __init__(self, embed: Callable[[list[str]], Vectors], max_texts: int) -> None:
        self._embed = embed
        self._max_texts = max_texts
        self._lock = InnerLock()
        self._waiting: deque[_Waiting] = deque()
        self._numbers = count(1)
        # When each call began that runs, or is about to. An interrupted thread may leave one here,
        # which counts as stalled soon.
        self._running: dict[int, float] = {}
        self._patience = STALLED_SECONDS  # of the first thread that waits

    def __call__(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts; the calling thread waits for them.

        Raises:
            CancelledError: That of `concurrent.futures`, if the awaiting task was cancelled.
        """
        waiting = None
        with self._lock:
            number = self._begin_if_free(STALLED_SECONDS)
            if not number:
                is_first = not self._waiting  # the others wait for its call
                waiting = _WaitingThread(texts, self._patience if is_first else STALLED_SECONDS)
                self._waiting.append(waiting)
        if waiting is not None:
            return self._awaited_in_thread(waiting)
        try:
            return self._timed(texts)
        finally:
            self._end(number)

    async def awaited(self, texts: list[str], executor: Executor) -> Vectors:
        """Return the vectors of texts, without a thread that waits.

        Args:
            texts: The texts.
            executor: Has a thread for a call of the embedder.
        """
        import asyncio  # noqa: PLC0415 - a third of the import budget, unused by plain calls

        loop = asyncio.get_running_loop()
        waiter, threads = loop.create_future(), threads_of(loop)
        waiting = _WaitingTask(texts, self._embed_for, executor, lambda: threads.arrive(waiter))
        with self._lock:
            self._waiting.append(waiting)
            waiting.leads = self._begin_if_free(STALLED_SECONDS)
        if waiting.leads:
            waiting.notify()
        self._watch(loop, waiting)
        try:
            await waiter
        finally:
            waiting.end_watch()
            self._leave(waiting)
        return waiting.result()

    def _watch(self, loop: AbstractEventLoop, waiting: _WaitingTask) -> None:
        """Check at intervals whether a task waits for a call that does not end."""
        if self._leads_if_stalled(waiting):
            waiting.notify()
        waiting.end_watch = loop.call_later(STALLED_SECONDS, self._watch, loop, waiting).cancel

    def _awaited_in_thread(self, waiting: _WaitingThread) -> Vectors:
        try:
            with on_cancellation(waiting.cancel):
                while not (waiting.is_done or waiting.is_cancelled):
                    if waiting.wait() or self._leads_if_stalled(waiting):
                        self._embed_for(waiting)
        finally:
            self._leave(waiting)
        return waiting.result()

    def _leave(self, waiting: _Waiting) -> None:
        """Take out a call that is done, cancelled or interrupted."""
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            number, waiting.leads = waiting.leads, 0
        if not waiting.is_done:
            waiting.cancel()
        if number:  # it was chosen, and leaves before it began
            self._end(number)

    def _embed_for(self, waiting: _Waiting) -> None:
        """Embed what a waiting call was notified to embed."""
        if waiting.leads:
            self._lead(waiting)
        if waiting.is_alone and not (waiting.is_done or waiting.is_cancelled):
            try:
                waiting.vectors = self._embed(waiting.texts)
            except Exception as error:  # noqa: BLE001 - its caller gets it
                waiting.error = error

    def _lead(self, leader: _Waiting) -> None:
        with self._lock:
            if not leader.leads:  # it left
                return
            members = self._take()
            number, leader.leads = leader.leads, 0
        try:
            if members:
                _JoinedCall(members, self._timed).run()
        finally:
            self._end(number)
            for member in members:
                if member is not leader:
                    member.notify()

    def _take(self) -> list[_Waiting]:
        """Take the next waiting calls, as many as one call embeds."""
        members: list[_Waiting] = []
        remaining = self._max_texts
        while self._waiting and (not members or len(self._waiting[0].texts) <= remaining):
            first = self._waiting.popleft()
            if not first.is_cancelled:
                members.append(first)
                remaining -= len(first.texts)
        return members

    def _end(self, number: int) -> None:
        """End a call; one that waits leads the next one, if no other call runs."""
        with self._lock:
            self._running.pop(number, None)
            leader = self._next_leader()
            if leader is not None:
                leader.leads = self._begin_if_free(self._patience)
        if leader is not None and leader.leads:
            leader.notify()

    def _next_leader(self) -> _Waiting | None:
        """Return a waiting call, preferably one that has a thread."""
        if not self._waiting:
            return None
        waiting = [each for each in self._waiting if not (each.is_cancelled or each.leads)]
        return min(waiting, key=lambda each: each.needs_thread, default=None)

    def _begin_if_free(self, patience: float) -> int:
        """Return the number of a new call, or 0 if it should wait for another one."""
        now = time.monotonic()
        if self._running and now - max(self._running.values()) < patience:
            return 0
        number = next(self._numbers)
        self._running[number] = now
        return number

    def _leads_if_stalled(self, waiting: _Waiting) -> bool:
        """Return whether a call that waits has to go on beside one that does not end."""
        with self._lock:
            if waiting.leads or waiting not in self._waiting:
                return False
            waiting.leads = self._begin_if_free(waiting.patience)
            return waiting.leads > 0

    def _timed(self, texts: list[str]) -> Vectors:
        """Embed texts, and learn whether the embedder mostly waits."""
        begun, worked = time.monotonic(), time.thread_time()
        vectors = self._embed(texts)
        took = time.monotonic() - begun
        mostly_waits = took > LONG_SECONDS and 2 * (time.thread_time() - worked) < took
        patience = took / OVERLAPPING if mostly_waits else STALLED_SECONDS
        self._patience = min(patience, STALLED_SECONDS)
        return vectors
