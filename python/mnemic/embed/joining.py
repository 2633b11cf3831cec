"""Calls an embedder in batches, and joins concurrent calls with few texts (natural batching).

The first call goes to the embedder at once. Calls that arrive meanwhile wait; when it ends, one of
them embeds the texts of all. Nothing waits while the embedder is idle.

An embedder that mostly waits, such as a service, is called before the last call has ended: threads
that wait for a fourth of a call's usual time begin the next one. Otherwise each waits for the end
of a call and for its own.
"""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from mnemic.arrays import np
from mnemic.threads.calls import Call, on_cancellation
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import arrived, run_blocking
from mnemic.threads.waited_future import WaitedFuture, started

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from mnemic.arrays import Float32Array
    from mnemic.threads.sync_bridge import HasExecutor

JOINED_TEXTS = 256
"""Maximum number of texts of a joined call, where the embedder names no size."""

STALLED_SECONDS = 1.0
"""Seconds after which waiting texts are embedded beside a call that has not ended, so that a
hanging call holds up no others."""

OVERLAPPING = 4
"""Number of calls at a time of an embedder that mostly waits, where threads call it."""

LONG_SECONDS = 0.01
"""Seconds from which on a call is long enough to begin another one beside it."""


class _Running(NamedTuple):
    """The call that began last."""

    began: float


class _Waiting(WaitedFuture["Float32Array | None"]):
    """A call that waits for its vectors, or for None: it embeds its own texts alone then.

    Args:
        texts: Its texts.
        patience: Seconds after which the first that waits begins a call beside one that has not
            ended.
        context: The context of a task, for which no thread waits yet; None of a thread.

    Attributes:
        began: When it began to wait.
        signals: Wakes its thread: it is done, or another call has ended.
    """

    def __init__(self, texts: list[str], patience: float, context: Context | None = None) -> None:
        super().__init__()
        self.texts = texts
        self.began = time.monotonic()
        self.patience = patience
        self.context = context
        # No condition, which is Python: a KeyboardInterrupt in it leaves its lock locked forever.
        self.signals = signals = SimpleQueue[None]()
        self.add_done_callback(lambda _: signals.put(None))

    def give(self, vectors: Float32Array | None) -> None:
        """Give it its vectors, unless it has an error or its caller has left."""
        with suppress(InvalidStateError):
            self.set_result(vectors)


class CallJoiner:
    """Embeds texts by calls of the right size, those of few texts with others that wait.

    Order: that of arrival. If a joined call fails, each of its members calls the embedder alone, so
    that nobody's text fails another's.

    Args:
        embed: Embeds texts by one call.
        batch_size: Maximum number of texts of one call; None for no maximum.
        joins: Returns whether a call with these texts is joined with others; an attribute too.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Float32Array],
        batch_size: int | None,
        joins: Callable[[list[str]], bool],
    ) -> None:
        self._embed = embed
        self._batch_size = batch_size
        self.joins = joins
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = InnerLock()
        self._waiting: deque[_Waiting] = deque()
        # An interrupted thread may leave its call here, which counts as stalled soon.
        self._running: _Running | None = None
        self._patience = STALLED_SECONDS  # of threads that wait

    def embed(self, texts: list[str]) -> Float32Array:
        """Return the vectors of texts, at least one; a failing call fails all.

        Raises:
            CancelledError: That of `concurrent.futures`, if the awaiting task was cancelled.
        """
        if not self.joins(texts):
            return self._in_batches(texts)
        running = self._begun()
        if running is None:
            return self._awaited_in_thread(texts)
        try:
            return self._timed(running, texts)
        finally:
            self._end(running)  # an interrupt may have come before those that wait were called

    async def awaited(self, texts: list[str], threads: HasExecutor) -> Float32Array:
        """Return the vectors of texts that are joined, without a thread that waits.

        Args:
            texts: The texts.
            threads: Has a thread for a call of the embedder.
        """
        running = self._begun()
        if running is not None:
            try:
                return await run_blocking(lambda: self._timed(running, texts), threads)
            finally:
                self._end(running)  # it may have been cancelled before it began
        waiting = _Waiting(texts, STALLED_SECONDS, copy_context())
        try:
            with self._lock:
                self._waiting.append(waiting)
            self._call_first()
            vectors = await arrived(waiting)
        finally:
            self._leave(waiting)
            del waiting  # the traceback of its error refers to this frame
        if vectors is not None:
            return vectors
        return await run_blocking(lambda: self._embed(texts), threads)

    def _in_batches(self, texts: list[str]) -> Float32Array:
        size = self._batch_size or len(texts)
        batches = [texts[at : at + size] for at in range(0, len(texts), size)]
        vectors = [self._embed(batch) for batch in batches]
        return vectors[0] if len(vectors) == 1 else np.concatenate(vectors)

    def _begun(self) -> _Running | None:
        """Return a new call; None if another one runs, or others wait to begin one."""
        if self._process != os.getpid():
            self._begin()  # in a forked process, which has none of the threads
        with self._lock:
            if self._running is not None or self._waiting:
                return None
            self._running = running = _Running(time.monotonic())
            return running

    def _timed(self, running: _Running, texts: list[str]) -> Float32Array:
        """Embed texts, and learn whether the embedder mostly waits."""
        begun, worked = time.monotonic(), time.thread_time()
        try:
            vectors = self._embed(texts)
        finally:
            self._end(running)
        took = time.monotonic() - begun
        mostly_waits = took > LONG_SECONDS and 2 * (time.thread_time() - worked) < took
        patience = took / OVERLAPPING if mostly_waits else STALLED_SECONDS
        self._patience = min(patience, STALLED_SECONDS)
        return vectors

    def _end(self, running: _Running) -> None:
        """End a call; the first one that waits may begin."""
        with self._lock:
            if self._running is running:
                self._running = None
        if self._waiting:
            self._call_first()

    def _awaited_in_thread(self, texts: list[str]) -> Float32Array:
        waiting = _Waiting(texts, self._patience)
        try:
            with self._lock:
                self._waiting.append(waiting)
            with on_cancellation(waiting.cancel):
                self._serve(waiting)
                vectors = waiting.result()
        finally:
            self._leave(waiting)
            del waiting  # the traceback of its error refers to this frame
        return self._embed(texts) if vectors is None else vectors

    def _serve(self, waiting: _Waiting) -> None:
        """Wait in this thread until a call is done; embed what waits once no other call runs."""
        while not waiting.done():
            members: list[_Waiting] = []
            try:
                self._serve_once(waiting, members)
            finally:  # an interrupt may have come before they got their vectors
                for member in members:
                    member.give(None)

    def _serve_once(self, waiting: _Waiting, members: list[_Waiting]) -> None:
        """Wait for a signal, or embed the texts of members, which are taken from those that wait.

        Members leave the list as they get their vectors.
        """
        running = None
        with self._lock:
            before, now = self._running, time.monotonic()
            is_first = bool(self._waiting) and self._waiting[0] is waiting
            patience = waiting.patience if is_first else STALLED_SECONDS  # for the first's call
            seconds = 0.0
            if before is not None:
                # From its own begin, so that those that arrive with it go together.
                seconds = max(before.began, waiting.began) + patience - now
                seconds = min(seconds, before.began + STALLED_SECONDS - now)
            if seconds <= 0 and waiting in self._waiting:
                self._running = running = _Running(now)
                self._take(members)
        if running is not None:
            self._lead(running, members)
        else:
            with suppress(Empty):
                waiting.signals.get(timeout=seconds if seconds > 0 else STALLED_SECONDS)

    def _take(self, members: list[_Waiting]) -> None:
        """Take the next waiting calls, as many as one call embeds, into an empty list."""
        remaining = self._batch_size or JOINED_TEXTS
        while self._waiting and (not members or len(self._waiting[0].texts) <= remaining):
            members.append(self._waiting[0])  # before it is removed: an interrupt loses none
            self._waiting.popleft()
            remaining -= len(members[-1].texts)

    def _lead(self, running: _Running, members: list[_Waiting]) -> None:
        """Give each member its vectors; if the call fails, each of several embeds alone."""
        vectors = None
        try:
            vectors = self._joined(running, members).run_in_context()
        except Exception as error:  # noqa: BLE001 - its caller gets it
            if len(members) == 1 and not members[0].done():
                members[0].set_exception(error)
        finally:
            self._end(running)  # of a call that did not begin
            begin = 0
            while members:  # the error's traceback refers to this frame
                end = begin + len(members[0].texts)
                members[0].give(None if vectors is None else vectors[begin:end])
                del members[0]
                begin = end

    def _joined(self, running: _Running, members: list[_Waiting]) -> Call:
        """Return the call for all members, which is cancelled with the last of them."""
        texts = [text for member in members for text in member.texts]
        # In a context of its own, so that it is not cancelled with the one that leads.
        call = Call(lambda: self._timed(running, texts))

        def cancel_if_unwanted(_: object) -> None:
            for member in members:
                if not member.cancelled():
                    return
            call.cancel()

        for member in members:
            member.add_done_callback(cancel_if_unwanted)
        self._call_first()  # of those that were not taken
        return call

    def _call_first(self) -> None:
        """Let the first call that waits begin if it may; a task's gets a thread of its own."""
        with self._lock:
            if not self._waiting:
                return
            first = self._waiting[0]
        first.signals.put(None)
        context = first.context
        if context is not None:
            # Of two threads, which may come here at once, one has nothing to do.
            context.copy().run(started, lambda: self._serve(first))
            first.context = None  # now: an interrupt must not leave it without a thread

    def _leave(self, waiting: _Waiting) -> None:
        """Take out a call that is done, cancelled or interrupted."""
        waiting.cancel()
        with self._lock, suppress(ValueError):
            self._waiting.remove(waiting)
        self._call_first()
