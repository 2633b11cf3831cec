from datetime import timedelta

import pytest

from mnemic import MemoryEntry
from mnemic.memory import Memory
from mnemic.model import MemoryEntryUpdate, MemoryFilter
from mnemic.repository import RETENTION
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import run
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents, entry


def test_from_its_moment_on_an_expired_memory_is_found_in_no_way():
    clock = Clock()

    async def scenario(memory):
        brief = entry("the train leaves from platform nine", expires_at=NOON + HOUR, tags=["trip"])
        lasting = entry("the train is red")
        await memory.store_batch([brief, lasting])

        async def ways():
            return [
                await memory.retrieve(brief.id) is not None,
                brief.id in await memory.retrieve_batch([brief.id, lasting.id]),
                any(
                    hit.entry.id == brief.id
                    for hit in await memory.search_semantic("train platform", min_similarity=0)
                ),
                brief in await memory.search_by_filter({"content": {"contains": "train"}}),
                brief in await memory.get_by_tag("trip"),
                brief in (await memory.list()).entries,
                await memory.count() == 2,
                (await memory.get_stats()).active_entries == 2,
                await memory.update(brief.id, MemoryEntryUpdate(importance=0.5)),
            ]

        clock.now = NOON + HOUR - timedelta(microseconds=1)
        assert await ways() == [True] * 9
        clock.now = NOON + HOUR
        assert await ways() == [False] * 9
        found = await memory.search_semantic("train platform", min_similarity=0)
        assert contents(hit.entry for hit in found) == ["the train is red"]

    run(scenario, clock=clock)


def test_an_expired_memory_is_shown_where_forgotten_ones_are_and_counted_apart():
    clock = Clock()

    async def scenario(memory):
        brief, forgotten = entry("brief", expires_at=NOON + HOUR), entry("forgotten")
        await memory.store_batch([brief, forgotten, entry("lasting")])
        await memory.forget(forgotten.id)
        clock.now = NOON + HOUR
        assert await memory.retrieve(brief.id, include_forgotten=True) == brief
        shown = await memory.search_by_filter(MemoryFilter(include_forgotten=True))
        assert sorted(contents(shown)) == ["brief", "forgotten", "lasting"]
        stats = await memory.get_stats()
        counts = (stats.active_entries, stats.expired_entries, stats.forgotten_entries)
        assert counts == (1, 1, 1)

    run(scenario, clock=clock)


def test_an_expired_memory_is_not_restored_and_is_purged_ninety_days_later():
    clock = Clock()

    async def scenario(memory):
        brief = entry("brief", expires_at=NOON + HOUR)
        await memory.store(brief)
        clock.now = NOON + HOUR + RETENTION
        assert not await memory.restore(brief.id)
        assert await memory.purge_expired() == 0
        clock.now += timedelta(microseconds=1)
        assert await memory.purge_expired() == 1
        assert await memory.retrieve(brief.id, include_forgotten=True) is None

    run(scenario, clock=clock)


def test_a_memory_that_has_expired_already_may_be_stored_and_is_not_found():
    async def scenario(memory):
        await memory.store(entry("over", expires_at=NOON - HOUR))
        assert await memory.search_semantic("over", min_similarity=0) == []
        assert await memory.count() == 0

    run(scenario, clock=Clock())


def test_a_reopened_memory_knows_when_its_entries_end(tmp_path):
    clock = Clock()
    options = {"embedder": WordEmbedder(), "clock": clock}
    with Memory(tmp_path / "a.db", **options) as memory:
        memory.add(MemoryEntry("brief", expires_at="2026-05-01T13:00:00Z"))
        memory.add("lasting")
    with Memory(tmp_path / "a.db", **options) as memory:
        assert sorted(hit.content for hit in memory.search("x")) == ["brief", "lasting"]
        clock.now = NOON + HOUR
        assert [hit.content for hit in memory.search("x")] == ["lasting"]
        with pytest.raises(ValueError, match="expires_at is not an ISO 8601 time"):
            memory.add(MemoryEntry("x", expires_at="tomorrow"))
