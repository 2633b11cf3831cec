"""Cache of retrieval results.

Each user has a part of its own, evicted by least recent use. The part of one user is never reduced
for another's while it is no larger than its fair share.
"""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from concurrent.futures import Future
from datetime import datetime, timedelta
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mnemic.model import RelevanceScores
from mnemic.model.marks import UNMARKED, Marks
from mnemic.reporting.description import hidden
from mnemic.retrieval.keys import Key, UserScope
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import arrived, runs_sync

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

CACHED_ANSWERS = 1024
"""Maximum number of cached results of one user."""

CACHED_BYTES = 64 * 1024 * 1024
"""Maximum bytes of all cached results."""

SCOPE_SHARE = 8
"""One user's part is at most 1/n of all bytes, so that so many full parts fit."""

ANSWER_SHARE = 4
"""One result is at most 1/n of a user's bytes; a larger one is not cached."""

FREED_SHARE = 16
"""1/n of all bytes is freed at once: sorting the users by size gets slower with their
number."""


class CachedHit(NamedTuple):
    """The cached part of one memory of a result.

    Attributes:
        row: The memory's row in the store.
        score: From 0 to 1.
        scores: Parts of the score.
    """

    row: int
    score: float
    scores: RelevanceScores


class CachedAnswer(NamedTuple):
    """The cached part of a result: rows and scores, never contents.

    Attributes:
        hits: Best first.
        total: Number of matches.
        expanded: The query with added terms; None if none were added.
        computed_at: Time of computation, by the memory's clock.
        lifetime: Maximum age.
        expires_at: Time of the next expiry of a memory of the user, which may change the result;
            None is never.
        expansion_failed: Whether the expander failed; such a result is not cached.
        marks: What holds of the result; one that does not last is not cached either.
    """

    hits: tuple[CachedHit, ...]
    total: int
    expanded: str | None
    computed_at: datetime
    lifetime: timedelta
    expires_at: datetime | None = None
    expansion_failed: bool = False
    marks: Marks = UNMARKED

    @property
    def is_complete(self) -> bool:
        """Whether a later computation would give the same."""
        return not self.expansion_failed and self.marks.is_lasting

    def __repr__(self) -> str:
        expanded = "" if self.expanded is None else f", expanded={hidden(self.expanded)}"
        return f"CachedAnswer({len(self.hits)} hits, total={self.total}{expanded})"

    def is_valid(self, now: datetime, max_age: timedelta) -> bool:
        """Return whether the result may be returned at a time, given a maximum age."""
        age = now - self.computed_at
        is_young = timedelta() <= age < min(self.lifetime, max_age)
        return is_young and (self.expires_at is None or now < self.expires_at)


class AnswerCache:
    """Caches results for a time. Concurrent identical queries are coalesced.

    Safe for threads and event loops.

    Args:
        size: Maximum number of results of one user.
        size_bytes: Maximum bytes of all results.
    """

    def __init__(self, size: int = CACHED_ANSWERS, size_bytes: int = CACHED_BYTES) -> None:
        self._size = size
        self._max_bytes = size_bytes
        self._lock = InnerLock()
        self._scopes: dict[UserScope, _CacheEntry] = {}
        self._bytes = 0
        self._computing: dict[Key, _Computation] = {}

    def __len__(self) -> int:
        """Return the number of cached results, outdated ones included."""
        with self._lock:
            return sum(len(entry.answers) for entry in self._scopes.values())

    @property
    def bytes(self) -> int:
        """Bytes of the cached results, by estimate."""
        with self._lock:
            return self._bytes

    def get(self, key: Key, now: datetime, max_age: timedelta) -> CachedAnswer | None:
        """Return a cached result that is valid at a time; see `CachedAnswer.is_valid`."""
        with self._lock:
            return self._lookup(key, now, max_age)

    def drop(self, key: Key) -> None:
        """Remove a result. Repeated calls have no effect."""
        with self._lock:
            entry = self._scopes.get(key.scope)
            if entry is not None and entry.revision == key.revision:
                self._bytes -= entry.drop(key.question)
                if not entry.answers:
                    del self._scopes[key.scope]

    def put(self, key: Key, answer: CachedAnswer) -> None:
        """Insert a complete result; others are left out."""
        with self._lock:
            self._insert(key, answer)

    async def get_or_compute(
        self,
        key: Key,
        compute: Callable[[], Awaitable[CachedAnswer]],
        now: datetime,
        max_age: timedelta,
    ) -> tuple[CachedAnswer, bool]:
        """Return a result, and whether this call computed it rather than a concurrent one.

        If the computing call is cancelled, one of the waiting calls computes it; its errors are
        raised in all of them.
        """
        while True:
            mine = _Computation(Future(), threading.get_ident(), _running_loop())
            with self._lock:
                known = self._lookup(key, now, max_age)
                theirs = self._computing.setdefault(key, mine) if known is None else mine
            if known is not None:  # computed since the caller's lookup
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
        mine.set_running_or_notify_cancel()  # cancelled waiting calls do not cancel it
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
        max_bytes = self._max_bytes // SCOPE_SHARE
        if not answer.is_complete or size > max_bytes // ANSWER_SHARE:
            return
        entry = self._scopes.setdefault(key.scope, _CacheEntry(key.revision))
        if key.revision < entry.revision:  # the memories changed during the computation
            return
        if key.revision > entry.revision:
            self._bytes -= entry.bytes
            entry = self._scopes[key.scope] = _CacheEntry(key.revision)
        self._bytes += entry.put(key.question, answer, size)
        while len(entry.answers) > self._size or entry.bytes > max_bytes:
            self._bytes -= entry.drop_oldest()
        if self._bytes > self._max_bytes:
            self._evict()

    def _evict(self) -> None:
        """Reduce the largest parts to one level; parts below it are kept completely."""
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
    """The cached results of one user with their sizes, the least recently used first.

    Args:
        revision: Number of the last change of the user's memories.
    """

    __slots__ = ("answers", "bytes", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.answers: OrderedDict[Hashable, tuple[CachedAnswer, int]] = OrderedDict()
        self.bytes = 0

    def put(self, question: Hashable, answer: CachedAnswer, size: int) -> int:
        """Insert a result; return the increase in bytes."""
        freed = self.drop(question)
        self.answers[question] = (answer, size)
        self.bytes += size
        return size - freed

    def drop(self, question: Hashable) -> int:
        """Remove a result; return the freed bytes."""
        _, size = self.answers.pop(question, (None, 0))
        self.bytes -= size
        return size

    def drop_oldest(self) -> int:
        """Remove the least recently used result; return the freed bytes."""
        _, (_, size) = self.answers.popitem(last=False)
        self.bytes -= size
        return size


class _Computation(NamedTuple):
    """A running computation of a result.

    Attributes:
        future: Receives the result.
        thread: Thread of the computing call.
        loop: Event loop of the computing call; None for a synchronous call.
    """

    future: "Future[CachedAnswer]"
    thread: int
    loop: "AbstractEventLoop | None"

    def is_safe_to_await(self) -> bool:
        """Return whether waiting for it cannot block forever.

        A synchronous call may block the computing event loop, and a loop that was stopped or closed
        during the call may never continue.
        """
        if runs_sync():
            return self.loop is None and self.thread != threading.get_ident()
        return self.loop is None or self.loop.is_running()


class _AbandonedError(Exception):
    """The computing call was cancelled."""


def bytes_of(key: Key, answer: CachedAnswer) -> int:
    """Return the estimated bytes of a cached result with its key."""
    parts = (answer, answer.hits, answer.expanded, answer.computed_at, answer.lifetime)
    own = sum(map(getsizeof, parts)) + _HIT_BYTES * len(answer.hits)
    return own + _bytes_of(key.question) + _NODE_BYTES


def _bytes_of(value: object) -> int:
    if isinstance(value, tuple | frozenset):
        return getsizeof(value) + sum(map(_bytes_of, value)) if value else 0
    return getsizeof(value) if isinstance(value, str | UUID) else 0  # others are shared or small


def _fair_level(sizes: Iterable[int], wanted: int) -> int:
    """Return the level to which sizes must be cut so that they add up to `wanted`.

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
    import asyncio  # noqa: PLC0415 - a third of the import budget, unused by plain calls

    return asyncio.get_running_loop()


_SCORES = RelevanceScores(**dict.fromkeys(RelevanceScores.__struct_fields__, 0.5))
_HIT_BYTES = (
    getsizeof(CachedHit(0, 0.5, _SCORES))
    + getsizeof(_SCORES)
    + getsizeof(0.5) * (1 + len(RelevanceScores.__struct_fields__))
    + getsizeof(2**31)
)
"""Bytes of a hit with all its components and its row number."""

_NODE_BYTES = 256
"""Bytes of a result's node in an ordered dict, and of a pair."""
