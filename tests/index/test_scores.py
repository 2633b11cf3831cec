"""What scores are made of: presets, curves of age, access and salience, and their range."""

import math
from random import Random

import numpy as np
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
from tests.support.rows import DIM, NOW, batch, moment, rank, record, wanted

AGENT = Scope("a")
DAYS = 86_400_000_000
WORDS = ("ferry", "tea", "quay", "noon", "sofa", "red", "the", "where", "?")


def some_rows(count):
    """Return the facts and the vectors of rows; the same in every run."""
    random = Random(count)  # noqa: S311 - repeatable, not secret
    facts = {
        row: {
            "content": " ".join(random.choices(WORDS, k=random.randint(1, 6))),
            "importance": random.choice((0.0, 0.25, 0.5, 1.0)),
            "created_at": NOW - random.randint(-5, 500) * DAYS,
            "access_count": random.choice((0, 1, 9, 100, 999, 10**6, 2**63 - 1)),
            "session": random.choice((None, "s", "t")),
            "speaker": random.choice((None, "Ada", "Bo")),
            "last_accessed_at": moment(NOW - random.randint(0, 30) * DAYS),
        }
        for row in range(1, count + 1)
    }
    angles = {row: random.uniform(0, math.tau) for row in facts}
    vectors = {row: (math.cos(angle), math.sin(angle)) for row, angle in angles.items()}
    return facts, vectors


def index_of(facts, vectors):
    made = NativeIndex(DIM)
    records = [record(row, **of_row) for row, of_row in facts.items()]
    assert made.apply(batch(records, vectors=vectors))
    return made


FACTS, VECTORS = some_rows(200)
INDEX = index_of(FACTS, VECTORS)
UNITS = {row: np.array(vector) for row, vector in VECTORS.items()}


def ranked(ranking, *, text="where is Ada's ferry", query=(1, 0), index=INDEX, **options):
    given = {"limit": 1000, "text": text, "query": query, "ranking": ranking, **options}
    return rank(index, wanted(AGENT, **given)).ranked


def age(row):
    return max(0.0, (NOW - FACTS[row]["created_at"]) / DAYS)


def halved_since_access(row):
    last = FACTS[row]["last_accessed_at"] - moment(NOW)
    return 2.0 ** (last / DAY / 7)


def access_of(row):
    return min(1.0, math.log10(FACTS[row]["access_count"] + 1) / 3)


def recency_of(row):
    return max(0.0, 1 - age(row) / 365)


# The documented presets


@pytest.mark.requirement("C013", "C060")
def test_a_ranking_is_by_similarity_with_the_documented_salience_unless_it_says_otherwise():
    assert Ranking().similarity == 1.0
    assert Ranking().weights == Weights(relevance=1.0)
    assert Ranking().salience == Salience(recency=0.25, frequency=0.20, importance=0.25)


@pytest.mark.requirement("C139", "C016", "C017")
def test_the_scores_of_weighted_relevance_are_its_documented_formula():
    found = ranked(WEIGHTED_RELEVANCE)
    assert len(found) == len(FACTS)
    for hit in found:
        expected = (
            0.6 * max(0.0, float(UNITS[hit.row][0]))
            + 0.2 * recency_of(hit.row)
            + 0.15 * FACTS[hit.row]["importance"]
            + 0.05 * access_of(hit.row)
        )
        assert hit.score == pytest.approx(expected, abs=1e-6)


def salience_of(row):
    frequency = min(1.0, math.log(FACTS[row]["access_count"] + 1) / math.log(101))
    importance = FACTS[row]["importance"]
    return (0.25 * halved_since_access(row) + 0.2 * frequency + 0.25 * importance) / 0.7


@pytest.mark.requirement("C060", "C139")
def test_the_scores_of_recall_count_the_similarity_once():
    found = ranked(RECALL)
    for hit in found:
        expected = 0.6 * max(0.0, float(UNITS[hit.row][0])) + 0.4 * salience_of(hit.row)
        assert hit.score == pytest.approx(expected, abs=1e-6)
        assert hit.components["salience"] == pytest.approx(salience_of(hit.row), abs=1e-9)


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
    with pytest.raises(DimensionMismatchError):
        ranked(ranking, query=query)


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
