"""Each door leads to the other door of the same open memory."""

import asyncio

import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory, LongTermMemory
from mnemic.errors import StoreClosedError
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
