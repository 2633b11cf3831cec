"""Public records survive being sent elsewhere: msgspec's JSON and MessagePack, pickle and copy."""

import copy
import enum
import importlib
import inspect
import pickle
import types
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import msgspec
import numpy as np
import pytest

import mnemic
from mnemic.errors import FilterError
from mnemic.model import (
    MemoryEntry,
    MemoryFilter,
    MemoryKind,
    MemoryQuery,
    MemorySortOrder,
    MemoryStatus,
    MemoryType,
    RecallOptions,
    parse_filter,
)

NOON = datetime(2026, 5, 1, 12, 30, 15, 250_000, tzinfo=UTC)
ROOMS = ("model", "observability.events", "context", "contradictions", "licensing")
INTERNAL = {"All", "AnyOf", "Field", "Not", "RowBatch", "Search", "Test"}
"""What a call is turned into on its way down; it is neither taken nor given by any call."""

FORMATS = {"json": msgspec.json, "msgpack": msgspec.msgpack}


def public_records():
    rooms = [mnemic, *(importlib.import_module(f"mnemic.{room}") for room in ROOMS)]
    found = [getattr(room, name) for room in rooms for name in getattr(room, "__all__", vars(room))]
    records = {one.__name__: one for one in found if is_record(one)}
    return [records[name] for name in sorted(records.keys() - INTERNAL)]


def is_record(found):
    is_struct = inspect.isclass(found) and issubclass(found, msgspec.Struct)
    return is_struct and found.__module__.startswith("mnemic.")


RECORDS = public_records()

FILTERS = {
    "importance": {"gte": 0.5, "lt": 1},
    "created_at": {"gte": NOON, "lt": "2027-01-01"},
    "id": {"in": {UUID(int=1), str(UUID(int=2))}},
    "type": {"in": (MemoryType.FACT, "event", 2)},
    "OR": [{"tags": {"any": frozenset({"a", "b"})}}, {"metadata.a.b": None}, {"metadata.n": 1.0}],
    "NOT": {"sensitive": True},
    "status": MemoryStatus.ACTIVE,
}

CHOSEN = {
    "MemoryEntryUpdate": {"status": MemoryStatus.ARCHIVED, "metadata": None, "expires_at": NOON},
    "MemoryQuery": {
        "query": None,
        "filters": MemoryFilter(filters=FILTERS, tags={"a"}, created_after=NOON),
        "cache_ttl": timedelta.max,
    },
    "MemoryFilter": {"filters": FILTERS},
    "MemoryLink": {"to_id": UUID(int=8)},
    "RecallOptions": {"user_id": "u", "all_users": False, "type_filter": MemoryKind.EPISODIC},
    "Recency": {"days": 30.5},
    "SalienceOptions": {"boosts": {"user_correction": 0.5}},
    "SalienceWeights": {"recency": 0.1, "frequency": 0.2, "importance": 0.3, "relevance": 0.4},
    "Scope": {"user_id": None, "all_users": True},
}
"""Where a value of the right type alone would not do."""


def sample(record):
    """Return a record with a value in every field that is not the field's default."""
    chosen = CHOSEN.get(record.__name__, {})
    return record(
        **{
            field.name: chosen[field.name] if field.name in chosen else value_of(field.type)
            for field in msgspec.structs.fields(record)
        }
    )


PLAIN = {
    str: "one",
    int: 3,
    float: 0.25,
    bool: True,
    datetime: NOON,
    timedelta: timedelta(seconds=90, microseconds=5),
    UUID: UUID(int=7),
    Any: "fact",
}


def value_of(kind):
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) is not None:
        return value_of_parts(get_origin(kind), get_args(kind))
    return list(kind)[-1] if issubclass(kind, enum.Enum) else sample(kind)


def value_of_parts(origin, parts):
    if origin is np.ndarray:
        return None  # records are given without their embeddings
    if origin is Annotated:
        return value_of(parts[0])
    if origin in (Union, types.UnionType):
        return value_of(next(each for each in parts if each is not types.NoneType))
    if origin is dict:
        return {value_of(parts[0]): value_of(parts[1])}
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(map(value_of, parts))
    return parts[-1] if origin is Literal else (value_of(parts[0]),)


@pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_public_record_survives_a_round_trip(record, wire):
    made = sample(record)
    sent = wire.encode(made)
    arrived = wire.decode(sent, type=record)
    assert arrived == made
    assert repr(arrived) == repr(made)
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
        assert repr(copied) == repr(made)


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
