"""The retrieval service: similar memories, events, logs, doors."""

import asyncio
import logging
import pickle
from uuid import uuid4

import pytest

from mnemic import Memory
from mnemic.compat import AsyncLongTermMemory, AsyncRetrievalService, ContextWindow
from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.model import MemoryQuery
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from tests.support.clock import DAY, NOON, Clock, clock_of
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import QUERY, record, serve, served, store_near

# Similar memories


@pytest.mark.requirement("C027")
@served()
async def test_nothing_is_similar_to_a_memory_that_is_not_there(memory, service):
    (gone, near) = await store_near(memory, 0.9, 0.8)
    (of_alice,) = await memory.add_many([record("of alice", user="alice")])
    (brief,) = await memory.add_many([record("brief", expires_at=NOON + DAY)])
    await memory.delete(gone.id)
    clock_of(memory).now += 2 * DAY
    for missing in (uuid4(), gone.id, of_alice.id, brief.id):
        with pytest.raises(EntryNotFoundError) as unknown:
            await service.find_similar(missing)
        assert isinstance(unknown.value, KeyError)
        assert await service.find_similar(missing, strict=False) == []
    with pytest.raises(EntryNotFoundError):
        await service.find_similar(gone.id, user_id="alice")
    assert await service.find_similar(of_alice.id, user_id="alice") == []
    everybody = await service.find_similar(of_alice.id, all_users=True)
    assert [hit.entry.content for hit in everybody] == ["near 0.8"]
    for wrong in ("no id", None, 3):
        with pytest.raises(InvalidArgumentError):
            await service.find_similar(wrong)
    for limit in (0, 1001, True, None):
        with pytest.raises(InvalidArgumentError, match="limit"):
            await service.find_similar(of_alice.id, limit)
    for excluded in (5, "near", [5]):
        with pytest.raises(InvalidArgumentError):
            await service.find_similar(near.id, exclude_ids=excluded)
    assert await service.find_similar(near.id, exclude_ids=None) == []
    with pytest.raises(InvalidArgumentError, match="strict"):
        await service.find_similar(near.id, strict="no")


# Events, logs and statistics


@pytest.mark.requirement("C028", "C199")
@pytest.mark.parametrize(
    ("log_content", "log_queries"), [(False, True), (True, False), (False, False)]
)
def test_queries_are_neither_logged_nor_told_unless_memory_and_service_allow_it(
    caplog, log_content, log_queries
):
    caplog.set_level(logging.DEBUG, "mnemic")

    async def scenario(memory, service):
        heard = []
        for kind in (MemoryRetrievalCompletedEvent, ContextAugmentedEvent, QueryExpandedEvent):
            memory.events.subscribe(kind, heard.append)
        await memory.add(memory.embedder.near("content", 0.9))
        query = MemoryQuery(query="private words", expand_query=True)
        for door in (service,) if log_content else (service, memory):
            heard.clear()
            await door.retrieve(query)
            await door.retrieve(query)
            await door.retrieve_to_context(query, ContextWindow(1000))
            assert len(heard) >= 4
            assert "private" not in repr(heard)
            assert {event.query for event in heard if hasattr(event, "query")} == {None}
        assert "private" not in caplog.text
        assert "content" not in " ".join(one.getMessage() for one in caplog.records)
        assert "<13 characters>" in caplog.text

    serve(scenario, log_queries=log_queries, memory={"log_content": log_content})


@pytest.mark.requirement("C028")
@served(memory={"log_content": True})
async def test_the_front_door_tells_queries_where_contents_may_be_told(memory, caplog):
    caplog.set_level(logging.DEBUG, "mnemic.retrieval")
    await memory.retrieve(QUERY)
    assert "for query 'query'" in caplog.text


# The doors.


def answer_of(called):
    return asyncio.run(called) if asyncio.iscoroutine(called) else called


def test_every_door_gives_the_same_answer(path):
    options = {"embedder": WordEmbedder(512), "clock": Clock(), "track_access": False}
    query = MemoryQuery(query="tea", limit=4, min_relevance=0)
    long_term = AsyncLongTermMemory(path, agent_id="aide", **options)
    with Memory(path, "aide", **options) as memory:
        for given in ({}, {"user_id": "alice"}):
            view = memory.scoped(**given)
            view.add_many(
                {"content": f"tea number{number} {given}", "importance": number / 10}
                for number in range(10)
            )
            doors = [(door, {}) for door in (view, view.aio, AsyncRetrievalService(view))]
            services = [AsyncRetrievalService(door) for door in (memory, memory.aio, long_term)]
            doors += [(door, given) for door in (memory, memory.aio, *services)]
            answers, shown = [], set()
            for door, named in doors:
                answers.append(answer_of(door.retrieve(query, **named)))
                window = ContextWindow(1000)
                assert answer_of(door.retrieve_to_context(query, window, **named)) == 4
                shown.add(tuple(item.source_ref for item in window.items()))
            for answer in answers:
                assert answer.results == answers[0].results
                assert (len(answer), answer.total_matches) == (4, 10)
            assert len(shown) == 1
        assert len(memory.scoped(session_id="none such").retrieve(query)) == 0
        assert memory.retrieve(query, all_users=True).total_matches == 20
        with pytest.raises(InvalidArgumentError):
            view.retrieve(query, user_id="boris")
    asyncio.run(long_term.close())


@served()
async def test_an_answer_can_be_sent_to_another_process(memory, service):
    await store_near(memory, 0.9)
    result = await service.retrieve(QUERY)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own
    assert list(result) == list(result.results)
