"""Answers that were given before, by everything that decides them.

Each wall, an agent's user, has a part of its own, in which the least recently used answer goes
first. What one wall keeps is never taken for another while it has no more than its fair share.
"""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import Future
from datetime import datetime, timedelta
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mnemic.description import hidden
from mnemic.model import RelevanceScores
from mnemic.retrieval.keys import Key, UserScope
from mnemic.sync_bridge import arrived, runs_sync

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

CACHED_ANSWERS = 1024
"""Answers kept for one wall."""

CACHED_BYTES = 64 * 1024 * 1024
"""Bytes of all kept answers together."""

SCOPE_SHARE = 8
"""One wall keeps at most this part of all bytes, so that so many full walls fit beside others."""

ANSWER_SHARE = 4
"""One answer takes at most this part of a wall's bytes; a larger one is not kept."""

FREED_SHARE = 16
"""This part of all bytes is made free at once: sorting the walls by size costs the more the more
there are."""


class Hit(NamedTuple):
    """What is kept of one memory of an answer.

    Attributes:
        row: The store's number of it.
        score: From 0 to 1.
        scores: What that is made of.
    """

    row: int
    score: float
    scores: RelevanceScores


class CachedAnswer(NamedTuple):
    """What is kept of an answer: rows and scores, never contents.

    Attributes:
        hits: Best first.
        total: How many match in all.
        expanded: The query with the terms that were added; None if none were.
        computed_at: When, by the memory's clock.
        lifetime: How long it may be kept.
        until: When a memory of the wall expires, after which another may count; None is never.
        expansion_failed: Whether the expander failed; then it is not kept.
        degraded: Whether the embedder failed; then it is not kept either.
    """

    hits: tuple[Hit, ...]
    total: int
    expanded: str | None
    computed_at: datetime
    lifetime: timedelta
    expires_at: datetime | None = None
    expansion_failed: bool = False
    degraded: bool = False

    def __repr__(self) -> str:
        expanded = "" if self.expanded is None else f", expanded={hidden(self.expanded)}"
        return f"Answer({len(self.hits)} hits, total={self.total}{expanded})"

    def is_valid(self, now: datetime, max_age: timedelta) -> bool:
        """Return whether it may be given at a time, being no older than that."""
        age = now - self.computed_at
        is_young = timedelta() <= age < min(self.lifetime, max_age)
        return is_young and (self.expires_at is None or now < self.expires_at)


class AnswerCache:
    """Keeps answers for a time; of those that come at once for one key only one is made.

    Safe to use from many threads and event loops.

    Args:
        size: How many answers of one wall at most.
        size_bytes: How many bytes all answers take at most.
    """

    def __init__(self, size: int = CACHED_ANSWERS, size_bytes: int = CACHED_BYTES) -> None:
        self._size = size
        self._max_bytes = size_bytes
        self._lock = threading.Lock()
        self._scopes: dict[UserScope, _CacheEntry] = {}
        self._bytes = 0
        self._computing: dict[Key, _Computation] = {}

    def __len__(self) -> int:
        """Return the number of kept answers, those whose time is over too."""
        with self._lock:
            return sum(len(entry.answers) for entry in self._scopes.values())

    @property
    def bytes(self) -> int:
        """What the kept answers take, by estimate."""
        with self._lock:
            return self._bytes

    def get(self, key: Key, now: datetime, max_age: timedelta) -> CachedAnswer | None:
        """Return a kept answer that serves at a time; see `Answer.serves`."""
        with self._lock:
            return self._lookup(key, now, max_age)

    def drop(self, key: Key) -> None:
        """Forget an answer. Harmless if repeated."""
        with self._lock:
            entry = self._scopes.get(key.scope)
            if entry is not None and entry.revision == key.revision:
                self._bytes -= entry.drop(key.question)
                if not entry.answers:
                    del self._scopes[key.scope]

    async def get_or_compute(
        self,
        key: Key,
        compute: Callable[[], Awaitable[CachedAnswer]],
        now: datetime,
        max_age: timedelta,
    ) -> tuple[CachedAnswer, bool]:
        """Return an answer, and whether it was made here; otherwise another call just made it.

        Where the call that makes it is cancelled, one of those that wait makes it; its errors are
        theirs too.
        """
        while True:
            mine = _Computation(Future(), threading.get_ident(), _running_loop())
            with self._lock:
                known = self._lookup(key, now, max_age)
                theirs = self._computing.setdefault(key, mine) if known is None else mine
            if known is not None:  # it was made since the caller looked
                return known, False
            if theirs is mine:
                return await self._compute(key, mine.future, compute), True
            if not theirs.is_safe_to_await():
                return await compute(), True
            try:
                return await arrived(theirs.future), False
            except _AbandonedError:
                continue

    async def _compute(
        self, key: Key, mine: "Future[CachedAnswer]", compute: Callable[[], Awaitable[CachedAnswer]]
    ) -> CachedAnswer:
        mine.set_running_or_notify_cancel()  # those who wait and are cancelled do not cancel it
        try:
            answer = await compute()
        except Exception as error:
            self._finish(key)
            mine.set_exception(error)
            raise
        except BaseException:
            self._finish(key)
            mine.set_exception(_AbandonedError())
            raise
        with self._lock:
            self._insert(key, answer)
            del self._computing[key]
        mine.set_result(answer)
        return answer

    def _lookup(self, key: Key, now: datetime, max_age: timedelta) -> CachedAnswer | None:
        entry = self._scopes.get(key.scope)
        if entry is None or entry.revision != key.revision:
            return None
        answer, _ = entry.answers.get(key.question, (None, 0))
        if answer is None or not answer.is_valid(now, max_age):
            return None
        entry.answers.move_to_end(key.question)
        return answer

    def _insert(self, key: Key, answer: CachedAnswer) -> None:
        size = bytes_of(key, answer)
        most = self._max_bytes // SCOPE_SHARE
        if answer.expansion_failed or answer.degraded or size > most // ANSWER_SHARE:
            return
        entry = self._scopes.setdefault(key.scope, _CacheEntry(key.revision))
        if key.revision < entry.revision:  # the memories were changed while it was made
            return
        if key.revision > entry.revision:
            self._bytes -= entry.bytes
            entry = self._scopes[key.scope] = _CacheEntry(key.revision)
        self._bytes += entry.put(key.question, answer, size)
        while len(entry.answers) > self._size or entry.bytes > most:
            self._bytes -= entry.drop_oldest()
        if self._bytes > self._max_bytes:
            self._evict()

    def _evict(self) -> None:
        """Bring the largest walls down to one level; those below it keep all they have."""
        wanted = self._max_bytes - self._max_bytes // FREED_SHARE
        level = _fair_level((entry.bytes for entry in self._scopes.values()), wanted)
        for entry in self._scopes.values():
            while entry.bytes > level:
                self._bytes -= entry.drop_oldest()
        self._scopes = {scope: entry for scope, entry in self._scopes.items() if entry.answers}

    def _finish(self, key: Key) -> None:
        with self._lock:
            del self._computing[key]


class _CacheEntry:
    """The kept answers of one wall with their sizes, the least recently used first.

    Args:
        revision: The number of the last change of the wall's memories.
    """

    __slots__ = ("answers", "bytes", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.answers: OrderedDict[Hashable, tuple[CachedAnswer, int]] = OrderedDict()
        self.bytes = 0

    def put(self, question: Hashable, answer: CachedAnswer, size: int) -> int:
        """Keep an answer; return how many bytes more are taken."""
        freed = self.drop(question)
        self.answers[question] = (answer, size)
        self.bytes += size
        return size - freed

    def drop(self, question: Hashable) -> int:
        """Forget an answer; return how many bytes that frees."""
        _, size = self.answers.pop(question, (None, 0))
        self.bytes -= size
        return size

    def drop_oldest(self) -> int:
        """Forget the least recently used answer; return how many bytes that frees."""
        _, (_, size) = self.answers.popitem(last=False)
        self.bytes -= size
        return size


class _Computation(NamedTuple):
    """An answer that is being made.

    Attributes:
        future: Where it will be.
        thread: Which one runs the call that makes it.
        loop: The event loop that runs it; None if the thread drives it.
    """

    future: "Future[CachedAnswer]"
    thread: int
    loop: "AbstractEventLoop | None"

    def is_safe_to_await(self) -> bool:
        """Return whether it is safe to wait here.

        A plain call may hold up the very event loop, and a loop that was stopped or closed with the
        call in it may never go on.
        """
        if runs_sync():
            return self.loop is None and self.thread != threading.get_ident()
        return self.loop is None or self.loop.is_running()


class _AbandonedError(Exception):
    """The call that was to make an answer was cancelled."""


def bytes_of(key: Key, answer: CachedAnswer) -> int:
    """Return about how many bytes a kept answer takes with its key."""
    parts = (answer, answer.hits, answer.expanded, answer.computed_at, answer.lifetime)
    own = sum(map(getsizeof, parts)) + _HIT_BYTES * len(answer.hits)
    return own + _bytes_of(key.question) + _NODE_BYTES


def _bytes_of(value: object) -> int:
    if isinstance(value, tuple | frozenset):
        return getsizeof(value) + sum(map(_bytes_of, value)) if value else 0
    return getsizeof(value) if isinstance(value, str | UUID) else 0  # others are shared or small


def _fair_level(sizes: Iterable[int], wanted: int) -> int:
    """Return the level to which sizes are cut down so that they add up to what is wanted.

    It is never below `wanted` divided by their number: max-min fairness.
    """
    ascending = sorted(sizes)
    for at, size in enumerate(ascending):
        share = wanted // (len(ascending) - at)
        if size > share:
            return share
        wanted -= size
    return max(ascending, default=0)


def _running_loop() -> "AbstractEventLoop | None":
    if runs_sync():
        return None
    import asyncio  # noqa: PLC0415 - a third of the import budget, unused at the front door

    return asyncio.get_running_loop()


_SCORES = RelevanceScores(**dict.fromkeys(RelevanceScores.__struct_fields__, 0.5))
_HIT_BYTES = (
    getsizeof(Hit(0, 0.5, _SCORES))
    + getsizeof(_SCORES)
    + getsizeof(0.5) * (1 + len(RelevanceScores.__struct_fields__))
    + getsizeof(2**31)
)
"""Of a hit with all its components, and of its row's number."""

_NODE_BYTES = 256
"""Of an answer's place among those of its wall: a node of an ordered dict, and a pair."""
