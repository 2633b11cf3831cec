"""The requirements of a query's fields."""

import math
from datetime import timedelta
from uuid import uuid4

import pytest

from mnemic import MemoryFilter
from mnemic.compat import ContextWindow
from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import MemoryQuery
from tests.support.retrieval import QUERY, found, record, serve

FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.requirement("R148", "C015")
@pytest.mark.parametrize("query", [None, "", "   ", "\n\t"])
def test_a_query_needs_a_text_or_a_filter(query):
    with pytest.raises(ValueError, match=r"^Query must have either Query or Filters$") as refused:
        MemoryQuery(query=query)
    assert isinstance(refused.value, InvalidArgumentError)


@pytest.mark.requirement(
    "R150", "R151", "R153", "R154", "R155", "R156", "R157", "R158", "R159", "R160", "C008", "R161"
)
@pytest.mark.parametrize(
    ("field", "default"),
    [
        ("filters", None),
        ("limit", 10),
        ("similarity_weight", 0.6),
        ("recency_weight", 0.2),
        ("importance_weight", 0.15),
        ("access_weight", 0.05),
        ("expand_query", False),
        ("use_cache", True),
        ("cache_ttl", FIVE_MINUTES),
        ("context_boost", None),
        ("context_weight", 0.1),
        ("exclude_ids", ()),
        ("search_type", "semantic"),
        ("sort_by", None),
    ],
)
def test_fields_of_a_query_have_the_documented_defaults(field, default):
    value = getattr(MemoryQuery(query="x"), field)
    assert value == default
    assert type(value) is type(default)


@pytest.mark.requirement("R149")
def test_a_query_has_no_text_unless_it_is_given():
    assert MemoryQuery(filters={}).query is None
    assert MemoryQuery(filters={}, query=" \n").query is None
    assert MemoryQuery(query=" kept as it is ").query == " kept as it is "


@pytest.mark.requirement("R152")
def test_a_score_below_a_half_is_no_answer_unless_another_floor_is_given():
    async def scenario(memory, service):
        near = memory.embedder.near
        # .6·s + .2·1 + .15·.5 + .05·0: a half where s is .375
        await memory.add_many([record(near("above", 0.376)), record(near("below", 0.374))])
        assert found(await service.retrieve(QUERY)) == ["above"]
        lower = MemoryQuery(query="query", min_relevance=0.49)
        assert found(await service.retrieve(lower)) == ["above", "below"]
        assert found(await service.retrieve(MemoryQuery(query="query", min_relevance=0.51))) == []

    serve(scenario)


@pytest.mark.requirement("R162")
def test_a_semantic_query_is_made_of_a_text_and_a_limit():
    assert MemoryQuery.semantic("x") == MemoryQuery(query="x", limit=10)
    assert MemoryQuery.semantic("x", 3) == MemoryQuery(query="x", limit=3)


@pytest.mark.requirement("R163")
def test_a_filtered_query_is_made_of_a_filter_and_a_limit_of_a_hundred():
    wanted = MemoryFilter(tags=("a",))
    assert MemoryQuery.filtered(wanted) == MemoryQuery(filters=wanted, limit=100)
    assert MemoryQuery.filtered(wanted, 3) == MemoryQuery(filters=wanted, limit=3)


@pytest.mark.requirement("R207")
def test_a_query_may_have_ten_thousand_characters_and_no_more():
    for field in ("query", "context_boost"):
        assert MemoryQuery(**{"filters": {}, field: "ø" * 10_000})
        with pytest.raises(InvalidArgumentError, match="10000 characters"):
            MemoryQuery(**{"filters": {}, field: "ø" * 10_001})


@pytest.mark.requirement("R207")
def test_expansion_takes_ten_thousand_characters_and_no_more():
    async def scenario(_, service):
        assert (await service.expand_query("x" * 10_000)).original == "x" * 10_000
        for wrong in ("x" * 10_001, "", "  ", None, 3, "a lone \ud800", "a\0b"):
            with pytest.raises(InvalidArgumentError):
                await service.expand_query(wrong)

    serve(scenario)


@pytest.mark.requirement("R208")
@pytest.mark.parametrize("limit", [0, -1, 1001, 2**70, True, 1.0, "10", None, math.nan])
def test_a_limit_is_an_int_from_1_to_1000(limit):
    with pytest.raises(InvalidArgumentError, match="limit"):
        MemoryQuery(query="x", limit=limit)


@pytest.mark.requirement("R208")
def test_limits_of_1_and_1000_are_allowed():
    assert [MemoryQuery(query="x", limit=limit).limit for limit in (1, 1000)] == [1, 1000]


@pytest.mark.requirement("R209", "C014", "C015")
@pytest.mark.parametrize(
    "field",
    [
        "similarity_weight",
        "recency_weight",
        "importance_weight",
        "access_weight",
        "context_weight",
        "min_relevance",
    ],
)
@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf, -math.inf, "0.5", True, [0.5]])
def test_weights_and_the_floor_are_numbers_from_0_to_1(field, value):
    with pytest.raises(InvalidArgumentError, match=field):
        MemoryQuery(query="x", **{field: value})
    for allowed in (0, 1, 0.0, 1.0, 0.25):
        assert getattr(MemoryQuery(query="x", **{field: allowed}), field) == allowed


@pytest.mark.requirement("C014")
def test_weights_in_play_may_not_all_be_nothing():
    nothing = {"recency_weight": 0, "importance_weight": 0, "access_weight": 0}
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(query="x", similarity_weight=0, **nothing)
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(filters={}, **nothing)  # without a query similarity is not in play
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(query="x", similarity_weight=0, context_weight=1, **nothing)
    assert MemoryQuery(query="x", **nothing)
    assert MemoryQuery(filters={}, context_boost="y", **nothing)


@pytest.mark.requirement("C015")
@pytest.mark.parametrize(
    "wrong",
    [
        {"cache_ttl": timedelta()},
        {"cache_ttl": timedelta(seconds=-1)},
        {"cache_ttl": 0},
        {"cache_ttl": math.nan},
        {"cache_ttl": math.inf},
        {"exclude_ids": ["no uuid"]},
        {"search_type": "fuzzy"},
        {"sort_by": "created_descending"},
        {"filters": {"unknown": 3}},
        {"filters": {"importance": {"like": 3}}},
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_when_the_query_is_made(wrong):
    (field,) = wrong
    named = "found" if field == "filters" else field
    with pytest.raises(InvalidArgumentError, match=named) as refused:
        MemoryQuery(**{"query": "x", **wrong})
    assert isinstance(refused.value, FilterError) == (field == "filters")


def test_seconds_and_texts_of_ids_are_put_into_their_final_form():
    one = uuid4()
    query = MemoryQuery(query="x", cache_ttl=1.5, exclude_ids=[str(one), one])
    assert query.cache_ttl == timedelta(seconds=1.5)
    assert query.exclude_ids == (one, one)
    assert MemoryQuery(query="x", exclude_ids=None).exclude_ids == ()


def test_a_query_cannot_be_changed():
    with pytest.raises(AttributeError):
        MemoryQuery(query="x").limit = 3


@pytest.mark.parametrize("query", [None, {"query": "x"}, object()])
def test_only_a_memory_query_or_a_text_is_answered(query):
    async def scenario(_, service):
        with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
            await service.retrieve(query)
        with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
            await service.retrieve_to_context(query, ContextWindow(100))
        with pytest.raises(InvalidArgumentError, match="ContextWindow"):
            await service.retrieve_to_context(QUERY, query)

    serve(scenario)
