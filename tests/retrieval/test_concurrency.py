"""Retrievals beside each other and beside writers: no foreign memory, no hang, no odd error."""

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemic import AsyncMemory, Memory, MemoryFilter
from mnemic.compat import AsyncRetrievalService, ContextWindow
from mnemic.model import MemoryQuery
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder

USERS = ("alice", "boris", None)
TOPICS = ("tea", "sofa", "ferry")
QUERIES = tuple(
    query
    for topic in TOPICS
    for query in (
        MemoryQuery(query=topic, min_relevance=0, limit=5),
        MemoryQuery(query=topic, min_relevance=0, limit=3, context_boost="tea ferry"),
        MemoryQuery(query=topic, min_relevance=0, use_cache=False, expand_query=True),
        MemoryQuery(query=topic, search_type="hybrid", filters={"importance": {"gte": 0.1}}),
        MemoryQuery(filters=MemoryFilter(content_contains=topic, include_forgotten=True)),
    )
)


def memories_of(user, count=12):
    return [f"{TOPICS[number % 3]} of {user} number{number}" for number in range(count)]


def check(result, user):
    """Refuse an answer that is not of this user or not whole."""
    assert all(one.entry.user_id == user for one in result)
    assert all(f" of {user} " in one.entry.content for one in result)
    assert result.total_matches >= len(result)
    scores = [one.relevance_score for one in result]
    assert scores == sorted(scores, reverse=True)
    ids = [one.entry.id for one in result]
    assert len(ids) == len(set(ids))


def opened(kind, path):
    return kind(path, "aide", embedder=WordEmbedder(64), clock=Clock())


def fill(path):
    with opened(Memory, path) as memory:
        for user in USERS:
            memory.add_many(memories_of(user), user_id=user)


def test_threads_beside_writers_see_their_users_memories_alone(path):
    fill(path)
    stop = threading.Event()

    def write(user):
        with opened(Memory, path) as own:  # as another process would
            for number in itertools.count():
                if stop.wait(0.005):
                    return
                one = own.add(f"tea of {user} added{number}", user_id=user)
                own.delete(one.id, user_id=user)

    with opened(Memory, path) as memory, ThreadPoolExecutor(10) as pool:
        service = AsyncRetrievalService(memory, cache_size=8)

        def read(number):
            user, query = USERS[number % 3], QUERIES[number % len(QUERIES)]
            check(memory.retrieve(query, user_id=user), user)
            check(asyncio.run(service.retrieve(query, user_id=user)), user)
            window = ContextWindow(500)
            memory.retrieve_to_context(query, window, user_id=user)
            assert all(f" of {user} " in item.content for item in window.items())
            block = memory.context(TOPICS[number % 3], user_id=user, max_tokens=60)
            assert all(one.user_id == user for one in block.memories)

        writers = [pool.submit(write, user) for user in USERS[:2]]
        try:
            for each in [pool.submit(read, number) for number in range(200)]:
                each.result(60)
        finally:
            stop.set()
        for each in writers:
            each.result(60)
        assert service._engine._cache._flights == {}


@pytest.mark.requirement("C005")
def test_what_is_forgotten_is_not_in_any_answer_that_begins_later(path):
    query = MemoryQuery(query="tea", min_relevance=0, limit=1000)

    async def main():
        async with opened(AsyncMemory, path) as memory:
            service = AsyncRetrievalService(memory)
            stored = await memory.add_many([f"tea number{number}" for number in range(60)])
            gone = set()

            async def forget():
                for one in stored[:-1]:
                    await memory.delete(one.id)
                    gone.add(one.id)
                    await asyncio.sleep(0)

            async def read():
                while len(gone) < len(stored) - 1:
                    before = frozenset(gone)
                    result = await service.retrieve(query)
                    assert not before & {one.entry.id for one in result}
                    await asyncio.sleep(0)  # an answer from the cache does not wait for anything

            await asyncio.gather(forget(), *(read() for _ in range(8)))
            assert len(await service.retrieve(query)) == 1

    asyncio.run(asyncio.wait_for(main(), 120))


async def is_cancelled(coroutine, at):
    """Step through a coroutine; return whether it was cancelled at an await before it ended."""
    task = asyncio.ensure_future(coroutine)
    while not task.done():
        if at == 0:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return True
        at -= 1
        await asyncio.sleep(0.0005)
    return False


def test_cancelled_at_every_step_the_next_call_is_answered():
    async def main():
        async with opened(AsyncMemory, ":memory:") as memory:
            service = AsyncRetrievalService(memory)
            await memory.add_many(memories_of("alice"), user_id="alice")
            cancelled = 0
            for number, at in enumerate([*range(30), 10**9]):
                query = MemoryQuery(
                    query="tea", min_relevance=0, expand_query=True, limit=number + 1
                )
                window = ContextWindow(1000)
                call = service.retrieve_to_context(query, window, user_id="alice")
                cancelled += await is_cancelled(call, at)
                assert service._engine._cache._flights == {}
                check(await service.retrieve(query, user_id="alice"), "alice")
            assert 0 < cancelled <= 30

    asyncio.run(asyncio.wait_for(main(), 120))
