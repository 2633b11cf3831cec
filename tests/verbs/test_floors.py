"""Floors of scores, and the total, by one name at every door."""

import asyncio
from fractions import Fraction

import numpy as np
import pytest

from mnemic import Memory
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import (
    InvalidArgumentError,
    InvalidEntryError,
)
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
