"""Any answer of the retrieval service is that of a naive twin, whatever is asked and changed."""

import asyncio
import itertools
import math
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mnemic import AsyncMemory, MemoryEntry, MemoryFilter, MemorySortOrder, MemoryType
from mnemic.compat import AsyncRetrievalService
from mnemic.model import MemoryQuery
from tests.support.clock import DAY, NOON, Clock
from tests.support.retrieval import FixedEmbedder
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("R185", "R186", "R187", "R188", "R189", "C008", "C009")

PROFILE = examples(60, least=40, suppress_health_check=[HealthCheck.too_slow])
TOLERANCE = 2e-6
"""Vectors are float32."""

QUERY, CONTEXT = np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])
WEIGHTS = ("similarity", "recency", "importance", "access", "context")
PARTS = ("similarity", "recency", "importance", "access_frequency", "context_boost")
COSINES = [0.0, 0.2, 0.31, 0.5, 0.6, 0.8, 1.0]


@dataclass
class Known:
    """What the twin knows of a memory."""

    entry: MemoryEntry
    cosines: tuple[float, float]
    is_forgotten: bool = False

    @property
    def vector(self):
        query, context = self.cosines
        rest = math.sqrt(max(0.0, 1 - query**2 - context**2))
        vector = np.array([query, context, rest, 0])
        return vector / np.linalg.norm(vector)


FILTERS = {
    "none": (None, lambda _: True),
    "everything": ({}, lambda _: True),
    "important": ({"importance": {"gte": 0.5}}, lambda one: one.importance >= 0.5),
    "tagged": ({"tags": {"any": ["a"]}}, lambda one: "a" in one.tags),
    "not tagged": ({"NOT": {"tags": {"any": ["a"]}}}, lambda one: "a" not in one.tags),
    "read": ({"access_count": {"gt": 0}}, lambda one: one.access_count > 0),
    "either": (
        {"OR": [{"type": "preference"}, {"importance": 1.0}]},
        lambda one: one.type is MemoryType.PREFERENCE or one.importance == 1.0,
    ),
    "recent": (
        MemoryFilter(created_after=NOON - 100 * DAY),
        lambda one: one.created_at >= NOON - 100 * DAY,
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
    """A question, whose order the filter may name in place of the query."""

    query: MemoryQuery
    named_filter: str
    order: MemorySortOrder | None
    user: str | None

    @property
    def own_order(self):
        """The order that stands in place of the ranking."""
        return self.order if self.query.query is None else None

    @property
    def offset(self):
        return getattr(FILTERS[self.named_filter][0], "offset", 0)

    @property
    def includes_forgotten(self):
        return getattr(FILTERS[self.named_filter][0], "include_forgotten", False)


@dataclass
class Scored:
    """A memory with its score, and what that is made of."""

    memory: Known
    parts: tuple[float | None, ...]
    score: float


def scored(memory, query):
    """Return the weighted mean of the parts in play."""
    entry, has_query = memory.entry, query.query is not None
    has_context = query.context_boost is not None
    similarity = float(memory.vector @ QUERY) if has_query else 0.0
    context = max(0.0, float(memory.vector @ CONTEXT)) if has_context else 0.0
    recency = min(1.0, max(0.0, 1 - (NOON - entry.created_at) / DAY / 365))
    access = min(1.0, math.log10(entry.access_count + 1) / 3)
    parts = (similarity, recency, entry.importance, access, context)
    in_play = (has_query, True, True, True, has_context)
    named = [getattr(query, f"{name}_weight") for name in WEIGHTS]
    weights = [weight * on for weight, on in zip(named, in_play, strict=True)]
    score = sum(weight * part for weight, part in zip(weights, parts, strict=True)) / sum(weights)
    shown = (
        part if weight > 0 else None for weight, part in zip(weights[1:], parts[1:], strict=True)
    )
    return Scored(memory, (similarity if has_query else None, *shown), score)


def answered(memories, asked, floor):
    """Return all that is an answer, in order, before offset and limit."""
    query, lets_through = asked.query, FILTERS[asked.named_filter][1]
    every = [
        scored(one, query)
        for one in memories
        if one.entry.user_id == asked.user
        and lets_through(one.entry)
        and one.entry.id not in query.exclude_ids
        and (asked.includes_forgotten or not one.is_forgotten)
    ]
    least = query.min_relevance
    if query.query is not None:
        assume(all(abs(one.parts[0] - floor) > 1e-5 for one in every))
        every = [one for one in every if one.parts[0] >= floor]
        least = 0.5 if least is None else least
    if least is not None and least > 0:
        assume(all(abs(one.score - least) > 1e-5 for one in every))
        every = [one for one in every if one.score >= least]
    newest = sorted(every, key=lambda one: one.memory.entry.id.bytes)
    newest.sort(key=lambda one: one.memory.entry.created_at, reverse=True)
    return sorted(newest, key=lambda one: place(one, asked.own_order))


def place(one, order):
    entry = one.memory.entry
    accessed = entry.last_accessed_at
    return {
        None: -round(one.score, 9),
        MemorySortOrder.CREATED_DESCENDING: NOON - entry.created_at,
        MemorySortOrder.CREATED_ASCENDING: entry.created_at,
        MemorySortOrder.IMPORTANCE_DESCENDING: -entry.importance,
        MemorySortOrder.ACCESSED_DESCENDING: timedelta.max if accessed is None else NOON - accessed,
        MemorySortOrder.ACCESS_COUNT_DESCENDING: -entry.access_count,
    }[order]


@st.composite
def memories(draw, number):
    query = draw(st.sampled_from(COSINES))
    context = draw(st.sampled_from([0.0, 0.3, 0.6, 1.0, -0.6]))
    cosines = query, context if query**2 + context**2 <= 1 else 0.0
    accesses = draw(st.sampled_from([0, 0, 1, 9, 2000]))
    days = draw(st.sampled_from([0.0, 1.0, 30.5, 99.0, 200.0, 365.0, 800.0, -5.0]))
    entry = MemoryEntry(
        id=UUID(int=draw(st.integers(0, 50)) * 1000 + number),
        agent_id="aide",
        content=f"cosines {cosines[0]} {cosines[1]}",
        created_at=NOON - days * DAY,
        importance=draw(st.sampled_from([0.0, 0.5, 0.5, 0.75, 1.0])),
        access_count=accesses,
        last_accessed_at=NOON - draw(st.sampled_from([0.5, 3.0, 50.0])) * DAY if accesses else None,
        tags=draw(st.sampled_from([(), ("a",), ("a", "b"), ("c",)])),
        type=draw(st.sampled_from([MemoryType.FACT, MemoryType.FACT, MemoryType.PREFERENCE])),
        user_id=draw(st.sampled_from([None, None, None, "alice"])),
    )
    return Known(entry, cosines)


@st.composite
def questions(draw, known, order):
    has_query, has_context = draw(st.booleans()), draw(st.booleans())
    name = draw(st.sampled_from([name for name in FILTERS if has_query or name != "none"]))
    filters = FILTERS[name][0]
    of_filter = isinstance(filters, MemoryFilter) and draw(st.booleans())
    weights = [draw(st.sampled_from([0.0, 0.05, 0.2, 0.6, 1.0])) for _ in WEIGHTS]
    if not any([weights[0] * has_query, *weights[1:4], weights[4] * has_context]):
        weights = [0.6, 0.2, 0.15, 0.05, 0.1]
    query = MemoryQuery(
        query="query" if has_query else None,
        context_boost="context" if has_context else None,
        filters=replace(filters, sort_by=order) if of_filter else filters,
        sort_by=None if of_filter else order,
        min_relevance=draw(st.sampled_from([None, 0, 0.0, 0.3141, 0.4321, 0.5678, 1])),
        limit=draw(st.integers(1, 12)),
        exclude_ids=draw(st.lists(st.sampled_from([one.entry.id for one in known]), max_size=2)),
        **{f"{name}_weight": weight for name, weight in zip(WEIGHTS, weights, strict=True)},
    )
    return Asked(query, name, order, draw(st.sampled_from([None, None, "alice"])))


async def check(service, known, asked, floor):
    """Compare an answer, whole and cut, fresh and kept, with that of the twin."""
    expected = answered(known, asked, floor)
    cut = expected[asked.offset : asked.offset + asked.query.limit]
    queries = replace(asked.query, use_cache=False), asked.query, asked.query
    results = [await service.retrieve(query, user_id=asked.user) for query in queries]
    for result in results:
        assert result.total_matches == len(expected)
        assert len(result) == len(cut)
        ranks = [one.rank for one in result]
        assert ranks == list(range(asked.offset + 1, asked.offset + 1 + len(cut)))
        for actual, wanted in zip(result, cut, strict=True):
            assert actual.relevance_score == approx(wanted.score)
        if has_clear_order(expected, asked):
            assert [one.entry.id for one in result] == [one.memory.entry.id for one in cut]
        by_id = {one.memory.entry.id: one for one in expected}
        assert len({one.entry.id for one in result}) == len(cut)
        for actual in result:
            wanted = by_id[actual.entry.id]
            assert actual.relevance_score == approx(wanted.score)
            assert [getattr(actual.scores, name) for name in PARTS] == [
                None if part is None else approx(max(0.0, part)) for part in wanted.parts
            ]
    assert results[1].results == results[2].results == results[0].results
    if asked.named_filter == "read" or asked.own_order in BY_ACCESSES:
        assert not results[2].from_cache
    elif not any(one.memory.is_forgotten for one in cut):
        assert results[2].from_cache


def approx(number):
    return pytest.approx(number, abs=TOLERANCE)


def has_clear_order(expected, asked):
    """Return whether rounding cannot decide: scores are equal by the same inputs, or far apart."""
    return asked.own_order is not None or all(
        abs(before.score - after.score) > TOLERANCE or before.parts == after.parts
        for before, after in itertools.pairwise(expected)
    )


BY_ACCESSES = (MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING)
CHANGES = ("forget", "restore", "update", "add", "touch nothing")


@PROFILE
@given(st.data())
@pytest.mark.requirement(
    *("C001", "C002", "C011", "R161", "C026", "R131", "R183", "R184", "R190", "R211"),
    *("R218", "R219", "R210"),
)
def test_answers_are_those_of_the_twin_before_and_after_changes(data):
    count = data.draw(st.integers(1, 10))
    known = [data.draw(memories(number)) for number in range(count)]
    asked = [data.draw(questions(known, order)) for order in (None, None, *MemorySortOrder)]
    floor = data.draw(st.sampled_from([None, 0.0, 0.55]))
    changes = data.draw(st.lists(st.sampled_from(CHANGES), max_size=3))
    new = data.draw(memories(count))

    async def main():
        embedder = FixedEmbedder({one.entry.content: tuple(one.vector) for one in [*known, new]})
        async with AsyncMemory(
            ":memory:", "aide", embedder=embedder, clock=Clock(), track_access=False
        ) as memory:
            service = AsyncRetrievalService(memory, similarity_floor=floor, track_access=False)
            await memory.add_many([one.entry for one in known])
            for change in [None, *changes]:
                if change is not None:
                    await changed(memory, known, change, new)
                for question in asked:
                    await check(service, known, question, 0.3 if floor is None else floor)

    asyncio.run(main())


async def changed(memory, known, change, new):
    one = known[0]
    entry, scope = one.entry, {"user_id": one.entry.user_id}
    if change == "forget" and not one.is_forgotten:
        await memory.delete(entry.id, **scope)
        one.is_forgotten = True
    elif change == "restore" and one.is_forgotten:
        assert await memory.restore(entry.id, **scope)
        one.is_forgotten = False
    elif change == "update" and not one.is_forgotten:
        one.entry = replace(entry, importance=1.0 - entry.importance)
        await memory.update(entry.id, importance=one.entry.importance, **scope)
    elif change == "add" and new not in known:
        await memory.add_many([new.entry])
        known.append(new)


@PROFILE
@given(st.data())
def test_similar_memories_are_those_of_the_twin(data):
    known = [data.draw(memories(number)) for number in range(data.draw(st.integers(1, 10)))]
    excluded = data.draw(st.lists(st.sampled_from([one.entry.id for one in known]), max_size=2))
    limit = data.draw(st.integers(1, 12))
    reference, entry = known[0], known[0].entry

    async def main():
        embedder = FixedEmbedder({one.entry.content: tuple(one.vector) for one in known})
        async with AsyncMemory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
            await memory.add_many([one.entry for one in known])
            embedder.texts.clear()
            similar = await AsyncRetrievalService(memory, track_access=False).find_similar(
                str(entry.id), limit, exclude_ids=excluded, user_id=entry.user_id
            )
            assert embedder.texts == []
            return similar

    hits = asyncio.run(main())
    cosines = {
        one.entry.id: max(0.0, float(one.vector @ reference.vector))
        for one in known
        if one.entry.user_id == entry.user_id and one.entry.id not in {entry.id, *excluded}
    }
    assert [hit.rank for hit in hits] == list(range(1, min(limit, len(cosines)) + 1))
    best = sorted(cosines.values(), reverse=True)[:limit]
    assert [hit.similarity for hit in hits] == [approx(cosine) for cosine in best]
    for hit in hits:
        assert hit.similarity == approx(cosines[hit.entry.id])
