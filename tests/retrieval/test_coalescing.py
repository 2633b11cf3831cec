"""Concurrent identical queries are computed once."""

import asyncio
import logging
import threading

import pytest

from mnemic import Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import EmbeddingError
from mnemic.observability.events import MemoryRetrievalCompletedEvent
from tests.support.clock import Clock
from tests.support.retrieval import QUERY, Gated, found, served, store_near, until


async def ask_at_once(memory, service):
    """Return what five tasks get that ask the same before the query is embedded."""
    tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
    await until(memory.embedder.asked.is_set)
    await asyncio.sleep(0.05)
    memory.embedder.gate.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.requirement("C150")
@served(memory={"embedder": Gated()})
async def test_where_the_first_fails_all_fail_and_nothing_is_kept(memory, service):
    await store_near(memory, 0.9)
    embedder = memory.embedder
    embedder.error = RuntimeError("no model")
    outcomes = await ask_at_once(memory, service)
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


@pytest.mark.requirement("C006")
@served(memory={"embedder": Gated()})
async def test_hits_are_told_alike_in_results_statistics_events_and_logs(memory, service, caplog):
    caplog.set_level(logging.DEBUG, "mnemic.retrieval")
    heard = []
    memory.events.subscribe(MemoryRetrievalCompletedEvent, heard.append)
    await store_near(memory, 0.9)
    results = await ask_at_once(memory, service)
    assert memory.embedder.queries == 1
    assert {tuple(found(result)) for result in results} == {("near 0.9",)}
    hits = sum(event.from_cache for event in heard)
    assert hits == 4
    assert caplog.text.count("Cache hit for retrieval query") == hits
    assert (await service.get_stats()).cache_hit_rate == pytest.approx(80)
