"""Answers that were given before, by everything that decides them (C003 to C006, C029)."""

import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cachetools import TLRUCache

from mnemic.model import RelevanceScores
from mnemic.waiting import arrived, is_driving

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

CACHED_ANSWERS = 1024

Key: TypeAlias = Hashable


class Hit(NamedTuple):
    """What is kept of one memory of an answer.

    Attributes:
        id: The 16 bytes of its UUID.
        score: From 0 to 1.
        scores: What that is made of.
    """

    id: bytes
    score: float
    scores: RelevanceScores


class Answer(NamedTuple):
    """What is kept of an answer: ids and scores, never contents (C028).

    Attributes:
        hits: Best first.
        rows: The rows of the hits, by their ids.
        total: How many match in all.
        expanded: The query with the terms that were added; None if none were.
        seconds: How long it may be kept.
        until: When a memory expires, after which another may count; None is never.
    """

    hits: tuple[Hit, ...]
    rows: dict[bytes, int]
    total: int
    expanded: str | None
    seconds: float
    until: datetime | None = None


class AnswerCache:
    """Keeps answers for a time; of those that come at once for one key only one is made.

    Safe to use from many threads and event loops.

    Args:
        size: How many at most; the least recently used goes first.
        timer: Gives seconds, of a clock that never goes back.
    """

    def __init__(
        self, size: int = CACHED_ANSWERS, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._lock = threading.Lock()
        self._answers: TLRUCache[Key, Answer] = TLRUCache(size, _expiry, timer)
        self._being_made: dict[Key, _Making] = {}

    def get(self, key: Key) -> Answer | None:
        """Return a kept answer whose time is not over."""
        with self._lock:
            return self._kept(key)

    def drop(self, key: Key) -> None:
        """Forget an answer. Harmless if repeated."""
        with self._lock:
            self._answers.pop(key, None)

    async def made(self, key: Key, make: Callable[[], Awaitable[Answer]]) -> tuple[Answer, bool]:
        """Return an answer, and whether it was made here; otherwise another call just made it.

        Where the call that makes it is cancelled, one of those that wait makes it; its errors are
        theirs too.
        """
        while True:
            mine = _Making(Future(), threading.get_ident(), _running_loop())
            with self._lock:
                known = self._kept(key)
                theirs = self._being_made.setdefault(key, mine) if known is None else mine
            if known is not None:  # it was made since the caller looked
                return known, False
            if theirs is mine:
                return await self._make(key, mine.future, make), True
            if not theirs.goes_on_while_waited_for():
                return await make(), True
            try:
                return await arrived(theirs.future), False
            except _AbandonedError:
                continue

    async def _make(
        self, key: Key, mine: "Future[Answer]", make: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        mine.set_running_or_notify_cancel()  # those who wait and are cancelled do not cancel it
        try:
            answer = await make()
        except Exception as error:
            self._end(key)
            mine.set_exception(error)
            raise
        except BaseException:
            self._end(key)
            mine.set_exception(_AbandonedError())
            raise
        with self._lock:
            self._answers[key] = answer
            del self._being_made[key]
        mine.set_result(answer)
        return answer

    def _kept(self, key: Key) -> Answer | None:
        try:
            return self._answers[key]  # in half the steps of `get`
        except KeyError:
            return None

    def _end(self, key: Key) -> None:
        with self._lock:
            del self._being_made[key]


class _Making(NamedTuple):
    """An answer that is being made.

    Attributes:
        future: Where it will be.
        thread: Which one runs the call that makes it.
        loop: The event loop that runs it; None if the thread drives it.
    """

    future: "Future[Answer]"
    thread: int
    loop: "AbstractEventLoop | None"

    def goes_on_while_waited_for(self) -> bool:
        """Return whether it is safe to wait here.

        A plain call may hold up the very event loop, and a loop that was stopped or closed with the
        call in it may never go on.
        """
        if is_driving():
            return self.loop is None and self.thread != threading.get_ident()
        return self.loop is None or self.loop.is_running()


class _AbandonedError(Exception):
    """The call that was to make an answer was cancelled."""


def _running_loop() -> "AbstractEventLoop | None":
    if is_driving():
        return None
    import asyncio  # noqa: PLC0415 - a third of the import budget, unused at the front door

    return asyncio.get_running_loop()


def _expiry(_key: Key, answer: Answer, now: float) -> float:
    return now + answer.seconds
