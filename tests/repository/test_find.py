"""What `search`, `similar`, `recent` and `important` promise."""

import math
from datetime import timedelta

import pytest

from mnemic.errors import EmbedderRequiredError, FilterError, InvalidArgumentError
from mnemic.model import (
    KEYWORD,
    SEMANTIC,
    MemoryFilter,
    MemorySortOrder,
    Ranking,
    Recency,
    SessionTerms,
    Weights,
)
from tests.support.clock import DAY, NOON
from tests.support.searches import CALLS, SCOPED_CALLS, TEXTS, cosine, found, names, scores


@pytest.fixture
def bare(open_memory):
    return open_memory(embedder=None)


# Kinds of search


def test_a_semantic_search_scores_by_cosine_alone(memory):
    memory.add_many(TEXTS)
    results = memory.search("the red sofa", search_type="semantic")
    cosines = {text: cosine(text, "the red sofa") for text in TEXTS}
    assert scores(results) == pytest.approx(cosines, abs=1e-6)
    assert found(results) == sorted(TEXTS, key=cosines.get, reverse=True)
    assert [hit.components for hit in results] == [{"similarity": hit.score} for hit in results]
    assert results == memory.search("the red sofa", ranking=SEMANTIC)


def test_a_search_by_keyword_finds_what_has_a_word_of_the_query_and_nothing_else(memory):
    memory.add_many([*TEXTS, "sofas"])
    results = memory.search("sofa", search_type="keyword")
    assert sorted(found(results)) == sorted([TEXTS[0], TEXTS[2], "sofas"])
    for hit in results:
        assert hit.components.keys() == {"keyword"}
        assert 0 < hit.components["keyword"] <= 1
    assert found(memory.search("xylophone", search_type="keyword")) == []
    assert results == memory.search("sofa", ranking=KEYWORD)


def test_a_hybrid_search_is_the_default_and_tells_both_of_its_parts(memory):
    memory.add_many(TEXTS)
    results = memory.search("sofa")
    assert results == memory.search("sofa", search_type="hybrid")
    assert found(results)[2] == "ferries leave at noon"
    assert results[0].score > results[1].score > results[2].score
    assert [hit.components.keys() for hit in results] == [{"similarity", "keyword"}] * 3
    assert all(0 <= part <= 1 for hit in results for part in hit.components.values())
    assert results[2].components["keyword"] == 0


# Without an embedder


def test_without_an_embedder_a_hybrid_search_is_one_by_keyword(bare):
    bare.add_many(TEXTS)
    results = bare.search("sofa")
    assert results == bare.search("sofa", search_type="keyword")
    assert sorted(found(results)) == sorted([TEXTS[0], TEXTS[2]])
    assert [hit.components.keys() for hit in results] == [{"keyword"}] * 2


@pytest.mark.parametrize("options", [{"search_type": "semantic"}, {"ranking": Ranking()}])
def test_without_an_embedder_a_search_by_meaning_says_what_is_missing(bare, options):
    bare.add("tea")
    with pytest.raises(EmbedderRequiredError, match="opened with embedder=None"):
        bare.search("tea", **options)


def test_without_an_embedder_the_store_is_read_at_the_first_search(bare):
    bare.add("a cup of tea")
    index = bare._repository._indexes.active.own.native
    assert (index.seq, len(index)) == (None, 0)
    assert found(bare.search("tea")) == ["a cup of tea"]
    kept = bare.add("tea at noon")
    assert index.seq == 2
    assert sorted(found(bare.search("tea"))) == ["a cup of tea", "tea at noon"]
    bare.delete(kept.id)
    assert found(bare.search("tea")) == ["a cup of tea"]


def test_without_an_embedder_the_memory_ranks_by_worth_and_likeness_of_words(bare):
    kept = bare.add("a red sofa", importance=0.25)
    bare.add("the red chair", importance=0.75)
    bare.add("ferries", importance=0.5)
    assert found(bare.similar(kept.id)) == ["the red chair"]
    assert len(bare.recent()) == 3
    assert found(bare.important()) == ["the red chair", "ferries", "a red sofa"]


# Weights


def test_scores_are_weighted_means_of_what_the_weights_name(memory):
    memory.add("tea at noon", importance=0.25)
    memory.add("milk", importance=0.75)
    found_by = memory.search("tea", search_type="semantic", ranking={"importance": 0.5})
    assert scores(found_by) == {"milk": 0.75, "tea at noon": 0.25}
    weights = {"relevance": 0.75, "importance": 0.25}
    for given in (weights, Weights(**weights)):
        both = memory.search("tea", search_type="semantic", ranking=given, explain=True)
        for hit in both:
            parts = hit.components
            assert parts.keys() == {"similarity", "relevance", "importance"}
            assert hit.score == pytest.approx(
                0.75 * parts["relevance"] + 0.25 * parts["importance"], abs=1e-6
            )


def test_what_is_not_explained_is_only_similarity_and_keyword(memory):
    memory.add_many(TEXTS)
    weights = {"relevance": 0.5, "recency": 0.5, "importance": 0.1, "access": 0.1, "salience": 0.1}
    (hit,) = memory.search("sofa", limit=1, ranking=weights)
    (explained,) = memory.search("sofa", limit=1, ranking=weights, explain=True)
    assert hit.components.keys() == {"similarity", "keyword"}
    assert explained.components.keys() >= {"similarity", "keyword", *weights}
    assert hit.components.items() <= explained.components.items()
    assert (hit.id, hit.score) == (explained.id, explained.score)
    total = sum(weight * explained.components[name] for name, weight in weights.items())
    assert hit.score == pytest.approx(total / sum(weights.values()), abs=1e-6)


# Filters and times


@pytest.fixture
def week(memory):
    """Return a memory with one memory of each of seven days, 0 the newest."""
    for age in range(7):
        memory.add(
            f"tea of day {age}",
            created_at=NOON - age * DAY,
            importance=age / 10,
            tags=["even"] if age % 2 == 0 else [],
        )
    return memory


def ages(results):
    return sorted(int(hit.content.split()[-1]) for hit in results)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"since": NOON - 2 * DAY}, [0, 1, 2]),
        ({"since": "2026-04-29T12:00:00Z"}, [0, 1, 2]),
        ({"since": "2026-04-29T12:00:00.000001"}, [0, 1]),
        ({"since": "2026-04-29"}, [0, 1, 2]),
        ({"until": NOON - 4 * DAY}, [5, 6]),
        ({"until": (NOON - 4 * DAY + timedelta(microseconds=1)).isoformat()}, [4, 5, 6]),
        ({"since": NOON - 3 * DAY, "until": NOON - DAY}, [2, 3]),
        ({"since": NOON + DAY}, []),
        ({"filters": {"tags": {"any": ["even"]}}}, [0, 2, 4, 6]),
        ({"filters": {"tags": {"any": ["even"]}}, "since": NOON - 2 * DAY}, [0, 2]),
        ({"filters": {"created_at": {"lt": NOON}}, "until": NOON - DAY}, [2, 3, 4, 5, 6]),
        ({"filters": {}}, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_only_what_filters_and_times_let_through_is_found(week, call, options, expected):
    others = expected if call != "similar" else [age for age in expected if age != 6]
    assert ages(CALLS[call](week, **options)) == others
    assert len(CALLS[call](week, limit=1, **options)) == min(1, len(others))


def test_limit_offset_and_order_of_a_filter_are_not_used(week):
    wanted = MemoryFilter(
        tags=["even"], limit=1, offset=1, sort_by=MemorySortOrder.CREATED_ASCENDING
    )
    assert ages(week.search("tea", filters=wanted)) == [0, 2, 4, 6]
    assert found(week.recent(filters=wanted)) == [f"tea of day {age}" for age in (0, 2, 4, 6)]


# Users


@pytest.mark.parametrize("call", SCOPED_CALLS)
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, ["nobody"]),
        ({"user_id": "alice"}, ["alice", "alice at home"]),
        ({"user_id": "alice", "project_id": "p"}, ["alice"]),
        ({"user_id": "alice", "session_id": "s"}, ["alice"]),
        ({"user_id": "bob", "session_id": "s"}, []),
        ({"all_users": True}, ["alice", "alice at home", "bob", "nobody"]),
        ({"all_users": True, "project_id": "p"}, ["alice", "bob"]),
        ({"all_users": True, "session_id": "s"}, ["alice"]),
        ({"all_users": False}, ["nobody"]),
    ],
)
def test_users_are_scopes_and_projects_and_sessions_are_filters(shared, call, scope, expected):
    scope = dict(scope)
    view = shared.scoped(project_id=scope.pop("project_id", None))
    assert names(SCOPED_CALLS[call](view, **scope)) == expected


@pytest.mark.parametrize("call", SCOPED_CALLS)
def test_only_a_view_without_a_user_is_widened_to_all_users(shared, call):
    search = SCOPED_CALLS[call]
    assert names(search(shared.scoped(project_id="p"), all_users=True)) == ["alice", "bob"]
    with pytest.raises(InvalidArgumentError, match="not widened to all users"):
        search(shared.scoped(user_id="alice"), all_users=True)
    with pytest.raises(InvalidArgumentError, match="all_users=True does not go with user_id"):
        search(shared, user_id="alice", all_users=True)
    with pytest.raises(InvalidArgumentError, match="all_users"):
        search(shared, all_users="yes")


# Arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search_type": "fuzzy"}, "search_type must be one of hybrid, semantic, keyword"),
        ({"search_type": None}, "search_type must be one of"),
        ({"search_type": ["hybrid"]}, "search_type must be one of"),
        ({"ranking": {"relevanse": 1}}, "no weight 'relevanse', .* did you mean 'relevance'"),
        ({"ranking": {}}, "the weights add up to 0"),
        ({"ranking": {"relevance": 0}}, "the weights add up to 0"),
        ({"ranking": {"recency": -0.1}}, "recency must be a number from 0 to 1"),
        ({"ranking": {"recency": 1.5}}, "recency must be a number from 0 to 1"),
        ({"ranking": {"recency": math.nan}}, "recency must be a number from 0 to 1"),
        ({"ranking": {"recency": True}}, "recency must be a number from 0 to 1"),
        ({"ranking": {"recency": "1"}}, "recency must be a number from 0 to 1"),
        ({"ranking": [1, 2]}, "ranking must be a mnemic.Ranking"),
        ({"ranking": "hybrid"}, "ranking must be a mnemic.Ranking"),
        ({"ranking": Ranking(), "search_type": "keyword"}, "leave one of them out"),
        ({"explain": "yes"}, "explain"),
        ({"all_users": 1}, "all_users"),
        ({"limit": -1}, "limit must be an int of at least 0"),
        ({"user_id": ""}, "user_id"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(memory, options, message):
    memory.add("tea")
    with pytest.raises(InvalidArgumentError, match=message):
        memory.search("tea", **options)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "yesterday"}, "since: found 'yesterday' .*ISO 8601"),
        ({"until": 5}, "until: found 5 .*a datetime"),
        ({"filters": {"colour": "red"}}, "colour: found field"),
        ({"filters": {"importance": {"near": 1}}}, "importance.near: found operator"),
        ({"filters": "red"}, "filter: found a str of 3 characters"),
    ],
)
def test_filters_and_times_that_cannot_be_understood_are_refused(week, call, options, message):
    with pytest.raises(FilterError, match=message):
        CALLS[call](week, **options)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("limit", [-1, 1.5, True, None])
def test_a_limit_that_is_no_count_is_refused(week, call, limit):
    with pytest.raises(InvalidArgumentError, match="limit must be an int of at least 0"):
        CALLS[call](week, limit=limit)


@pytest.mark.parametrize("name", ["similarity", "days", "share"])
@pytest.mark.parametrize("given", [-0.1, math.nan, math.inf, "1", None])
def test_a_ranking_refuses_numbers_outside_their_range(name, given):
    makes = {
        "similarity": lambda: Ranking(similarity=given),
        "days": lambda: Recency(days=given),
        "share": lambda: SessionTerms(previous=given),
    }
    with pytest.raises(InvalidArgumentError, match="must be a"):
        makes[name]()
