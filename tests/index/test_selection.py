"""Which memories are in play: filters before the cut, exclusion, floors, totals and limits."""

from uuid import UUID

import msgspec
import numpy as np
import pytest

from mnemic import Memory
from mnemic.index import NativeIndex
from mnemic.model import (
    HYBRID,
    KEYWORD,
    SEMANTIC,
    KeywordFields,
    MemoryFilter,
    MemoryType,
    Ranking,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.model.ranking import BY_SEARCH_TYPE, MOST_IMPORTANT, NEWEST
from mnemic.model.rows import RowBatch
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.rankings import RECALL, WEIGHTED_RELEVANCE
from tests.support.rows import batch, rank, record, rows_found, wanted

AGENT = Scope("a")
SEARCHES = {name: {"text": "ferry", "ranking": ranking} for name, ranking in BY_SEARCH_TYPE.items()}
WITHOUT_QUERY = {"text": None, "query": None}
RANKINGS = {
    **SEARCHES,
    "weighted": {"text": "ferry", "ranking": WEIGHTED_RELEVANCE},
    "recall": {"text": "ferry", "ranking": RECALL},
    "newest": {**WITHOUT_QUERY, "ranking": NEWEST},
    "important": {**WITHOUT_QUERY, "ranking": MOST_IMPORTANT},
    "weighted without a query": {**WITHOUT_QUERY, "ranking": WEIGHTED_RELEVANCE},
}
"""What is asked of an index, by name; those with a query ask for the first axis too."""


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
@pytest.mark.parametrize("asked", RANKINGS)
def test_what_is_excluded_never_takes_the_place_of_another(asked):
    made = ferries(20)
    order = rows_found(made, AGENT, **RANKINGS[asked])
    assert len(order) == 20
    excluded = [UUID(int=row).bytes for row in order[:15]]
    for limit in (1, 5, 6):
        options = {"exclude": excluded, "limit": limit, **RANKINGS[asked]}
        assert rows_found(made, AGENT, **options) == order[15 : 15 + limit]
    answer = rank(made, wanted(AGENT, exclude=excluded, with_total=True, **RANKINGS[asked]))
    assert (len(answer.ranked), answer.total) == (5, 5)


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


@pytest.mark.requirement("C011")
@pytest.mark.parametrize("asked", RANKINGS)
@pytest.mark.parametrize("limit", [0, 1, 7, 19, 20, 100])
def test_a_total_counts_all_that_match_whatever_the_limit(asked, limit):
    made = ferries(20)
    expected = rank(made, wanted(AGENT, limit, **RANKINGS[asked]))
    answer = rank(made, wanted(AGENT, limit, with_total=True, **RANKINGS[asked]))
    assert (expected.total, answer.total) == (None, 20)
    assert answer.ranked == expected.ranked
    assert len(answer.ranked) == min(limit, 20)


@pytest.mark.requirement("C011", "C013")
def test_a_total_counts_only_what_passes_filters_and_both_floors():
    records = [
        record(row, content="a ferry", importance=row / 10, metadata={"n": row})
        for row in range(1, 11)
    ]
    cosines = {row: row / 10 for row in range(1, 11)}
    made = index_of(
        *records, vectors={row: (near, (1 - near**2) ** 0.5) for row, near in cosines.items()}
    )
    ranking = Ranking(weights=Weights(relevance=0.5, importance=0.5))
    with_filter = {"filters": None, "ranking": ranking, "text": "ferry", "with_total": True}
    for options, rows in [
        ({}, range(1, 11)),
        ({"min_similarity": 0.45}, range(5, 11)),
        ({"min_score": 0.65}, range(7, 11)),
        ({"min_similarity": 0.45, "min_score": 0.25}, range(5, 11)),
        ({"min_similarity": 0.25, "min_score": 0.65}, range(7, 11)),
        ({"min_similarity": 1.1}, ()),
    ]:
        answer = rank(made, wanted(AGENT, 2, **{**with_filter, **options}))
        assert answer.total == len(rows)
        assert [hit.row for hit in answer.ranked] == sorted(rows, reverse=True)[:2]


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


# One answer of several queries and of long memories


@pytest.mark.requirement("C106", "T001", "T002")
def test_of_several_queries_the_nearest_counts_and_the_order_is_by_score():
    vectors = {1: (1, 0), 2: (0, 1), 3: (0.8, 0.6), 4: (0.28, 0.96), 5: (-1, 0.1)}
    made = index_of(*map(record, vectors), vectors=vectors)
    queries = np.array([(0.6, 0.8), (1, 0)], dtype=np.float32)
    answers = [
        rank(made, msgspec.structs.replace(wanted(AGENT, limit), vectors=queries[order]))
        for order in ([0, 1], [1, 0])
        for limit in (5, 3)
    ]
    nearest = {row: float(np.max(queries @ unit(vector))) for row, vector in vectors.items()}
    for answer, limit in zip(answers, (5, 3, 5, 3), strict=True):
        assert [hit.row for hit in answer.ranked] == sorted(vectors, key=nearest.get, reverse=True)[
            :limit
        ]
        assert {hit.row: hit.score for hit in answer.ranked} == pytest.approx(
            {hit.row: nearest[hit.row] for hit in answer.ranked}, abs=1e-6
        )


def unit(vector):
    return np.array(vector) / np.linalg.norm(vector)


@pytest.mark.requirement("C165")
@pytest.mark.parametrize("ranking", [SEMANTIC, HYBRID, WEIGHTED_RELEVANCE])
def test_a_long_memory_is_as_similar_as_the_nearest_of_its_parts_and_found_once(
    ranking,
):
    rows = [1, 1, 1, 2]
    parts = np.array([(0, 1), (1, 0), (0.6, 0.8), (0.8, 0.6)], dtype=np.float32)
    made = NativeIndex(2)
    assert made.apply(RowBatch(None, 1, [record(1), record(2)], rows, parts, []))
    for query, first, cosine in [((1, 0), 1, 1.0), ((0.8, 0.6), 2, 1.0), ((0, 1), 1, 1.0)]:
        found = rank(made, wanted(AGENT, query=query, ranking=ranking, text="x")).ranked
        assert [hit.row for hit in found] == [first, 3 - first]
        assert found[0].components["similarity"] == pytest.approx(cosine, abs=1e-6)
        head = rank(made, wanted(AGENT, 1, query=query, ranking=ranking, text="x")).ranked
        assert head == found[:1]
    assert made.unembedded() == []


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


@pytest.mark.requirement("C156")
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_neighbour_lifts_by_its_share_and_the_sum_is_a_mean(share):
    made = index_of(*turns("s", "s", "s"), vectors={1: (1, 0), 2: (0.6, 0.8), 3: (0, 1)})
    ranking = Ranking(session=SessionTerms(previous=share, next=share))
    found = rank(made, wanted(Scope("a", "alice"), text="x", ranking=ranking)).ranked
    expected = {
        1: (1.0 + share * 0.6) / (1 + share),
        2: (0.6 + share * 1.0) / (1 + share),
        3: (0.0 + share * 0.6) / (1 + share),
    }
    assert {hit.row: hit.score for hit in found} == pytest.approx(expected, abs=1e-6)


@pytest.mark.requirement("C156")
def test_only_neighbours_that_the_filter_lets_through_lift():
    made = index_of(*turns("s", "s", "t"), vectors={})
    ranking = Ranking(similarity=0.0, keywords=KeywordFields(), session=SessionTerms(previous=0.5))
    options = {"text": "ferry", "ranking": ranking, "query": None}
    alice = Scope("a", "alice")
    assert rows_found(made, alice, **options) == [1, 2]
    with_first = rank(made, wanted(alice, **options)).ranked
    where = parse_filter({"metadata.n": {"gte": 2}})
    assert rows_found(made, alice, filters=where, **options) == []
    assert rows_found(made, alice, exclude=[UUID(int=1).bytes], **options) == []
    assert rows_found(made, Scope("a", "alice", None, "t"), **options) == []
    where = parse_filter({"metadata.n": {"lte": 2}})
    assert rank(made, wanted(alice, filters=where, **options)).ranked == with_first


# Statistics of keywords


@pytest.mark.requirement("C198")
def test_the_rarity_of_a_word_is_that_of_the_users_memories():
    own = [record(1, "alice", content="tea ferry"), record(2, "alice", content="milk ferry")]
    alice, options = Scope("a", "alice"), {"text": "tea milk", "query": None}
    ranking = Ranking(similarity=0.0)
    alone = index_of(*own, vectors={})
    others = [record(row, "bob", content="tea ferry") for row in range(3, 20)]
    beside = index_of(*own, *others, vectors={})
    for_alice = [
        rank(index, wanted(alice, ranking=ranking, **options)).ranked for index in (alone, beside)
    ]
    assert for_alice[0] == for_alice[1]
    assert for_alice[0][0].score == for_alice[0][1].score
    everybody = Scope("a", all_users=True)
    found = rank(beside, wanted(everybody, ranking=ranking, **options)).ranked
    assert found[0].row == 2
    assert found[0].score > found[1].score


@pytest.mark.requirement("C157")
def test_a_filter_changes_no_score_of_what_it_lets_through():
    records = [record(row, content="tea " * (row % 3 + 1), importance=row / 20) for row in range(9)]
    made = index_of(*records, vectors={})
    options = {"text": "tea", "query": None, "ranking": KEYWORD}
    scores = {hit.row: hit.score for hit in rank(made, wanted(AGENT, **options)).ranked}
    where = parse_filter({"importance": {"gte": 0.2}})
    some = {
        hit.row: hit.score for hit in rank(made, wanted(AGENT, filters=where, **options)).ranked
    }
    assert len(some) == 5
    assert some.items() <= scores.items()


@pytest.mark.requirement("C182")
def test_what_was_forgotten_leaves_the_statistics_to_the_last_bit():
    kept = [record(row, content=f"tea {'milk ' * (row % 4)}sugar{row % 3}") for row in range(30)]
    removed = [record(row, content="milk sugar1 sugar2 tea " * 5) for row in range(30, 60)]
    options = {"text": "sugar1 milk tea", "query": None, "ranking": KEYWORD}
    expected = rank(index_of(*kept, vectors={}), wanted(AGENT, **options)).ranked
    grown = index_of(*removed, *kept[::-1], vectors={})
    assert rank(grown, wanted(AGENT, **options)).ranked != expected
    assert grown.apply(batch(since=1, seq=2, removed=list(range(30, 60)), vectors={}))
    assert rank(grown, wanted(AGENT, **options)).ranked == expected


# The rest


@pytest.mark.requirement("C167")
def test_no_answer_is_approximate_and_hybrid_finds_what_only_one_half_knows():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(["quay " * 30 + f"noise{number}" for number in range(300)])
        memory.add("xylophone " + " ".join(f"filler{number}" for number in range(40)))
        found = memory.search("xylophone", limit=1)
        assert found[0].content.startswith("xylophone")
