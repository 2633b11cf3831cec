"""What scores are made of: presets, curves of age, access and salience, and their range."""

import math

import pytest

from mnemic import Memory
from mnemic.errors import DimensionMismatchError, InvalidArgumentError
from mnemic.index import NativeIndex
from mnemic.model import (
    HYBRID,
    SEMANTIC,
    MemoryType,
    Ranking,
    Recency,
    RecencyCurve,
    Salience,
    Scope,
    Weights,
)
from mnemic.model.ranking import BY_SEARCH_TYPE, NEWEST
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.rankings import RECALL, WEIGHTED_RELEVANCE
from tests.support.rows import DIM, batch, rank, record, wanted

AGENT = Scope("a")


# The documented presets


@pytest.mark.requirement("C013", "C060")
def test_a_ranking_is_by_similarity_with_the_documented_salience_unless_it_says_otherwise():
    assert Ranking().similarity == 1.0
    assert Ranking().weights == Weights(relevance=1.0)
    assert Ranking().salience == Salience(recency=0.25, frequency=0.20, importance=0.25)


# Curves of age


@pytest.mark.requirement("C016")
def test_what_was_merely_changed_is_no_newer():
    clock = Clock()
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as memory:
        kept = memory.add("tea", created_at=NOON - 73 * DAY)
        memory.update(kept.id, importance=1.0, content="green tea")
        (hit,) = memory.search("tea", search_type="semantic", ranking={"recency": 1})
        assert hit.entry.updated_at == NOON
        assert hit.score == pytest.approx(0.8)


@pytest.mark.requirement("C016", "C140")
def test_the_default_curve_is_the_line_over_a_year():
    assert Recency() == Recency(RecencyCurve.CREATED_LINEAR, 365)
    assert WEIGHTED_RELEVANCE.recency == HYBRID.recency == Recency()
    assert NEWEST.recency.curve is RecencyCurve.NEWEST_RANK


# Wrong weights and vectors


@pytest.mark.requirement("C014")
@pytest.mark.parametrize("weights", [{}, {"relevance": 0.0}, {"recency": 0, "access": 0.0}])
def test_weights_that_add_up_to_nothing_are_a_value_error(weights):
    with pytest.raises(ValueError, match="the weights add up to 0"):
        Weights.parse(weights)
    with pytest.raises(InvalidArgumentError, match="the weights add up to 0"):
        Weights(**{"relevance": 0.0, **weights})


@pytest.mark.requirement("C014", "C015")
@pytest.mark.parametrize("name", Weights.__struct_fields__)
@pytest.mark.parametrize("given", [-1e-9, 1.0000001, math.nan, math.inf, "1", None, True])
def test_every_weight_is_a_number_from_zero_to_one(name, given):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be a number from 0 to 1"):
        Weights(**{name: given})


@pytest.mark.requirement("C073", "T015")
@pytest.mark.parametrize("ranking", [SEMANTIC, HYBRID, RECALL])
@pytest.mark.parametrize("query", [(1,), (1, 0, 0), (1, 0, 0, 0, 0)])
def test_a_query_of_another_dimension_is_refused(ranking, query):
    index = NativeIndex(DIM)
    assert index.apply(batch([record(1)], vectors={1: (1, 0)}))
    with pytest.raises(DimensionMismatchError):
        rank(index, wanted(AGENT, text="tea", query=query, ranking=ranking))


@pytest.mark.requirement("C138")
def test_both_sets_of_types_are_spelled_from_the_one_that_is_stored():
    assert {each.kind for each in MemoryType} == {"SEMANTIC", "EPISODIC", "PROCEDURAL"}
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many([{"content": "tea", "type": each} for each in MemoryType])
        for each in MemoryType:
            for spelled in (each, int(each), each.name, each.name.lower()):
                for search_type in BY_SEARCH_TYPE:
                    found = memory.search("tea", search_type=search_type, filters={"type": spelled})
                    assert [hit.entry.type for hit in found] == [each]
