"""The retrieval service: similar memories, events, logs, doors."""

import asyncio
import logging
import pickle
from uuid import uuid4

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.compat import AsyncLongTermMemory, AsyncRetrievalService, ContextWindow
from mnemic.errors import (
    EntryNotFoundError,
    InvalidArgumentError,
)
from mnemic.model import MemoryQuery
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from tests.support.clock import DAY, NOON, Clock, clock_of
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import (
    QUERY,
    record,
    serve,
    served,
    store_near,
)

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


def test_every_door_gives_the_same_answer(tmp_path):
    path = tmp_path / "a.db"
    embedder, clock = WordEmbedder(512), Clock()
    options = {"embedder": embedder, "clock": clock, "track_access": False}
    with Memory(path, "aide", **options) as memory:
        for user in (None, "alice"):
            memory.add_many(
                [
                    {"content": f"tea number{number} {user}", "importance": number / 10}
                    for number in range(10)
                ],
                user_id=user,
            )
        query = MemoryQuery(query="tea", limit=4, min_relevance=0)

        async def main():
            async with (
                AsyncMemory(path, "aide", **options) as awaited,
                AsyncLongTermMemory(path, agent_id="aide", **options) as long_term,
            ):
                for user in (None, "alice"):
                    given = {} if user is None else {"user_id": user}
                    expected = await AsyncRetrievalService(awaited).retrieve(query, **given)
                    assert len(expected) == 4
                    answers = [
                        memory.retrieve(query, **given),
                        memory.scoped(**given).retrieve(query),
                        await awaited.retrieve(query, **given),
                        await awaited.scoped(**given).retrieve(query),
                        await AsyncRetrievalService(long_term).retrieve(query, **given),
                        await AsyncRetrievalService(memory).retrieve(query, **given),
                        await AsyncRetrievalService(awaited.scoped(**given)).retrieve(query),
                    ]
                    for answer in answers:
                        assert answer.results == expected.results
                        assert answer.total_matches == expected.total_matches == 10
                    windows = [ContextWindow(1000, clock=clock) for _ in range(3)]
                    counts = [
                        memory.scoped(**given).retrieve_to_context(query, windows[0]),
                        await awaited.retrieve_to_context(query, windows[1], **given),
                        await AsyncRetrievalService(awaited).retrieve_to_context(
                            query, windows[2], **given
                        ),
                    ]
                    assert counts == [4, 4, 4]
                    shown = [[item.source_ref for item in window.items()] for window in windows]
                    assert shown[0] == shown[1] == shown[2]

        asyncio.run(main())
        session = memory.scoped(session_id="none such")
        assert len(session.retrieve(query)) == 0
        assert memory.retrieve(query, all_users=True).total_matches == 20
        with pytest.raises(InvalidArgumentError):
            memory.scoped(user_id="alice").retrieve(query, user_id="boris")


@served()
async def test_an_answer_can_be_sent_to_another_process(memory, service):
    await store_near(memory, 0.9)
    result = await service.retrieve(QUERY)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own
    assert list(result) == list(result.results)
