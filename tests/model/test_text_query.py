"""Retrieval by a text with keyword arguments, at each door."""

from datetime import timedelta

import msgspec
import pytest

from mnemic import Memory, MemoryFilter, Weights
from mnemic.compat import RetrievalService
from mnemic.context import ContextWindow
from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import MemoryQuery, Recency
from mnemic.model.query import RetrieveFields
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import record

TEXTS = ("the red sofa", "the blue sofa of the hall", "a green lamp")


@pytest.fixture
def memory():
    options = {"embedder": WordEmbedder(dimensions=512), "clock": Clock(), "track_access": False}
    with Memory(":memory:", "aide", **options) as opened:
        opened.add_many(
            [record(text, days=10 * at, importance=0.1 + 0.4 * at) for at, text in enumerate(TEXTS)]
        )
        yield opened


def contents(result):
    return [hit.content for hit in result]


def as_shown(result):
    """Return a result without its duration and origin."""
    return msgspec.structs.replace(result, retrieval_time=timedelta(), from_cache=False)


PAIRS = {
    "alone": ({}, {}),
    "limit": ({"limit": 1}, {"limit": 1}),
    "filters": ({"filters": {"importance": {"gt": 0.4}}}, {"filters": {"importance": {"gt": 0.4}}}),
    "search_type": ({"search_type": "semantic"}, {"search_type": "semantic"}),
    "weights": (
        {"weights": {"relevance": 0.5, "context": 0.2}, "context": "green"},
        {
            "similarity_weight": 0.5,
            "recency_weight": 0.0,
            "importance_weight": 0.0,
            "access_weight": 0.0,
            "context_weight": 0.2,
            "context_boost": "green",
        },
    ),
    "a record of weights": (
        {"weights": Weights(recency=0.5)},
        {
            "similarity_weight": 1.0,
            "recency_weight": 0.5,
            "importance_weight": 0.0,
            "access_weight": 0.0,
        },
    ),
    "expand": ({"expand": True}, {"expand_query": True}),
    "time_zone": ({"time_zone": "Asia/Tokyo"}, {"time_zone": "Asia/Tokyo"}),
    "context": ({"context": "green lamp"}, {"context_boost": "green lamp"}),
    "min_score": ({"min_score": 0.7}, {"min_relevance": 0.7}),
    "recency": ({"recency": Recency(days=20)}, {"recency": Recency(days=20)}),
    "total": ({"total": False, "limit": 1}, {"with_total": False, "limit": 1}),
    "with_total": ({"with_total": False, "limit": 1}, {"with_total": False, "limit": 1}),
    "since": (
        {"since": NOON - 15 * DAY},
        {"filters": {"created_at": {"gte": NOON - 15 * DAY}}},
    ),
    "until and a filter": (
        {"until": NOON.isoformat(), "filters": {"importance": {"lt": 0.8}}},
        {"filters": {"importance": {"lt": 0.8}, "created_at": {"lt": NOON}}},
    ),
    "since and a MemoryFilter": (
        {"since": NOON - 15 * DAY, "filters": MemoryFilter(min_importance=0.4)},
        {
            "filters": MemoryFilter(
                min_importance=0.4, filters={"created_at": {"gte": NOON - 15 * DAY}}
            )
        },
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_text_with_fields_is_the_query_with_those_fields(memory, pair):
    fields, named = PAIRS[pair]
    query = MemoryQuery(query="red sofa", **{"search_type": "hybrid", **named})
    wanted = as_shown(memory.retrieve(query))
    assert as_shown(memory.retrieve("red sofa", **fields)) == wanted
    service = RetrievalService(memory)
    assert as_shown(service.retrieve("red sofa", **fields)) == wanted
    windows = ContextWindow(1000), ContextWindow(1000)
    added = memory.retrieve_to_context("red sofa", windows[0], **fields)
    assert added == memory.retrieve_to_context(query, windows[1]) > 0
    assert [item.content for item in windows[0].items()] == [
        item.content for item in windows[1].items()
    ]


def test_excluded_ids_and_the_cache_are_fields_too(memory):
    first = memory.retrieve("red sofa")
    assert memory.retrieve("red sofa").from_cache
    assert not memory.retrieve("red sofa", use_cache=False).from_cache
    others = memory.retrieve("red sofa", exclude_ids=[str(first[0].id)])
    assert contents(others) == contents(first)[1:]
    assert memory.retrieve("red sofa", cache_ttl=5).from_cache


def test_every_field_of_a_text_is_tested_here():
    tested = {name for fields, _ in PAIRS.values() for name in fields}
    others = {"exclude_ids", "use_cache", "cache_ttl", "on_embed_error"}
    assert tested | others == set(RetrieveFields.__annotations__)


def test_without_an_embedder_a_text_is_searched_by_its_words():
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(TEXTS)
        assert contents(memory.retrieve("red"))[0] == "the red sofa"
        assert contents(RetrievalService(memory).retrieve("red"))[0] == "the red sofa"


REFUSED = {
    "no text": (5, {}, "must be a text or a MemoryQuery, got 5"),
    "blank": (" ", {}, "not empty"),
    "fields beside a query": (MemoryQuery.semantic("x"), {"limit": 3}, "limit goes with a text"),
    "an unknown field": (
        "x",
        {"max_results": 3},
        "has no argument 'max_results'; did you mean 'limit'",
    ),
    "an unknown weight": ("x", {"weights": {"age": 1}}, "there is no weight 'age', only"),
    "a weight of recall": ("x", {"weights": {"salience": 1}}, "no weight salience"),
    "a limit": ("x", {"limit": 0}, "limit"),
    "a search type": ("x", {"search_type": "fuzzy"}, "search_type must be one of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_query_that_cannot_be_understood_is_refused(memory, case):
    query, fields, message = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=message):
        memory.retrieve(query, **fields)
    with pytest.raises(InvalidArgumentError, match=message):
        RetrievalService(memory).retrieve(query, **fields)


def test_a_time_that_cannot_be_read_is_refused_by_its_name(memory):
    with pytest.raises(FilterError, match="since"):
        memory.retrieve("x", since="yesterday")
