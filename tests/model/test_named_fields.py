"""`limit` is taken wherever there is a maximum number of results."""

import asyncio
import inspect
import pickle

import msgspec
import pytest

from mnemic import Memory, MemoryFilter
from mnemic.compat import (
    AsyncLongTermMemory,
    AsyncMemoryRetriever,
    AsyncRetrievalService,
    BuildContextOptions,
    ContextWindow,
)
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryQuery, RecallOptions

ALIASED = {
    RecallOptions: ("max_results", {"user_id": None}),
    BuildContextOptions: ("max_history", {}),
}
RECORDS = pytest.mark.parametrize("kind", ALIASED)


@RECORDS
def test_a_record_of_options_takes_limit_for_its_documented_name(kind):
    name, given = ALIASED[kind]
    documented, aliased = kind(**given, **{name: 3}), kind(**given, limit=3)
    assert documented == aliased
    assert aliased.limit == getattr(aliased, name) == 3
    assert kind(**given).limit == getattr(kind(**given), name) == 10
    changed = msgspec.structs.replace(aliased, **{name: 4})
    assert changed.limit == 4


@RECORDS
def test_both_names_at_once_are_an_error(kind):
    name, given = ALIASED[kind]
    with pytest.raises(InvalidArgumentError, match=f"limit and {name} are the same option"):
        kind(**given, **{name: 3, "limit": 3})
    with pytest.raises(InvalidArgumentError):
        kind(**given, limit=-1)


@RECORDS
def test_the_alias_is_not_stored(kind):
    name, given = ALIASED[kind]
    options = kind(**given, limit=3)
    assert "limit" not in msgspec.structs.asdict(options)
    assert f"{name}=3" in repr(options)
    assert msgspec.json.decode(msgspec.json.encode(options), type=kind) == options
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own


def test_the_retriever_takes_limit_as_a_field_and_in_options():
    async def scenario(retriever):
        for options, fields in (
            (None, {"user_id": None, "limit": 2}),
            (None, {"user_id": None, "max_results": 2}),
            (RecallOptions(user_id=None, limit=2), {}),
            (RecallOptions(user_id=None), {"limit": 2}),
            (RecallOptions(user_id=None, max_results=1), {"limit": 2}),
        ):
            assert len(await retriever.recall("", options, mode="recent", **fields)) == 2
        with pytest.raises(InvalidArgumentError, match="the same option"):
            await retriever.recall("", user_id=None, limit=2, max_results=2)

    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(["one", "two", "three"])
        asyncio.run(scenario(AsyncMemoryRetriever(memory)))


def test_a_context_of_few_turns_is_built_by_limit():
    window = ContextWindow(1000)
    for text in ("one", "two", "three"):
        window.add(text, type="user_message")
    assert str(window.build(BuildContextOptions(limit=1))) == "three"


OTHER_NAMES = {"max_results", "k", "count", "top_k", "max_hits", "n", "most"}


@pytest.mark.parametrize(
    "kind", [Memory, AsyncLongTermMemory, AsyncRetrievalService, AsyncMemoryRetriever]
)
def test_no_verb_names_its_maximum_otherwise(kind):
    for name, verb in inspect.getmembers(kind, callable):
        if not name.startswith("_"):
            assert not OTHER_NAMES & set(inspect.signature(verb).parameters), name


def test_records_with_a_maximum_have_a_limit():
    assert MemoryFilter(limit=3).limit == MemoryQuery(query="x", limit=3).limit == 3
