"""Which memories are in play: filters before the cut, exclusion, floors, totals and limits."""

import numpy as np
import pytest

from mnemic import Memory
from mnemic.index import NativeIndex
from mnemic.model import (
    MemoryFilter,
    MemoryType,
    Ranking,
    Scope,
    Weights,
)
from mnemic.model.ranking import BY_SEARCH_TYPE
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.rows import batch, rank, record, rows_found, wanted

AGENT = Scope("a")
SEARCHES = {name: {"text": "ferry", "ranking": ranking} for name, ranking in BY_SEARCH_TYPE.items()}


def index_of(*records, **options):
    made = NativeIndex(2)
    assert made.apply(batch(records, **options))
    return made


def ferries(count, **fields):
    """Return an index of ferries, each a little farther from the first axis than the one before."""
    records = [record(row, content="a ferry", **fields) for row in range(1, count + 1)]
    return index_of(*records, vectors={row: (1, row / count) for row in range(1, count + 1)})


# Filters come before the cut

FAR = {
    "content": "a chapter on tides and winds, and a word on the ferry",
    "type": MemoryType.PREFERENCE,
    "tags": ["Sea"],
    "importance": 0.9,
    "metadata": {"shelf": 7},
    "created_at": NOON - 30 * DAY,
}


@pytest.mark.requirement("C001")
@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
@pytest.mark.parametrize(
    "only_far",
    [
        MemoryFilter(types=["preference"]),
        MemoryFilter(tags=["Sea"]),
        MemoryFilter(any_tags=["Sea", "Land"]),
        MemoryFilter(min_importance=0.8),
        MemoryFilter(created_before=NOON - DAY),
        MemoryFilter(created_after=NOON - 31 * DAY, created_before=NOON - 29 * DAY),
        MemoryFilter(content_contains="TIDES"),
        {"metadata.shelf": {"gt": 6.5}},
        {"NOT": {"content": "ferry"}},
    ],
)
def test_a_filter_finds_the_far_memory_behind_any_number_of_near_ones(search_type, only_far):
    with Memory(":memory:", embedder=WordEmbedder(), clock=Clock()) as memory:
        memory.add_many([{"content": "ferry"} for _ in range(60)])
        far = memory.add(**FAR)
        nearest = memory.search("ferry", search_type=search_type, limit=1)
        assert nearest[0].content == "ferry"
        for limit in (1, 2, 100):
            found = memory.search("ferry", search_type=search_type, filters=only_far, limit=limit)
            assert [hit.id for hit in found] == [far.id]


@pytest.mark.requirement("C001")
@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
def test_a_search_with_a_filter_leaves_out_what_was_forgotten(search_type):
    with Memory(":memory:", embedder=WordEmbedder(), clock=Clock()) as memory:
        near, far = memory.add("ferry", tags=["sea"]), memory.add("the ferry", tags=["sea"])
        memory.delete(near.id)
        found = memory.search(
            "ferry", search_type=search_type, filters=MemoryFilter(tags=["sea"]), limit=1
        )
        assert [hit.id for hit in found] == [far.id]


# Exclusion


@pytest.mark.requirement("C002")
@pytest.mark.parametrize("embedder", [WordEmbedder(), None])
def test_what_is_similar_to_a_memory_is_as_many_as_wanted_besides_itself(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        stored = memory.add_many(["the ferry"] * 12)
        for limit in (1, 5, 11, 12):
            hits = memory.similar(stored[3].id, limit=limit)
            assert len(hits) == min(limit, 11)
            assert stored[3].id not in {hit.id for hit in hits}
        memory.similar(stored[4].id)
        assert stored[3].id in {hit.id for hit in memory.similar(stored[4].id, limit=12)}


# Limits and totals


@pytest.mark.requirement("C013", "C073")
def test_both_floors_are_inclusive_and_that_of_the_similarity_is_a_cosine():
    made = index_of(*map(record, (1, 2, 3)), vectors={1: (1, 0), 2: (3, 4), 3: (-1, 0)})
    scores = {hit.row: hit.score for hit in rank(made, wanted(AGENT)).ranked}
    exact, above = scores[2], float(np.nextafter(scores[2], 1))
    assert rows_found(made, AGENT, min_similarity=exact) == [1, 2]
    assert rows_found(made, AGENT, min_similarity=above) == [1]
    assert rows_found(made, AGENT, min_score=exact) == [1, 2]
    assert rows_found(made, AGENT, min_score=above) == [1]
    assert rows_found(made, AGENT, min_similarity=0.0) == [1, 2]
    assert rows_found(made, AGENT, min_similarity=-1.0) == [1, 2, 3]


@pytest.mark.requirement("C010")
def test_the_limit_of_the_call_is_the_one_that_counts_up_to_any_number():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many([f"ferry {number}" for number in range(130)])
        one = MemoryFilter(limit=1, offset=129)
        assert len(memory.search("ferry", filters=one, limit=120)) == 120
        assert len(memory.recent(filters=one, limit=1_000_000)) == 130


# Everything is scored, not a pool of the nearest


@pytest.mark.requirement("C012")
@pytest.mark.parametrize("count", [100, 3000])
def test_what_matters_wins_from_behind_thousands_that_are_nearer(count):
    near = [record(row, content="a ferry", importance=0.0) for row in range(1, count)]
    far = record(count, content="a ferry and much else that nobody asked for", importance=1.0)
    vectors = {row: (1.0, row / count / 10) for row in range(1, count)} | {count: (0.3, 1.0)}
    made = index_of(*near, far, vectors=vectors)
    for similarity in (0.0, 0.5, 1.0):
        ranking = Ranking(similarity=similarity, weights=Weights(relevance=0.2, importance=0.8))
        options = {"text": "ferry", "ranking": ranking}
        assert rows_found(made, AGENT, 1, **options) == [count]
        assert rows_found(made, AGENT, count, **options)[0] == count


@pytest.mark.requirement("C076")
@pytest.mark.parametrize("asked", SEARCHES)
def test_a_user_of_few_memories_gets_them_all_beside_users_of_many(asked):
    others = [record(row, "bob", content="a boat") for row in range(1, 2001)]
    own = [record(row, "alice", content="a ferry far away") for row in range(2001, 2006)]
    vectors = dict.fromkeys(range(1, 2001), (1.0, 0.0)) | dict.fromkeys(range(2001, 2006), (0, 1))
    made = index_of(*others, *own, vectors=vectors)
    assert rows_found(made, Scope("a", "alice"), 10, **SEARCHES[asked]) == [*range(2001, 2006)]


# Neighbours


def turns(*sessions, content="quiet"):
    """Return records of turns in order, the first of which is about a ferry."""
    return [
        record(
            row,
            "alice",
            session=session,
            position=row,
            content="a ferry" if row == 1 else content,
            metadata={"n": row},
        )
        for row, session in enumerate(sessions, start=1)
    ]


# The rest


@pytest.mark.requirement("C167")
def test_no_answer_is_approximate_and_hybrid_finds_what_only_one_half_knows():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(["quay " * 30 + f"noise{number}" for number in range(300)])
        memory.add("xylophone " + " ".join(f"filler{number}" for number in range(40)))
        found = memory.search("xylophone", limit=1)
        assert found[0].content.startswith("xylophone")
