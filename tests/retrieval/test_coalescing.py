"""Concurrent identical queries are computed once."""

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemic import Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import (
    EmbeddingError,
)
from mnemic.observability.events import (
    MemoryRetrievalCompletedEvent,
)
from tests.support.clock import Clock
from tests.support.retrieval import (
    QUERY,
    Gated,
    found,
    served,
    store_near,
    until,
)


@served(memory={"embedder": Gated()})
async def test_tasks_that_ask_the_same_at_once_embed_once(memory, service):
    await store_near(memory, 0.9)
    embedder = memory.embedder
    tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(20)]
    await until(embedder.asked.is_set)
    await asyncio.sleep(0.05)
    embedder.gate.set()
    results = await asyncio.gather(*tasks)
    assert embedder.queries == 1
    assert {tuple(found(result)) for result in results} == {("near 0.9",)}
    assert sum(not result.from_cache for result in results) == 1
    stats = await service.get_stats()
    assert stats.total_retrievals == 20
    # Whoever was answered from what another one made has found an answer.
    assert stats.cache_hit_rate == pytest.approx(95)


def test_threads_that_ask_the_same_at_once_embed_once():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(memory.retrieve, QUERY) for _ in range(8)]
            assert embedder.asked.wait(30)
            time.sleep(0.1)
            embedder.gate.set()
            results = [each.result(30) for each in asked]
    assert embedder.queries == 1
    assert {tuple(found(result)) for result in results} == {("one",)}
    assert sum(not result.from_cache for result in results) == 1


@pytest.mark.requirement("C150")
@served(memory={"embedder": Gated()})
async def test_where_the_first_fails_all_fail_and_nothing_is_kept(memory, service):
    await store_near(memory, 0.9)
    embedder = memory.embedder
    embedder.error = RuntimeError("no model")
    tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
    await until(embedder.asked.is_set)
    await asyncio.sleep(0.05)
    embedder.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, EmbeddingError) for outcome in outcomes)
    assert service._engine._cache._flights == {}
    assert (await service.get_stats()).total_retrievals == 0
    embedder.error = None
    assert found(await service.retrieve(QUERY)) == ["near 0.9"]


def test_a_plain_call_in_the_loop_of_a_task_that_asks_the_same_does_not_wait_for_it():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = AsyncRetrievalService(memory)

        async def main():
            task = asyncio.create_task(service.retrieve(QUERY))
            await until(embedder.asked.is_set)
            threading.Timer(0.1, embedder.gate.set).start()
            plain = memory._services
            plain._retrieval_engine = service._engine  # the same cache at both doors
            assert found(memory.retrieve(QUERY)) == ["one"]
            assert found(await task) == ["one"]
            assert memory.retrieve(QUERY).from_cache

        asyncio.run(asyncio.wait_for(main(), 30))


def test_a_plain_call_waits_for_one_of_another_thread_and_a_task_for_both():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = AsyncRetrievalService(memory)
        memory._services._retrieval_engine = service._engine
        with ThreadPoolExecutor(2) as pool:

            async def main():
                plain = [pool.submit(memory.retrieve, QUERY) for _ in range(2)]
                await until(embedder.asked.is_set)
                task = asyncio.create_task(service.retrieve(QUERY))
                await asyncio.sleep(0.05)
                embedder.gate.set()
                assert found(await task) == ["one"]
                assert [found(each.result(30)) for each in plain] == [["one"], ["one"]]

            asyncio.run(asyncio.wait_for(main(), 30))
    assert embedder.queries == 1


@pytest.mark.requirement("C006")
@served(memory={"embedder": Gated()})
async def test_hits_are_told_alike_in_results_statistics_events_and_logs(memory, service, caplog):
    caplog.set_level(logging.DEBUG, "mnemic.retrieval")
    heard = []
    memory.events.subscribe(MemoryRetrievalCompletedEvent, heard.append)
    await store_near(memory, 0.9)
    tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
    await until(memory.embedder.asked.is_set)
    await asyncio.sleep(0.05)
    memory.embedder.gate.set()
    await asyncio.gather(*tasks)
    hits = sum(event.from_cache for event in heard)
    assert hits == 4
    assert caplog.text.count("Cache hit for retrieval query") == hits
    assert (await service.get_stats()).cache_hit_rate == pytest.approx(80)
