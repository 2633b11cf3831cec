"""Records as plain types and as JSON: words for enums, ISO 8601 for times, lists for arrays."""

import enum
import json
from datetime import timedelta
from uuid import UUID

import msgspec
import numpy as np
import pytest

from mnemic import Memory, MemoryEntry, SearchHit, SearchResults
from mnemic.model import (
    DistinctValue,
    LinkType,
    LongTermMemoryStats,
    MemoryLink,
    MemoryQuery,
    MemoryType,
    Suggestions,
)
from mnemic.model.results import DeleteResult
from mnemic.records import Record
from mnemic.records.plain import enc_hook, plain, word
from tests.support.clock import NOON
from tests.support.records import RECORDS, sample

IDS = [record.__name__ for record in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_public_record_becomes_a_dict_of_plain_types(record):
    """A new struct fails here until it is a record, or is named as internal."""
    assert issubclass(record, Record)
    made = sample(record)
    given = made.to_dict()
    assert only_plain(given)
    assert json.loads(json.dumps(given, allow_nan=False)) == given
    assert json.loads(made.to_json()) == given


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_the_dict_has_the_fields_of_the_record_and_differs_from_msgspec_in_words_alone(record):
    made = sample(record)
    given, by_msgspec = made.to_dict(), msgspec.json.decode(msgspec.json.encode(made))
    left_out = {"embedding", "embedding_api_key"}
    assert [name for name in by_msgspec if name in given or name not in left_out] == list(given)
    for name in record.__struct_fields__:
        value = getattr(made, name)
        if isinstance(value, enum.Enum):
            assert given[name] == word(value)
            assert isinstance(given[name], str)
            assert not given[name].isdigit()
        elif name in given and not has_words(value):
            assert given[name] == by_msgspec[name]


def only_plain(value):
    if isinstance(value, dict):
        return all(type(key) is str and only_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(only_plain, value))
    return type(value) in (str, int, float, bool, type(None))


def has_words(value):
    """Return whether an enum stands somewhere in a value."""
    if isinstance(value, msgspec.Struct):
        return any(has_words(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return any(has_words(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_words, value))
    return isinstance(value, enum.Enum)


def entry(**fields):
    given = {"id": UUID(int=7), "agent_id": "a", "content": "Likes tea", "created_at": NOON}
    return MemoryEntry(**{**given, **fields})


def test_the_dict_of_a_memory_has_its_fields_and_is_the_callers_own():
    one = entry(metadata={"cups": [1, 2.5, None, {"b": True}]})
    given = one.to_dict()
    assert set(given) == set(MemoryEntry.__struct_fields__) - {"embedding"}
    assert given["metadata"] == one.metadata
    given["metadata"]["cups"].append(3)
    assert len(one.metadata["cups"]) == 4


@pytest.mark.parametrize(
    ("vectors", "shown"), [([0.5, 1], [0.5, 1.0]), ([[0.5, 1], [0, 2]], [[0.5, 1.0], [0.0, 2.0]])]
)
def test_an_embedding_is_a_list_where_there_is_one(vectors, shown):
    one = entry(embedding=np.array(vectors, np.float32))
    assert one.to_dict()["embedding"] == shown
    assert "embedding" not in entry().to_dict()
    sent = msgspec.json.encode(SearchResults([SearchHit(one, 1.0, {})]), enc_hook=enc_hook)
    assert msgspec.json.decode(sent)["hits"][0]["entry"]["embedding"] == shown


def test_results_of_every_verb_become_json():
    with Memory(":memory:", embedder=None) as memory:
        first, second = memory.add_many(["Likes tea", "Likes bread"], user_id="alice")
        memory.link(first.id, second.id, "related", user_id="alice")
        results = [
            memory.search("likes", user_id="alice", explain=True),
            memory.retrieve("tea", user_id="alice"),
            memory.list(user_id="alice"),
            memory.stats(user_id="alice"),
            memory.links(first.id, user_id="alice")[0],
            memory.users()[0],
            memory.verify(),
            memory.context("tea", user_id="alice", max_tokens=50),
            memory.suggest("tea", user_id="alice"),
            memory.delete_many(ids=[first.id], user_id="alice"),
        ]
        for result in results:
            assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
            assert msgspec.json.encode(result, enc_hook=enc_hook)
        assert len(results[0].to_dict()["hits"]) == 2
        assert results[0].to_dict()["hits"][0]["why"]["parts"]
        assert results[3].to_dict()["entries_by_type"] == {"fact": 2}
        assert results[4].to_dict()["type"] == "related"
        assert results[7].to_dict()["memories"][0]["content"] == "Likes tea"
        assert results[9].to_dict() == {"count": 1, "erased": False, "hint": None}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (np.array([np.nan]), [None]),
        ({MemoryType.EVENT: 1, 2: UUID(int=0)}, {"event": 1, "2": str(UUID(int=0))}),
        pytest.param({"b", "a"}, ["a", "b"], id="a set"),
        (timedelta(seconds=90), "PT90S"),
        (DeleteResult(3), 3),
        (Suggestions(["tea"]), ["tea"]),
        (DistinctValue(MemoryType.FACT, 2), {"value": "fact", "count": 2}),
    ],
    ids=str,
)
def test_a_value_as_plain_types(value, shown):
    assert plain(value) == shown
    assert only_plain(plain(value))


def test_what_json_has_no_form_for_is_an_error():
    with pytest.raises((TypeError, NotImplementedError)):
        plain(object())
    with pytest.raises(NotImplementedError, match="no plain form of a value of type object"):
        enc_hook(object())


def test_words_are_taken_where_the_enum_is():
    link = MemoryLink(UUID(int=1), UUID(int=2), LinkType.DERIVED_FROM, 1.0, NOON)
    assert MemoryLink(UUID(int=1), UUID(int=2), link.to_dict()["type"], 1.0, NOON) == link
    given = entry(type="event").to_dict()
    assert entry(type=given["type"], status=given["status"]) == entry(type="event")
    query = MemoryQuery(query="tea", filters={"type": "fact"})
    assert query.to_dict()["filters"] == {"type": "fact"}
    assert LongTermMemoryStats(active_entries=1, forgotten_entries=0).to_dict()["top_tags"] == []
