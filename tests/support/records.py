"""Samples of all public records, which are found by walking the package."""

import enum
import importlib
import inspect
import pkgutil
import types
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import msgspec

import mnemic
from mnemic.arrays import Float32Array
from mnemic.context.prompt_block import NumberedLines
from mnemic.context.redaction import Redaction
from mnemic.model import MemoryFilter, MemoryKind, MemoryStatus, MemoryType

NOON = datetime(2026, 5, 1, 12, 30, 15, 250_000, tzinfo=UTC)

PRIVATE_MODULES = (
    *("mnemic.store", "mnemic.repository", "mnemic.index"),
    *("mnemic.demo", "mnemic.cli", "mnemic.mcp", "mnemic.importers"),  # programs
)
"""No call takes or gives their records."""

INTERNAL = {
    *("Record", "Redacted", "Listing", "CamelCaseRecord", "OptionsRecord"),  # bases
    *("All", "AnyOf", "Field", "JsonObject", "Not", "Test"),  # a filter's tree
    *("Entities", "Negation", "Polarity", "Predicate", "Preference", "Reading", "Slots"),  # parsed
    *("Lexeme", "Quantity", "Token"),  # likewise
    *("Compaction", "Flow", "Traversal"),  # work under way
    *("DistinctQuery", "RowBatch", "Search"),  # what a call is turned into on its way down
}
"""Neither taken nor given by any call."""


def structs():
    """Return all structs of the package that are for users, by name."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(mnemic.__path__, "mnemic.")
        if not found.name.startswith(PRIVATE_MODULES)
    ]
    found = [one for module in modules for one in vars(module).values() if is_struct(one)]
    named = {one.__name__: one for one in found if not one.__module__.startswith(PRIVATE_MODULES)}
    return {name: named[name] for name in sorted(named) if is_public(name)}


def is_public(name):
    return not name.startswith("_") and name not in INTERNAL


def is_struct(found):
    made_here = inspect.isclass(found) and found.__module__.startswith("mnemic.")
    return made_here and issubclass(found, msgspec.Struct)


RECORDS = list(structs().values())

BOUND = {"PackingPlan"}
"""Records with objects of the caller in them, a counter or a form: no format can carry those."""

FILTERS = {
    "importance": {"gte": 0.5, "lt": 1},
    "created_at": {"gte": NOON, "lt": "2027-01-01"},
    "id": {"in": {UUID(int=1), str(UUID(int=2))}},
    "type": {"in": (MemoryType.FACT, "event", 2)},
    "OR": [{"tags": {"any": frozenset({"a", "b"})}}, {"metadata.a.b": None}, {"metadata.n": 1.0}],
    "NOT": {"sensitive": True},
    "status": MemoryStatus.ACTIVE,
}

WITHIN_RANGE = {"top_k": 7, "clip_sentences": 1, "max_tokens": 500}

CHOSEN = {
    "HydeConfig": {"max_window_characters": 500},
    "MemoryEntryUpdate": {"status": MemoryStatus.ARCHIVED, "metadata": None, "expires_at": NOON},
    "MemoryQuery": {
        "query": None,
        "filters": MemoryFilter(filters=FILTERS, tags={"a"}, created_after=NOON),
        "cache_ttl": timedelta.max,
    },
    "MemoryFilter": {"filters": FILTERS},
    "MemoryLink": {"to_id": UUID(int=8)},
    "PackingPlan": {
        "counter": None,
        "block": NumberedLines(),
        "redaction": Redaction(enabled=True),
    },
    "RecallOptions": {"user_id": "u", "all_users": False, "type_filter": MemoryKind.EPISODIC},
    "Recency": {"days": 30.5},
    "RetrievalConfig": {**WITHIN_RANGE, "session_boost": 1.5},
    "RetrievalRequest": {"filters": {"tags": {"any": ["a"]}}},
    "RetrievalSettings": WITHIN_RANGE,
    "SalienceOptions": {"boosts": {"user_correction": 0.5}},
    "SalienceWeights": {"recency": 0.1, "frequency": 0.2, "importance": 0.3, "relevance": 0.4},
    "Scope": {"user_id": None, "all_users": True},
}
"""Where a value of the right type alone would not do."""


def sample(record):
    """Return a record with a value in every field that is not the field's default."""
    chosen = {"time_zone": "Asia/Tokyo", **CHOSEN.get(record.__name__, {})}
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
    if kind is Float32Array:
        return None  # records are given without their embeddings
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) is not None:
        return value_of_parts(get_origin(kind), get_args(kind))
    return list(kind)[-1] if issubclass(kind, enum.Enum) else sample(kind)


def value_of_parts(origin, parts):
    if origin is Annotated:
        return value_of(parts[0])
    if origin in (Union, types.UnionType):
        return value_of(next(each for each in parts if each is not types.NoneType))
    if origin is dict:
        return {value_of(parts[0]): value_of(parts[1])}
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(map(value_of, parts))
    return parts[-1] if origin is Literal else (value_of(parts[0]),)
