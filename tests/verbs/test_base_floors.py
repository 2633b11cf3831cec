"""Floors of scores, and the total, by one name at every door."""

import asyncio
from fractions import Fraction

import numpy as np
import pytest

from mnemic import Memory
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.repository.found import NEAR_BEST
from tests.support.embedders import WordEmbedder


@pytest.fixture(params=[None, WordEmbedder()], ids=["without", "embedder"])
def memory(request):
    with Memory(":memory:", embedder=request.param) as opened:
        yield opened


@pytest.mark.parametrize("given", [np.float32(0.25), np.float64(0.25), Fraction(1, 4)])
def test_numbers_of_every_kind_are_floors_and_fractions(memory, given):
    stored = memory.add("tea", importance=given)
    assert (stored.importance, type(stored.importance)) == (0.25, float)
    assert memory.search("tea", min_score=given) == memory.search("tea", min_score=0.25)
    assert memory.search("tea", timeout=given * 100)
    assert memory.retrieve("tea", min_score=given).results
    assert memory.contradictions("tea", min_confidence=given) is not None
    with pytest.raises(InvalidArgumentError, match="min_score"):
        memory.search("tea", min_score=given * 5)


@pytest.mark.parametrize("given", [True, "1", np.bool_(1), 1j, np.float32("nan")])
def test_what_is_no_real_number_is_no_floor(memory, given):
    with pytest.raises(InvalidArgumentError, match="min_score must be a number"):
        memory.search("tea", min_score=given)
    with pytest.raises(InvalidEntryError, match="importance must be"):
        memory.add("tea", importance=given)


def test_the_documented_door_takes_numbers_too():
    async def scenario():
        async with AsyncLongTermMemory(":memory:", embedder=WordEmbedder()) as memory:
            return await memory.search_semantic("tea", min_similarity=np.float32(0.5))

    assert asyncio.run(scenario()) == []


def test_the_total_is_asked_for_by_one_name(memory):
    memory.add_many(["tea", "tea and milk", "tea with lemon"])
    for name in ("total", "with_total"):
        found = memory.retrieve("tea", limit=1, **{name: True})
        assert (found.total_matches, found.total_is_lower_bound) == (3, False)
    with pytest.raises(InvalidArgumentError, match="total and with_total are the same option"):
        memory.retrieve("tea", total=True, with_total=True)


@pytest.mark.requirement("C151")
def test_relative_leaves_out_hits_far_below_the_best(memory):
    memory.add_many([f"note {at} about the garden" for at in range(60)])
    memory.add_many(["the passport number is X12", "the passport lies in the drawer"])
    query = "What is the passport number?"
    whole = memory.search(query, limit=100, min_score="auto")
    near = memory.search(query, limit=100, min_score="relative")
    assert 0 < len(near) < len(whole)
    assert [hit.id for hit in near] == [hit.id for hit in whole[: len(near)]]
    assert near[-1].score >= NEAR_BEST * near[0].score > whole[len(near)].score
    for offset in range(len(near) + 2):
        page = memory.search(query, limit=1, offset=offset, min_score="relative")
        assert [hit.id for hit in page] == [hit.id for hit in near[offset : offset + 1]]
    assert not memory.search("xyzzy", min_score="relative")


@pytest.mark.requirement("C151")
def test_a_context_is_filled_only_where_its_tokens_are_named(memory):
    memory.add_many([f"note {at} about the garden" for at in range(60)])
    memory.add("the passport number is X12")
    query = "What is the passport number?"
    near = memory.context(query)
    assert [hit.id for hit in near.hits] == [
        hit.id for hit in memory.search(query, limit=100, min_score="relative")
    ]
    assert near == memory.context(query, min_score="relative")
    filled = memory.context(query, max_tokens=400)
    assert near.tokens < 100
    assert 350 < filled.tokens <= 400
    assert filled == memory.context(query, max_tokens=400, min_score="auto")
    assert near == memory.context(query, max_tokens=400, min_score="relative")
