"""Public records survive being sent elsewhere: msgspec's JSON and MessagePack, pickle and copy."""

import copy
import pickle
from uuid import UUID

import msgspec
import pytest

from mnemic.errors import FilterError
from mnemic.model import (
    MemoryEntry,
    MemoryFilter,
    MemoryKind,
    MemoryQuery,
    MemorySortOrder,
    MemoryType,
    RecallOptions,
)
from mnemic.model.filter import parse_filter
from tests.support.records import BOUND, FILTERS, NOON, RECORDS, sample
from tests.support.whole import whole

FORMATS = {"json": msgspec.json, "msgpack": msgspec.msgpack}


@pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize(
    "record",
    [record for record in RECORDS if record.__name__ not in BOUND],
    ids=lambda record: record.__name__,
)
def test_a_public_record_survives_a_round_trip(record, wire):
    made = sample(record)
    sent = wire.encode(made)
    arrived = wire.decode(sent, type=record)
    assert arrived == made
    assert whole(arrived) == whole(made)
    assert wire.encode(arrived) == sent


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_public_record_survives_pickle_and_copy(record):
    made = sample(record)
    for copied in (
        pickle.loads(pickle.dumps(made)),  # noqa: S301 - our own
        copy.copy(made),
        copy.deepcopy(made),
        msgspec.structs.replace(made),
    ):
        assert type(copied) is record
        assert whole(copied) == whole(made)


def test_the_samples_are_of_all_records_that_users_meet():
    names = {record.__name__ for record in RECORDS}
    assert {
        "MemoryQuery",
        "MemoryEntry",
        "SearchHit",
        "ExpandedQuery",
        "DocumentedLicenses",
    } <= names
    assert len(names) > 40


QUERIES = [
    MemoryQuery(query="tea"),
    MemoryQuery(filters=FILTERS, query="tea", limit=3, exclude_ids=[UUID(int=9)]),
    MemoryQuery(filters={}),
    MemoryQuery(filters=MemoryFilter()),
    MemoryQuery(filters=MemoryFilter(sort_by=MemorySortOrder.CREATED_DESCENDING, offset=3)),
    MemoryQuery(filters={"type": "fact"}, sort_by=MemorySortOrder.ACCESSED_DESCENDING),
]


@pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_asks_the_same_after_a_round_trip(query, wire):
    arrived = wire.decode(wire.encode(query), type=MemoryQuery)
    assert arrived == query
    assert type(arrived.filters) is type(query.filters)
    assert arrived.expression == query.expression
    assert (arrived.order, arrived.offset) == (query.order, query.offset)


def test_a_query_of_json_takes_a_filter_in_the_grammar():
    query = msgspec.json.decode(
        b'{"filters": {"importance": {"gte": 0.5}, "tags": {"any": ["a"]}}}', type=MemoryQuery
    )
    assert query.expression == parse_filter({"importance": {"gte": 0.5}, "tags": {"any": ["a"]}})


@pytest.mark.parametrize(
    "wrong",
    [
        {"record": "memory_filter", "limit": 0},
        {"record": "memory_filter", "tags": 3},
        {"record": "memory_filter", "filters": {"colour": 1}},
        {"record": "something else"},
        {"include_forgotten": True},
        3,
        "text",
        [],
    ],
    ids=str,
)
def test_a_filter_that_cannot_be_understood_is_refused_wherever_it_comes_from(wrong):
    with pytest.raises(FilterError):
        MemoryQuery(filters=wrong)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"filters": wrong}), type=MemoryQuery)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("episodic", MemoryKind.EPISODIC),
        (MemoryKind.SEMANTIC, MemoryKind.SEMANTIC),
        ("EVENT", MemoryType.EVENT),
        (3, MemoryType.PREFERENCE),
        (None, None),
    ],
)
def test_a_type_to_recall_is_kept_in_one_form(given, kept):
    options = RecallOptions(user_id=None, type_filter=given)
    assert options.type_filter is kept
    for wire in FORMATS.values():
        assert wire.decode(wire.encode(options), type=RecallOptions) == options


def test_what_was_decoded_is_checked_as_what_was_made():
    made = MemoryEntry(id=UUID(int=1), agent_id="a", content="tea", created_at=NOON)
    sent = msgspec.json.encode(made).replace(b'"tea"', b'" "')
    with pytest.raises(msgspec.ValidationError, match="content cannot be empty"):
        msgspec.json.decode(sent, type=MemoryEntry)
