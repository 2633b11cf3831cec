"""Keys of cached answers: everything that determines them."""

from uuid import UUID

import pytest

from mnemic import MemoryFilter
from mnemic.model import MemoryQuery, Scope
from mnemic.retrieval.cache import key_of

SAME_FILTERS = [
    (
        {"importance": {"gte": 0.1, "lt": 1}, "type": "fact"},
        {"type": 0, "importance": {"lt": 1, "gte": 0.1}},
    ),
    ({"OR": [{"type": 1}, {"type": 0}]}, {"OR": [{"type": 0}, {"type": 1}]}),
    ({"type": {"in": [0, 1]}}, {"type": {"in": {1, 0}}}),
    ({"AND": [{"type": 0}, {"importance": 0.5}]}, {"importance": 0.5, "type": 0}),
    (
        MemoryFilter(types=["fact"], min_importance=0.1),
        {"importance": {"gte": 0.1}, "type": {"in": ["fact"]}},
    ),
    (MemoryFilter(limit=5), {}),
    ({"type": 0, "AND": [{"type": 0}]}, {"type": 0}),
    ({"metadata": {"x": 1, "y": {"gt": 2}}}, {"metadata.y": {"gt": 2}, "metadata.x": 1}),
    ({"metadata.x": {"eq": {"a": 1, "b": 2}}}, {"metadata.x": {"eq": {"b": 2, "a": 1}}}),
    ({"metadata.x": {"in": [[1], [2]]}}, {"metadata.x": {"in": [[2], [1]]}}),
]
OTHER_FILTERS = [
    ({"metadata.x": True}, {"metadata.x": 1}),
    ({"metadata.x": 1}, {"metadata.x": 1.0}),
    ({"metadata.x": "1"}, {"metadata.x": 1}),
    ({"metadata.x": "a"}, {"metadata.y": "a"}),
    ({"tags": {"any": ["a", "b"]}}, {"tags": {"all": ["a", "b"]}}),
    ({"OR": [{"type": 1}, {"type": 0}]}, {"AND": [{"type": 0}, {"type": 1}]}),
    ({"OR": []}, {"AND": []}),
    ({"NOT": {"type": 1}}, {"type": 1}),
    ({"tags": {"any": ["a", "b"]}}, {"tags": {"any": ["a', 'b"]}}),
    ({"metadata.a eq 1": 1}, {"metadata.a": 1}),
    ({"metadata.a.b": 1}, {"metadata": {"a": {"b": 1}}}),
    ({"metadata.x": [1, 2]}, {"metadata.x": [2, 1]}),
    ({"metadata.x": [1, 1]}, {"metadata.x": [1]}),
    ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}),
    ({"metadata.x": [1, True]}, {"metadata.x": [1, 1]}),
    ({"metadata.x": {"eq": {"a": 1}}}, {"metadata.x": [["a", 1]]}),
    ({"metadata.x": 2**64}, {"metadata.x": 2**64 + 1}),
]


def key(filters, **fields):
    query = MemoryQuery(query="query", filters=filters, **fields)
    return key_of(Scope("aide"), query, query.expression, 1)


@pytest.mark.parametrize(("one", "other"), SAME_FILTERS, ids=str)
def test_filters_that_mean_the_same_in_another_order_have_one_key(one, other):
    assert key(one) == key(other)
    assert hash(key(one)) == hash(key(other))


@pytest.mark.parametrize(("one", "other"), OTHER_FILTERS, ids=str)
def test_filters_that_differ_have_different_keys(one, other):
    assert key(one) != key(other)


def test_the_order_of_what_is_left_out_does_not_matter():
    ids = [UUID(int=number) for number in range(3)]
    assert key({}, exclude_ids=ids) == key({}, exclude_ids=[*reversed(ids), ids[0]])
    assert key({}, exclude_ids=ids) != key({}, exclude_ids=ids[:2])
