"""Any answer of the retrieval service is that of a naive twin, whatever is asked and changed."""

import asyncio
import itertools
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemic import AsyncMemory, MemoryEntry, MemoryFilter, MemorySortOrder, MemoryType
from mnemic.compat import AsyncRetrievalService
from mnemic.model import MemoryQuery
from tests.support.clock import DAY, NOON, Clock
from tests.support.retrieval import FixedEmbedder
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("R185", "R186", "R187", "R188", "R189", "C008", "C009")

PROFILE = examples(60)
TOLERANCE = 2e-6
"""Vectors are float32."""

QUERY, CONTEXT = np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])
COSINES = [0.0, 0.2, 0.31, 0.5, 0.6, 0.8, 1.0]


@dataclass
class Known:
    """What the twin knows of a memory."""

    id: UUID
    cosines: tuple[float, float]
    days: float
    importance: float
    accesses: int
    accessed_days: float | None
    tags: tuple[str, ...]
    type: MemoryType
    user: str | None
    is_forgotten: bool = field(default=False)

    @property
    def created_at(self) -> datetime:
        return NOON - self.days * DAY

    @property
    def text(self):
        return f"cosines {self.cosines[0]} {self.cosines[1]}"

    @property
    def vector(self):
        query, context = self.cosines
        rest = math.sqrt(max(0.0, 1 - query**2 - context**2))
        vector = np.array([query, context, rest, 0])
        return vector / np.linalg.norm(vector)

    @property
    def record(self):
        return MemoryEntry(
            id=self.id,
            agent_id="aide",
            content=self.text,
            created_at=self.created_at,
            importance=self.importance,
            access_count=self.accesses,
            last_accessed_at=None
            if self.accessed_days is None
            else NOON - self.accessed_days * DAY,
            tags=self.tags,
            type=self.type,
            user_id=self.user,
        )


FILTERS = {
    "none": (None, lambda _: True),
    "everything": ({}, lambda _: True),
    "important": ({"importance": {"gte": 0.5}}, lambda one: one.importance >= 0.5),
    "tagged": ({"tags": {"any": ["a"]}}, lambda one: "a" in one.tags),
    "not tagged": ({"NOT": {"tags": {"any": ["a"]}}}, lambda one: "a" not in one.tags),
    "read": ({"access_count": {"gt": 0}}, lambda one: one.accesses > 0),
    "either": (
        {"OR": [{"type": "preference"}, {"importance": 1.0}]},
        lambda one: one.type is MemoryType.PREFERENCE or one.importance == 1.0,
    ),
    "recent": (
        MemoryFilter(created_after=NOON - 100 * DAY),
        lambda one: one.days <= 100,
    ),
    "typed": (MemoryFilter(types=(MemoryType.FACT,), limit=1), lambda one: one.type == 0),
    "both": (
        MemoryFilter(tags=("a", "b"), min_importance=0.5),
        lambda one: {"a", "b"} <= set(one.tags) and one.importance >= 0.5,
    ),
    "forgotten": (MemoryFilter(include_forgotten=True), lambda _: True),
    "offset": (MemoryFilter(offset=2), lambda _: True),
    "forgotten offset": (MemoryFilter(offset=1, include_forgotten=True), lambda _: True),
}


@dataclass
class Asked:
    """A question in plain terms."""

    has_query: bool
    has_context: bool
    named_filter: str
    weights: tuple[float, float, float, float, float]
    min_relevance: float | None
    limit: int
    excluded: tuple[UUID, ...]
    order: MemorySortOrder | None
    user: str | None

    @property
    def offset(self):
        return getattr(FILTERS[self.named_filter][0], "offset", 0)

    @property
    def includes_forgotten(self):
        return getattr(FILTERS[self.named_filter][0], "include_forgotten", False)

    def query(self, **changes):
        similarity, recency, importance, access, context = self.weights
        fields = {
            "query": "query" if self.has_query else None,
            "context_boost": "context" if self.has_context else None,
            "filters": FILTERS[self.named_filter][0],
            "similarity_weight": similarity,
            "recency_weight": recency,
            "importance_weight": importance,
            "access_weight": access,
            "context_weight": context,
            "min_relevance": self.min_relevance,
            "limit": self.limit,
            "exclude_ids": self.excluded,
            "sort_by": self.order,
        }
        return MemoryQuery(**{**fields, **changes})


@dataclass
class Scored:
    """A memory with its score, and what that is made of."""

    memory: Known
    parts: tuple[float | None, ...]
    score: float


def scored(memory, asked):
    """Return the weighted mean of the parts in play."""
    similarity = float(memory.vector @ QUERY) if asked.has_query else 0.0
    context = max(0.0, float(memory.vector @ CONTEXT)) if asked.has_context else 0.0
    recency = min(1.0, max(0.0, 1 - memory.days / 365))
    access = min(1.0, math.log10(memory.accesses + 1) / 3)
    parts = (similarity, recency, memory.importance, access, context)
    in_play = (asked.has_query, True, True, True, asked.has_context)
    weights = [weight * on for weight, on in zip(asked.weights, in_play, strict=True)]
    score = sum(weight * part for weight, part in zip(weights, parts, strict=True)) / sum(weights)
    shown = (
        part if weight > 0 else None for weight, part in zip(weights[1:], parts[1:], strict=True)
    )
    shown_similarity = similarity if asked.has_query else None
    return Scored(memory, (shown_similarity, *shown), score)  # None where it is not in play


def answered(memories, asked, floor):
    """Return all that is an answer, in order, before offset and limit."""
    lets_through = FILTERS[asked.named_filter][1]
    every = [
        scored(one, asked)
        for one in memories
        if one.user == asked.user
        and lets_through(one)
        and one.id not in asked.excluded
        and (asked.includes_forgotten or not one.is_forgotten)
    ]
    least = asked.min_relevance
    if asked.has_query:
        assume(all(abs(one.parts[0] - floor) > 1e-5 for one in every))
        every = [one for one in every if one.parts[0] >= floor]
        least = 0.5 if least is None else least
    if least is not None and least > 0:
        assume(all(abs(one.score - least) > 1e-5 for one in every))
        every = [one for one in every if one.score >= least]
    by_tie = sorted(every, key=lambda one: (one.memory.days, one.memory.id.bytes))
    return sorted(by_tie, key=lambda one: place(one, asked))


def place(one, asked):
    memory = one.memory
    accessed = math.inf if memory.accessed_days is None else memory.accessed_days
    if asked.has_query or asked.order is None:
        return -round(one.score, 9)
    return {
        MemorySortOrder.CREATED_DESCENDING: memory.days,
        MemorySortOrder.CREATED_ASCENDING: -memory.days,
        MemorySortOrder.IMPORTANCE_DESCENDING: -memory.importance,
        MemorySortOrder.ACCESSED_DESCENDING: accessed,
        MemorySortOrder.ACCESS_COUNT_DESCENDING: -memory.accesses,
    }[asked.order]


@st.composite
def memories(draw, number):
    query = draw(st.sampled_from(COSINES))
    context = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    accesses = draw(st.sampled_from([0, 0, 1, 9, 2000]))
    return Known(
        id=UUID(int=draw(st.integers(0, 50)) * 1000 + number),
        cosines=(query, context if query**2 + context**2 <= 1 else 0.0),
        days=draw(st.sampled_from([0.0, 1.0, 30.5, 99.0, 200.0, 365.0, 800.0, -5.0])),
        importance=draw(st.sampled_from([0.0, 0.5, 0.5, 0.75, 1.0])),
        accesses=accesses,
        accessed_days=draw(st.sampled_from([0.5, 3.0, 50.0])) if accesses else None,
        tags=draw(st.sampled_from([(), ("a",), ("a", "b"), ("c",)])),
        type=draw(st.sampled_from([MemoryType.FACT, MemoryType.FACT, MemoryType.PREFERENCE])),
        user=draw(st.sampled_from([None, None, None, "alice"])),
    )


@st.composite
def questions(draw, known):
    has_query = draw(st.booleans())
    names = [name for name in FILTERS if has_query or name != "none"]
    has_context = draw(st.booleans())
    weights = tuple(draw(st.sampled_from([0.0, 0.05, 0.2, 0.6, 1.0])) for _ in range(5))
    in_play = [weights[0] * has_query, *weights[1:4], weights[4] * has_context]
    if not any(in_play):
        weights = (0.6, 0.2, 0.15, 0.05, 0.1)
    excluded = draw(st.lists(st.sampled_from([one.id for one in known]), max_size=2))
    return Asked(
        has_query=has_query,
        has_context=has_context,
        named_filter=draw(st.sampled_from(names)),
        weights=weights,
        min_relevance=draw(st.sampled_from([None, 0, 0.0, 0.3141, 0.4321, 0.5678, 1])),
        limit=draw(st.integers(1, 12)),
        excluded=tuple(excluded),
        order=draw(st.sampled_from([None, None, *MemorySortOrder])),
        user=draw(st.sampled_from([None, None, "alice"])),
    )


async def check(service, known, asked, floor):
    """Compare an answer, whole and cut, fresh and kept, with that of the twin."""
    expected = answered(known, asked, floor)
    cut = expected[asked.offset : asked.offset + asked.limit]
    results = [
        await service.retrieve(asked.query(use_cache=False), user_id=asked.user),
        await service.retrieve(asked.query(), user_id=asked.user),
        await service.retrieve(asked.query(), user_id=asked.user),
    ]
    for result in results:
        assert result.total_matches == len(expected)
        assert len(result) == len(cut)
        ranks = [one.rank for one in result]
        assert ranks == list(range(asked.offset + 1, asked.offset + 1 + len(cut)))
        for actual, wanted in zip(result, cut, strict=True):
            assert actual.relevance_score == approx(wanted.score)
        if has_clear_order(expected, asked):
            assert [one.entry.id for one in result] == [one.memory.id for one in cut]
        by_id = {one.memory.id: one for one in expected}
        assert len({one.entry.id for one in result}) == len(cut)
        for actual in result:
            wanted = by_id[actual.entry.id]
            assert actual.relevance_score == approx(wanted.score)
            scores = actual.scores
            assert [
                scores.similarity,
                scores.recency,
                scores.importance,
                scores.access_frequency,
                scores.context_boost,
            ] == [None if part is None else approx(max(0.0, part)) for part in wanted.parts]
    assert results[1].results == results[2].results == results[0].results
    by_accesses = asked.named_filter == "read" or (
        not asked.has_query and asked.order in BY_ACCESSES
    )
    if by_accesses:
        assert not results[2].from_cache
    elif not any(one.memory.is_forgotten for one in cut):
        assert results[2].from_cache


def approx(number):
    return pytest.approx(number, abs=TOLERANCE)


def has_clear_order(expected, asked):
    """Return whether rounding cannot decide: scores are equal by the same inputs, or far apart."""
    if asked.order is not None and not asked.has_query:
        return True
    return all(
        abs(before.score - after.score) > TOLERANCE or before.parts == after.parts
        for before, after in itertools.pairwise(expected)
    )


BY_ACCESSES = (MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING)
CHANGES = ("forget", "restore", "update", "add", "touch nothing")


@PROFILE
@given(st.data())
def test_answers_are_those_of_the_twin_before_and_after_changes(data):
    count = data.draw(st.integers(1, 10))
    known = [data.draw(memories(number)) for number in range(count)]
    asked = [data.draw(questions(known)) for _ in range(3)]
    floor = data.draw(st.sampled_from([None, 0.0, 0.55]))
    changes = data.draw(st.lists(st.sampled_from(CHANGES), max_size=3))
    new = data.draw(memories(count))

    async def main():
        embedder = FixedEmbedder({one.text: tuple(one.vector) for one in [*known, new]})
        async with AsyncMemory(
            ":memory:", "aide", embedder=embedder, clock=Clock(), track_access=False
        ) as memory:
            service = AsyncRetrievalService(memory, similarity_floor=floor, track_access=False)
            await memory.add_many([one.record for one in known])
            for change in [None, *changes]:
                if change is not None:
                    await changed(memory, known, change, new)
                for question in asked:
                    await check(service, known, question, 0.3 if floor is None else floor)

    asyncio.run(main())


async def changed(memory, known, change, new):
    one = known[0]
    scope = {"user_id": one.user}
    if change == "forget" and not one.is_forgotten:
        await memory.delete(one.id, **scope)
        one.is_forgotten = True
    elif change == "restore" and one.is_forgotten:
        assert await memory.restore(one.id, **scope)
        one.is_forgotten = False
    elif change == "update" and not one.is_forgotten:
        one.importance = 1.0 - one.importance
        await memory.update(one.id, importance=one.importance, **scope)
    elif change == "add" and new not in known:
        await memory.add_many([new.record])
        known.append(new)


@PROFILE
@given(st.data())
def test_similar_memories_are_those_of_the_twin(data):
    known = [data.draw(memories(number)) for number in range(data.draw(st.integers(1, 10)))]
    excluded = data.draw(st.lists(st.sampled_from([one.id for one in known]), max_size=2))
    limit = data.draw(st.integers(1, 12))
    reference = known[0]

    async def main():
        embedder = FixedEmbedder({one.text: tuple(one.vector) for one in known})
        async with AsyncMemory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
            await memory.add_many([one.record for one in known])
            return await AsyncRetrievalService(memory, track_access=False).find_similar(
                reference.id, limit, exclude_ids=excluded, user_id=reference.user
            )

    hits = asyncio.run(main())
    cosines = {
        one.id: float(one.vector @ reference.vector)
        for one in known
        if one.user == reference.user and one.id not in {reference.id, *excluded}
    }
    assert [hit.rank for hit in hits] == list(range(1, min(limit, len(cosines)) + 1))
    best = sorted(cosines.values(), reverse=True)[:limit]
    assert [hit.similarity for hit in hits] == [approx(cosine) for cosine in best]
    for hit in hits:
        assert hit.similarity == approx(cosines[hit.entry.id])


@PROFILE
@given(st.integers(1, 400), st.integers(0, 400), st.floats(0, 1))
def test_a_kept_answer_is_the_head_of_a_larger_one(limit, offset, importance):
    asked = MemoryQuery(
        filters=MemoryFilter(offset=offset), limit=limit, importance_weight=max(0.01, importance)
    )
    assert asked.offset == offset
    whole = SHARED.ask(
        MemoryQuery(filters={}, limit=1000, importance_weight=asked.importance_weight)
    )
    part = SHARED.ask(asked)
    assert part.results == whole.results[offset : offset + limit]
    assert part.total_matches == whole.total_matches == 300


class Shared:
    """A memory of three hundred, made when it is first asked, for questions that change nothing."""

    def __init__(self):
        self.service = None

    def ask(self, query):
        if self.service is None:
            memory = AsyncMemory(
                ":memory:", "aide", embedder=None, clock=Clock(), track_access=False
            )
            asyncio.run(
                memory.add_many(
                    [
                        MemoryEntry(
                            id=UUID(int=number + 1),
                            agent_id="aide",
                            content=f"memory {number}",
                            created_at=NOON - timedelta(days=(number * 37) % 400),
                            importance=(number * 7 % 11) / 10,
                        )
                        for number in range(300)
                    ]
                )
            )
            self.service = AsyncRetrievalService(memory, track_access=False)
        return asyncio.run(self.service.retrieve(query))


SHARED = Shared()
