"""The scores of a retrieval."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import EmbedderRequiredError
from mnemic.model import MemoryQuery, Recency, RecencyCurve
from mnemic.model.ranking import SEARCH_TYPES
from tests.support.clock import DAY, NOON, Clock
from tests.support.recall import NamedSimilarities
from tests.support.retrieval import (
    EVERYTHING,
    QUERY,
    Adding,
    FixedEmbedder,
    found,
    record,
    served,
    store_near,
    words,
)
from tests.support.tiers import examples

WEIGHTS = ("similarity", "recency", "importance", "access", "context")
PARTS = ("relevance", "recency", "importance", "access_frequency", "context_boost")


@pytest.mark.requirement("C016", "C140")
@served()
async def test_the_curve_of_recency_is_that_of_the_query(memory, service):
    await memory.add_many([record("newer", days=7), record("older", days=14)])
    recency = Recency(RecencyCurve.CREATED_HALF_LIFE, 7)
    result = await service.retrieve(MemoryQuery(filters={}, recency=recency))
    assert [one.scores.recency for one in result] == pytest.approx([0.5, 0.25])


@pytest.mark.requirement("C024")
@served(expander=Adding("more"))
async def test_the_nearer_of_query_and_expansion_counts(memory, service):
    embedder = memory.embedder
    embedder.vectors |= {
        "query more": (0, 0, 1, 0),
        "asked": (0.9, 0, math.sqrt(0.19), 0),
        "added": (0, 0.6, 0.8, 0),
    }
    await memory.add_many([record("asked"), record("added")])
    plain = await service.retrieve(QUERY)
    embedder.texts.clear()
    both = await service.retrieve(MemoryQuery(query="query", expand_query=True))
    assert found(plain) == ["asked"]
    assert found(both) == ["asked", "added"]
    assert [one.scores.similarity for one in both] == pytest.approx([0.9, 0.8], abs=1e-6)
    assert both[0] == plain[0]  # nothing that the plain query finds is worth less
    assert embedder.texts == ["query more"]  # the vector of the plain query is kept


@pytest.mark.requirement("C151")
@served(memory={"embedder": FixedEmbedder(floor=0.2)})
async def test_an_embedder_with_a_floor_of_its_own_sets_the_floor_alone(memory, service):
    await store_near(memory, 0.21, 0.19, days=365, importance=0.0)
    assert found(await service.retrieve(QUERY)) == ["near 0.21"]  # scores .126
    named = MemoryQuery(query="query", min_relevance=0.13)
    assert found(await service.retrieve(named)) == []
    given = AsyncRetrievalService(memory, similarity_floor=0.1)
    assert found(await given.retrieve(QUERY)) == ["near 0.21", "near 0.19"]


@served(memory=words())
async def test_a_fused_query_is_embedded_once(memory, service):
    await memory.add("the red sofa")
    texts = memory.embedder.texts
    for query, expected in (
        (MemoryQuery(query="sofa", search_type="hybrid"), ["sofa"]),
        (
            MemoryQuery(query="tea", search_type="hybrid", context_boost="noon"),
            ["tea", "noon"],
        ),
        (MemoryQuery(query="tea", search_type="keyword", context_boost="boat"), ["boat"]),
        (MemoryQuery(query="tea", search_type="hybrid", context_boost="noon"), []),  # kept
        (MemoryQuery(query="tea", search_type="keyword"), []),
    ):
        texts.clear()
        await service.retrieve(query)
        assert texts == expected


@served(memory={"embedder": None})
async def test_words_are_searched_without_floors_and_without_an_embedder(memory, service):
    await memory.add_many(["a red sofa", "ferries leave at noon"])
    query = MemoryQuery(query="sofa", search_type="keyword")
    (only,) = await service.retrieve(query)
    assert only.entry.content == "a red sofa"
    assert only.scores.keyword > 0
    assert only.scores.similarity is None
    for refused in ({"query": "sofa"}, {"filters": {}, "context_boost": "x"}):
        with pytest.raises(EmbedderRequiredError):
            await service.retrieve(MemoryQuery(**refused))
    with pytest.raises(EmbedderRequiredError):
        await service.find_similar(only.entry.id)
    assert len(await service.retrieve(EVERYTHING)) == 2
    assert (await service.expand_query("sofa")).original == "sofa"


@st.composite
def stocked(draw):
    """Return memories that are near to a query, or far from it, by meaning and by words."""
    said = st.builds(
        "{} {} ~{}".format,
        st.sampled_from(["tea", "green tea", "coffee"]),
        st.sampled_from(["in Oslo", "at home"]),
        st.sampled_from([-1, -0.4, 0, 0.3, 0.9]),
    )
    return [
        {
            "content": draw(said),
            "importance": draw(st.sampled_from([0.0, 0.3, 1.0])),
            "session_id": draw(st.sampled_from([None, "s"])),
            "created_at": NOON - draw(st.integers(0, 500)) * DAY,
        }
        for _ in range(draw(st.integers(1, 6)))
    ]


@examples(80)
@given(
    stocked(),
    st.sampled_from(SEARCH_TYPES),
    st.lists(st.sampled_from([0.0, 0.05, 0.6, 1.0]), min_size=5, max_size=5),
    st.sampled_from(["green tea?", "what of ~-1", "Oslo ~0.4"]),
    st.sampled_from([None, "coffee ~0.5"]),
)
@pytest.mark.requirement("R169")
def test_the_parts_of_a_score_by_the_weights_of_the_query_add_up_to_it(
    memories, search_type, weights, query, context
):
    if not any(weights[: 4 if context is None else 5]):
        weights = [0.6, 0.2, 0.15, 0.05, 0.1]
    named = {f"{name}_weight": weight for name, weight in zip(WEIGHTS, weights, strict=True)}
    asked = MemoryQuery(
        query=query, context_boost=context, search_type=search_type, min_relevance=0, **named
    )
    with Memory(":memory:", embedder=NamedSimilarities(), clock=Clock()) as memory:
        memory.add_many(memories)
        memory.retrieve(asked)  # the first accesses
        for found in (memory.retrieve(asked), memory.retrieve(asked)):
            for hit in found:  # none where the only match is negative
                parts = [getattr(hit.scores, name) for name in PARTS]
                weighted = [(w, p) for w, p in zip(weights, parts, strict=True) if p is not None]
                total = math.fsum(weight for weight, _ in weighted)
                whole = math.fsum(weight * part for weight, part in weighted) / total
                assert hit.score == pytest.approx(whole, abs=1e-9)
