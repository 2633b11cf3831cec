"""What the doors refuse, and what they tell, at their edges."""

import asyncio
import contextlib
import io
import threading

import numpy as np
import pytest

from mnemic.async_memory import AsyncMemory
from mnemic.compat import ContextWindow, RetrievalService
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError, StorageQuotaExceededError, StoreClosedError
from mnemic.licensing import STORAGE_LIMITS, DocumentedLicenses, LicenseTier
from mnemic.memory import Memory
from mnemic.model import MemoryEntryUpdate, MemoryQuery
from mnemic.model.ids import UuidFactory
from mnemic.observability.events import MemoryForgottenEvent, MemoryUpdatedEvent
from tests.support.doors import run
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as opened:
        yield opened


FLAG_CALLS = {
    "delete": lambda memory, entry_id: memory.delete(entry_id, permanent="no"),
    "delete_all": lambda memory, _: memory.delete_all(permanent="no"),
    "list": lambda memory, _: memory.list(include_deleted="no"),
    "export of all": lambda memory, _: memory.export(io.StringIO(), all_users="no"),
    "export of deleted": lambda memory, _: memory.export(io.StringIO(), include_deleted="no"),
    "export of vectors": lambda memory, _: memory.export(io.StringIO(), embeddings="no"),
}


@pytest.mark.parametrize("call", FLAG_CALLS.values(), ids=FLAG_CALLS)
def test_a_flag_that_is_no_bool_is_refused_and_deletes_nothing(memory, call):
    kept = memory.add("Lives in Oslo")
    with pytest.raises(InvalidArgumentError, match="must be True or False, got 'no'"):
        call(memory, kept.id)
    assert memory.get(kept.id) == kept


QUERY_CALLS = {
    "search": lambda memory, query: memory.search(query),
    "search with a vector": lambda memory, query: memory.search(query, vector=[1.0] * 32),
    "context": lambda memory, query: memory.context(query),
    "retrieve": lambda memory, query: memory.retrieve(query),
    "query": lambda memory, query: memory.retrieve(MemoryQuery.semantic(query)),
    "retrieve to context": lambda memory, query: memory.retrieve_to_context(
        query, ContextWindow(500)
    ),
    "expand": lambda memory, query: memory.expand(query),
    "service": lambda memory, query: RetrievalService(memory).expand_query(query),
    "recall": lambda memory, query: memory.recall(query),
}


NO_QUERIES = ("\0", "tea\0", "\ud800 tea", " ", "x" * 10_001)


@pytest.mark.parametrize("query", NO_QUERIES)
@pytest.mark.parametrize("call", QUERY_CALLS.values(), ids=QUERY_CALLS)
def test_a_text_that_is_no_query_is_refused_by_every_call(memory, call, query):
    memory.add("Drinks tea")
    with pytest.raises(InvalidArgumentError, match=r"(?i)query"):
        call(memory, query)


@pytest.mark.parametrize("option", ["log_content", "track_access", "read_only"])
def test_an_option_that_is_no_bool_is_refused_before_a_file_is_made(tmp_path, option):
    with pytest.raises(InvalidArgumentError, match=f"{option} must be True or False, got 'no'"):
        Memory(tmp_path / "agent.db", embedder=None, **{option: "no"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("R059")
def test_none_in_an_update_keeps_the_tags(memory):
    kept = memory.add("Lives in Oslo", tags=["home"])
    assert memory.update(kept.id, importance=0.9, add_tags=None).tags == ("home",)
    assert memory.update(kept.id, importance=0.8, remove_tags=None).tags == ("home",)
    assert MemoryEntryUpdate(add_tags=None, remove_tags=None).is_empty


@pytest.mark.parametrize("key", [None, 5])
def test_a_feature_key_that_is_no_text_is_an_unknown_one(key):
    with pytest.raises(InvalidArgumentError, match=r"feature key .* is unknown"):
        DocumentedLicenses(LicenseTier.CORE).has_feature(key)


@pytest.mark.requirement("C173")
def test_memories_with_an_event_loop_may_be_closed_by_either_name(tmp_path):
    async def scenario():
        doors = (AsyncMemory, AsyncLongTermMemory)
        for door in doors:
            opened = door(tmp_path / "agent.db", embedder=None)
            async with contextlib.aclosing(opened):
                assert await opened.count() == 0
            with pytest.raises(StoreClosedError):
                await opened.count()

    asyncio.run(scenario())


@pytest.mark.requirement("R077", "C095")
@pytest.mark.parametrize(
    "again",
    [
        {"idempotency_key": "k"},
        {"on_duplicate": "skip"},
        {"on_duplicate": "merge", "tags": ["t"]},
    ],
)
def test_what_is_not_stored_again_needs_no_quota(monkeypatch, again):
    monkeypatch.setattr(
        "mnemic.licensing.STORAGE_LIMITS", {**STORAGE_LIMITS, LicenseTier.TEAMS: 1000}
    )
    with Memory(
        ":memory:", embedder=WordEmbedder(), license=DocumentedLicenses(LicenseTier.TEAMS)
    ) as memory:
        first = memory.add("f" * 900, idempotency_key="k")
        assert memory.add("f" * 900, **again).id == first.id
        with pytest.raises(StorageQuotaExceededError):
            memory.add("g" * 900, idempotency_key="another")


def test_many_memories_are_checked_outside_the_event_loop():
    threads = set()

    def id_factory(now):
        threads.add(threading.current_thread())
        return UuidFactory()(now)

    async def scenario():
        given = {"embedder": None, "id_factory": id_factory}
        async with AsyncMemory(":memory:", **given) as memory:
            await memory.add_many([f"text {number}" for number in range(1000)])
        assert threading.current_thread() not in threads

    asyncio.run(scenario())


class PlainEmbedder:
    """What docs/explain/memory.md says is enough."""

    model, dimensions = "plain", 2

    def embed(self, texts):
        return np.ones((len(texts), 2), dtype=np.float32)


@pytest.mark.requirement("R003")
def test_what_the_documentation_calls_enough_is_an_embedder_at_run_time():
    with Memory(":memory:", embedder=PlainEmbedder()) as memory:
        memory.add("Lives in Oslo")
        assert len(memory.search("Oslo")) == 1


def test_merging_into_a_memory_tells_of_an_update(memory):
    heard = []
    memory.add("Lives in Oslo")
    memory.events.subscribe(MemoryUpdatedEvent, heard.append)
    memory.add("lives in oslo", tags=["home"], on_duplicate="merge")
    assert len(heard) == 1


def test_forgetting_what_is_forgotten_tells_nothing(memory):
    kept, heard = memory.add("Lives in Oslo"), []
    memory.events.subscribe(MemoryForgottenEvent, heard.append)
    memory.delete(kept.id)
    memory.delete(kept.id)
    assert len(heard) == 1


@pytest.mark.requirement("R030", "C151")
@pytest.mark.parametrize(("floor", "found"), [(None, ["near"]), (0.4, ["near"]), (0.9, [])])
def test_without_a_threshold_that_of_the_embedder_holds(floor, found):
    class Calibrated(PlainEmbedder):
        similarity_floor = floor

        def embed(self, texts):
            return np.array([(1, 0) if text == "query" else (0.5, 0.866) for text in texts])

    async def scenario(memory):
        await memory.store(entry("near"))
        hits = await memory.search_semantic("query")
        assert [hit.entry.content for hit in hits] == found
        assert await memory.search_semantic("query", min_similarity=0.6) == []
        assert len(await memory.search_semantic("query", min_similarity=0.4)) == 1

    run(scenario, embedder=Calibrated())
