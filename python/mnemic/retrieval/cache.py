"""Cache of retrieval results by everything that determines them."""

from collections.abc import Hashable
from datetime import datetime, timedelta
from operator import attrgetter
from sys import getsizeof
from typing import NamedTuple
from uuid import UUID

from mnemic.model import Expression, MemoryQuery, MemorySortOrder, RelevanceScores, Scope
from mnemic.model.filter import canonical, references
from mnemic.model.marks import UNMARKED, Marks
from mnemic.reporting.description import hidden
from mnemic.threads.single_flight import Bounds, SingleFlightCache

_BY_ACCESSES = (MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING)


class UserScope(NamedTuple):
    """The agent and user of a cached result."""

    agent_id: str
    user_id: str | None
    all_users: bool


class Key(NamedTuple):
    """Everything that determines a result.

    Attributes:
        scope: Agent and user.
        revision: Number of the last change of their memories.
        question: Everything else. Equal questions have equal results.
    """

    scope: UserScope
    revision: int
    question: Hashable

    def __repr__(self) -> str:
        return f"Key({self.scope!r}, {self.revision}, {hidden(self.question)})"


def key_of(scope: Scope, query: MemoryQuery, expression: Expression, revision: int) -> Key:
    """Return the key of a query's result, given its parsed filter."""
    question = (
        scope.project_id,
        scope.session_id,
        canonical(expression),
        frozenset(query.exclude_ids),
        *_deciding(query),
        query.offset,
        query.order,
        query.includes_forgotten,
    )
    return Key(UserScope(scope.agent_id, scope.user_id, scope.all_users), revision, question)


def depends_on_accesses(query: MemoryQuery, expression: Expression) -> bool:
    """Return whether accesses determine the memories of a result, or their order.

    Accesses are not changes and in no revision. If they only weigh in the score, a result may be as
    old as its time to live.
    """
    return query.order in _BY_ACCESSES or references(expression, "access_count", "last_accessed_at")


_deciding = attrgetter(
    *(
        name
        for name in MemoryQuery.__struct_fields__
        if name not in ("filters", "exclude_ids", "use_cache", "cache_ttl", "sort_by")
    )
)
"""Returns the fields of a query that determine its result by themselves."""


CACHED_ANSWERS = 1024
"""Maximum number of cached results of one user."""

CACHED_BYTES = 64 * 1024 * 1024
"""Maximum bytes of all cached results."""

SCOPE_SHARE = 8
"""One user's part is at most 1/n of all bytes, so that so many full parts fit."""

ANSWER_SHARE = 4
"""One result is at most 1/n of a user's bytes; a larger one is not cached."""


class CachedHit(NamedTuple):
    """The cached part of one memory of a result.

    Attributes:
        row: The memory's row in the store.
        score: From 0 to 1.
        scores: Parts of the score.
        chunk: Which of its vectors is nearest to the query's, where it has several.
    """

    row: int
    score: float
    scores: RelevanceScores
    chunk: int | None = None


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


def answer_cache(
    size: int = CACHED_ANSWERS, size_bytes: int = CACHED_BYTES
) -> SingleFlightCache[Key, CachedAnswer]:
    """Return a cache of complete results, each user's in a part of its own.

    A result of a later revision ends those of earlier ones.

    Args:
        size: Maximum number of results of one user.
        size_bytes: Maximum bytes of all results.
    """
    of_user = size_bytes // SCOPE_SHARE
    return SingleFlightCache(
        Bounds(size, of_user, of_user // ANSWER_SHARE, all_bytes=size_bytes),
        bytes_of,
        owner_of=attrgetter("scope"),
        is_kept=attrgetter("is_complete"),
    )


def bytes_of(key: Key, answer: CachedAnswer) -> int:
    """Return the estimated bytes of a cached result with its key."""
    parts = (answer, answer.hits, answer.computed_at, answer.lifetime)
    own = sum(map(getsizeof, parts)) + _HIT_BYTES * len(answer.hits)
    return own + _bytes_of((answer.expanded, key.question)) + _NODE_BYTES


def _bytes_of(value: object) -> int:
    if isinstance(value, tuple | frozenset):
        return getsizeof(value) + sum(map(_bytes_of, value)) if value else 0
    if isinstance(value, str):  # not `getsizeof`, which grows once a text was encoded
        return _TEXT_BYTES + len(value) * (1 if value.isascii() else 4)
    return getsizeof(value) if isinstance(value, UUID) else 0  # others are shared or small


_SCORES = RelevanceScores(**dict.fromkeys(RelevanceScores.__struct_fields__, 0.5))
_HIT_BYTES = (
    getsizeof(CachedHit(0, 0.5, _SCORES))
    + getsizeof(_SCORES)
    + getsizeof(0.5) * (1 + len(RelevanceScores.__struct_fields__))
    + getsizeof(2**31)
)
"""Bytes of a hit with all its components and its row number."""

_TEXT_BYTES = getsizeof("")
_NODE_BYTES = 256
"""Bytes of a result's node in an ordered dict, and of a pair."""
