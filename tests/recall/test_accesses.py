"""Accesses that recalls count."""

import asyncio
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from uuid import uuid4

import apsw
import pytest

from mnemic.errors import InvalidArgumentError, StoreBusyError, StoreError, StoreFullError
from mnemic.model import MemoryRetrieverOptions, Scope
from mnemic.recall import AsyncMemoryRetriever
from tests.support.clock import DAY, HOUR, NOON, Clock, clock_of
from tests.support.entries import uid
from tests.support.recall import (
    MODES,
    UNTRACKED,
    asked,
    counts,
    mine,
    opened,
    recalling,
    run,
    texts,
)
from tests.support.threads import run_together

START = uid(77)


EVERY_WAY = {
    "relevant": lambda retriever: retriever.recall("q", user_id="u"),
    "recent": lambda retriever: retriever.recall("", user_id="u", mode="recent"),
    "important": lambda retriever: retriever.recall("", user_id="u", mode="important"),
    "frequent": lambda retriever: retriever.recall("", user_id="u", mode="frequent"),
    "type": lambda retriever: retriever.recall_by_type("fact", "u"),
    "temporal": lambda retriever: retriever.recall_temporal(NOON, NOON, user_id="u"),
    "topic": lambda retriever: retriever.recall_temporal(NOON, NOON, "q", user_id="u"),
    "linked": lambda retriever: retriever.recall_linked(START, user_id="u"),
    "contradictions": lambda retriever: retriever.find_contradictions("q", "u", min_confidence=0),
}
every_way = pytest.mark.parametrize("way", EVERY_WAY)


async def store_two(memory):
    start = mine("start", id=START, type="event", created_at=NOON - DAY)
    one, two = mine("one", access_count=5), mine("two", last_accessed_at=NOON - HOUR)
    await memory.store_batch([start, one, two])
    for other in (one, two):
        await memory.link(start.id, other.id, user_id="u")


async def accesses(memory):
    found = await memory.search_by_filter({"type": "fact"}, user_id="u")
    return {each.content: each.access_count for each in found}


@pytest.mark.requirement("C068", "R274", "R279")
@every_way
@recalling()
async def test_every_recall_is_one_access_and_shows_what_was_before(memory, retriever, way):
    await store_two(memory)
    clock = clock_of(memory)
    clock.now += HOUR
    found = await EVERY_WAY[way](retriever)
    shown = {
        each.memory.content: (each.memory.access_count, each.memory.last_accessed_at)
        for each in found
        if each.memory.content != "start"
    }
    assert shown == {"one": (5, None), "two": (0, NOON - HOUR)}
    assert await accesses(memory) == {"one": 6, "two": 1}
    times = {
        each.last_accessed_at
        for each in await memory.search_by_filter({"type": "fact"}, user_id="u")
    }
    assert times == {clock.now}
    await EVERY_WAY[way](retriever)
    assert await accesses(memory) == {"one": 7, "two": 2}


@pytest.mark.requirement("C068", "R274")
def test_a_check_for_contradictions_of_a_memory_to_store_is_no_access():
    with opened() as memory:
        memory.add("she is allergic to nuts")
        assert memory.add("she is not allergic to nuts", check="contradictions").contradictions
        assert [entry.access_count for entry in memory.list()] == [0, 0]


@pytest.mark.requirement("C068")
@every_way
@recalling()
async def test_accesses_of_a_recall_are_noted_together_and_after_the_answer(
    memory, retriever, way, monkeypatch
):
    await store_two(memory)
    store = memory.repository._store
    recorded, touch = [], store.touch

    def noting(agent_id, rows, now):
        recorded.append(list(rows))
        touch(agent_id, rows, now)

    monkeypatch.setattr(store, "touch", noting)
    found = await EVERY_WAY[way](retriever)
    locate = partial(memory.repository.reader.locate, Scope(memory.scope.agent_id, "u"))
    assert recorded == [[locate(each.memory.id).row for each in found]]


@pytest.mark.requirement("C067", "R249")
@every_way
def test_nothing_is_counted_where_accesses_are_not_tracked(way):
    async def scenario(memory, retriever):
        await store_two(memory)
        await EVERY_WAY[way](retriever)
        assert await accesses(memory) == {"one": 5, "two": 0}

    run(scenario, options=UNTRACKED)
    run(scenario, track_access=False)


@pytest.mark.requirement("C067")
@every_way
@pytest.mark.parametrize("salience_weight", [0.4, 0.0])
def test_one_access_is_counted_in_an_interval(way, salience_weight):
    clock = Clock()

    async def scenario(memory, retriever):
        await store_two(memory)  # two was accessed an hour ago
        for _ in range(3):
            await EVERY_WAY[way](retriever)
        assert await accesses(memory) == {"one": 6, "two": 0}
        clock.now = NOON + HOUR - timedelta(microseconds=1)
        await EVERY_WAY[way](retriever)
        assert await accesses(memory) == {"one": 6, "two": 0}
        clock.now = NOON + HOUR
        await EVERY_WAY[way](retriever)
        await EVERY_WAY[way](retriever)
        assert await accesses(memory) == {"one": 6, "two": 1}
        clock.now = NOON + 2 * HOUR
        await EVERY_WAY[way](retriever)
        assert await accesses(memory) == {"one": 7, "two": 1}

    options = MemoryRetrieverOptions(
        salience_weight=salience_weight, access_interval=timedelta(hours=2)
    )
    run(scenario, options=options, clock=clock)


def test_of_recalls_in_threads_one_is_counted_in_an_interval(path):
    with opened(path) as memory:
        kept = memory.add("one", user_id="u")
        options = MemoryRetrieverOptions(access_interval=timedelta(days=1))

        def recall():
            retriever = AsyncMemoryRetriever(memory, options)
            for _ in range(5):
                assert asyncio.run(retriever.recall("one", user_id="u"))

        run_together(*[recall] * 8)
        (entry,) = memory.list(user_id="u", filters={"access_count": {"gte": 0}})
        assert (entry.id, entry.access_count) == (kept.id, 1)


@recalling(options=MemoryRetrieverOptions(access_interval=60))
async def test_a_memory_read_by_its_id_in_between_is_not_counted_again(memory, retriever):
    kept = mine("one")
    await memory.store(kept)
    await retriever.recall("one", user_id="u")
    await memory.retrieve(kept.id, user_id="u")
    for _ in range(3):
        await retriever.recall("one", user_id="u")
    assert await accesses(memory) == {"one": 2}


def test_an_interval_may_be_given_in_seconds():
    assert MemoryRetrieverOptions(access_interval=90).access_interval == timedelta(seconds=90)


@pytest.mark.requirement("C068")
@every_way
def test_a_recall_does_not_fail_because_accesses_cannot_be_written(path, way):
    async def scenario(memory, retriever):
        await store_two(memory)
        memory.repository._store._connections.writer.set_busy_timeout(1)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            assert {"one", "two"} <= set(texts(await EVERY_WAY[way](retriever)))
        other.execute("ROLLBACK")
        other.close()
        assert await accesses(memory) == {"one": 7, "two": 2}

    run(scenario, path)


@pytest.mark.requirement("C068")
@every_way
@pytest.mark.parametrize("failure", [StoreBusyError, StoreFullError, StoreError])
@pytest.mark.parametrize("interval", [0, 60])
def test_no_failure_to_write_accesses_fails_a_recall(way, failure, interval, monkeypatch):
    async def scenario(memory, retriever):
        await store_two(memory)
        await EVERY_WAY[way](retriever)
        failed = Future()
        failed.set_exception(failure("not now"))
        with monkeypatch.context() as patched:
            patched.setattr(memory.repository._store, "write_accesses", lambda: failed)
            assert {"one", "two"} <= set(texts(await EVERY_WAY[way](retriever)))

    run(scenario, options=MemoryRetrieverOptions(access_interval=interval))


def test_memories_that_may_only_be_read_are_recalled(path):
    with opened(path) as memory:
        one = memory.add("one", user_id="u")
        two = memory.add("two", user_id="u")
        memory.link(one.id, two.id, user_id="u")
    with opened(path, read_only=True) as memory:
        tracked = MemoryRetrieverOptions()
        for mode in MODES:
            found = asked(memory, "recall", "q", user_id="u", mode=mode, options=tracked)
            assert len(found) == 2
        found = asked(memory, "recall_linked", one.id, user_id="u", options=tracked)
        assert texts(found) == ["two"]
        assert memory.get(one.id, user_id="u").access_count == 0


@pytest.mark.requirement("C067")
@recalling(options=UNTRACKED)
async def test_use_is_recorded_by_id(memory, retriever):
    one, two = mine("one"), mine("two")
    await memory.store_batch([one, two])
    await retriever.recall("q", user_id="u")
    assert await counts(memory) == {"one": 0, "two": 0}
    await retriever.record_use([one.id, str(one.id), uuid4()], "u")
    await retriever.record_use([], "u")
    assert await counts(memory) == {"one": 1, "two": 0}
    with pytest.raises(InvalidArgumentError):
        await retriever.record_use(str(one.id), "u")
