"""Each door leads to the other door of the same open memory."""

import asyncio
import gc
import weakref

import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.async_memory import AsyncScopedMemory
from mnemic.compat import AsyncLongTermMemory, LongTermMemory
from mnemic.errors import StoreClosedError
from mnemic.memory import ScopedMemory
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import record


def opened(path=":memory:"):
    return Memory(path, "aide", embedder=WordEmbedder())


def test_both_doors_share_one_memory():
    async def scenario(memory):
        added = await memory.aio.add("red sofa", user_id="a")
        assert memory.get(added.id, user_id="a") == added
        memory.add("blue chair", user_id="a")
        assert await memory.aio.count(user_id="a") == 2
        assert memory.aio.repository is memory.repository
        assert memory.aio.embedder is memory.embedder
        assert memory.aio.scope == memory.scope

    with opened() as memory:
        asyncio.run(scenario(memory))


def test_the_other_door_is_the_same_object_each_time():
    with opened() as memory:
        other = memory.aio
        assert type(other) is AsyncMemory
        assert memory.aio is other
        assert other.sync is memory
        assert memory.aio.sync.aio is other
    awaited = AsyncMemory(":memory:", embedder=None)
    assert type(awaited.sync) is Memory
    assert awaited.sync is awaited.sync
    assert awaited.sync.aio is awaited
    awaited.sync.close()


def test_views_have_their_other_door_too():
    with opened() as memory:
        view = memory.scoped(user_id="a", session_id="s")
        other = view.aio
        assert type(other) is AsyncScopedMemory
        assert type(other.sync) is ScopedMemory
        assert (view.aio is other, other.sync is view) == (True, True)
        assert other.scope == view.scope
        added = asyncio.run(other.add("red sofa"))
        assert (added.user_id, added.session_id) == ("a", "s")
        assert view.count() == 1
        assert memory.count() == 0


def test_the_caches_of_retrieval_are_shared():
    with opened() as memory:
        memory.add("red sofa")
        assert not memory.retrieve("sofa").from_cache
        assert asyncio.run(memory.aio.retrieve("sofa")).from_cache
        assert memory.retrieval_stats() == asyncio.run(memory.aio.retrieval_stats())


def test_closing_either_closes_both():
    memory = opened()
    other = memory.aio
    memory.close()
    with pytest.raises(StoreClosedError):
        asyncio.run(other.count())
    memory = opened()
    asyncio.run(memory.aio.close())
    with pytest.raises(StoreClosedError):
        memory.count()
    memory.close()


def test_a_dropped_memory_is_closed_at_once_though_its_other_door_was_used(path):
    gc.disable()
    try:
        memory = opened(path)
        memory.aio.sync.add("red sofa")
        repository = weakref.ref(memory.repository)
        del memory
        assert repository() is None
    finally:
        gc.enable()


def test_a_door_outlives_the_one_that_made_it():
    other = opened().aio
    assert asyncio.run(other.count()) == 0
    assert type(other.sync) is Memory
    assert other.sync is other.sync
    assert other.sync.aio is other
    other.sync.close()


def test_long_term_memory_has_the_verbs_of_both_doors():
    async def scenario():
        async with AsyncLongTermMemory(
            ":memory:", agent_id="aide", embedder=WordEmbedder()
        ) as memory:
            entry = record("red sofa", user="a")
            await memory.store(entry)
            assert (type(memory.memory), type(memory.sync)) == (AsyncMemory, LongTermMemory)
            assert memory.memory is memory.memory
            assert memory.sync.aio is memory.sync.aio is memory
            assert type(memory.sync.memory) is Memory
            found = await memory.memory.search("sofa", user_id="a")
            assert [hit.id for hit in found] == [entry.id]
            assert isinstance(memory.sync.retrieve(entry.id, user_id="a"), MemoryEntry)
            return memory.sync

    closed = asyncio.run(scenario())
    with pytest.raises(StoreClosedError):
        closed.count()
