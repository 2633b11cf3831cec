"""Filters and erasure through AsyncLongTermMemory."""

from datetime import timedelta

import pytest

from mnemic.errors import (
    InvalidArgumentError,
)
from mnemic.memory import Memory
from mnemic.model import (
    MemoryFilter,
    MemorySortOrder,
    MemoryStatus,
    MemoryType,
)
from tests.support.clock import NOON
from tests.support.doors import run
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry

# Filters


@pytest.mark.requirement(
    "R031",
    "R038",
    "R039",
    "R040",
    "R041",
    "R045",
    "R046",
    "R047",
    "R048",
    "R049",
    "R050",
    "R051",
    "R052",
    "R053",
    "R054",
    "R055",
    "R056",
)
def test_filters_find_what_they_describe_in_the_order_they_name():
    async def scenario(memory):
        entries = [
            entry(
                f"note {number} Straße",
                created_at=NOON + timedelta(hours=number),
                type=MemoryType.EVENT if number % 2 else MemoryType.FACT,
                importance=number / 10,
                tags=["even"] if number % 2 == 0 else ["odd", "prime"],
                metadata={"number": number},
                last_accessed_at=NOON + timedelta(days=1) if number == 4 else None,
            )
            for number in range(10)
        ]
        await memory.store_batch(entries)
        await memory.forget(entries[9].id)

        def numbers(found):
            return [one.metadata["number"] for one in found]

        async def found(**fields):
            return numbers(await memory.search_by_filter(MemoryFilter(**fields)))

        assert await found(types=["event"], sort_by=MemorySortOrder.CREATED_ASCENDING) == [
            1,
            3,
            5,
            7,
        ]
        assert await found(tags=["odd", "prime"], min_importance=0.5) == [7, 5]
        assert await found(any_tags=["even", "prime"], limit=2, offset=1) == [7, 6]
        assert await found(created_after=NOON, created_before=NOON + timedelta(hours=2)) == [1, 0]
        assert await found(content_contains="STRASSE", limit=1) == [8]
        assert await found(include_forgotten=True, limit=1) == [9]
        assert await found(filters={"NOT": {"metadata.number": {"gt": 1}}}) == [1, 0]
        dicts = await memory.search_by_filter({"metadata.number": {"in": [2, 9]}})
        assert numbers(dicts) == [2]
        assert numbers(await memory.get_by_type("fact", 2)) == [8, 6]
        assert numbers(await memory.get_by_tag("prime")) == [7, 5, 3, 1]
        assert numbers(await memory.get_recent(2)) == [4, 8]
        assert numbers(await memory.get_important(2)) == [8, 7]
        assert await memory.search_by_filter({}, user_id="alice") == []

    run(scenario)


@pytest.mark.requirement("C161")
def test_archived_memories_are_listed_only_when_a_status_is_asked_for():
    async def scenario(memory):
        await memory.store_batch([entry("kept"), entry("old", status=MemoryStatus.ARCHIVED)])
        assert [one.content for one in await memory.search_by_filter({})] == ["kept"]
        asked = await memory.search_by_filter({"NOT": {"status": "active"}})
        assert [one.content for one in asked] == ["old"]

    run(scenario)


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (
            lambda memory: memory.search_by_filter({"OR": [{}, {"metadata.age": {"near": 1}}]}),
            "OR[1]",
        ),
        (lambda memory: memory.search_by_filter({"colour": "red"}), "colour"),
        (lambda memory: memory.get_by_type("opinion"), "opinion"),
        (lambda memory: memory.get_important(0), "limit"),
        (lambda memory: memory.get_recent(1001), "limit"),
    ],
)
def test_a_filter_that_cannot_be_understood_names_the_place(call, place):
    async def scenario(memory):
        with pytest.raises(InvalidArgumentError) as raised:
            await call(memory)
        assert place in str(raised.value)

    run(scenario)


# A person's wish to be forgotten


@pytest.mark.requirement("C187")
def test_all_of_a_user_is_deleted_and_nothing_of_another(tmp_path):
    async def scenario(memory):
        hers = [entry(f"hers {number}", user_id="alice") for number in range(5)]
        archived = entry("archived", user_id="alice", status=MemoryStatus.ARCHIVED)
        others = [entry("his", user_id="bob"), entry("nobody's")]
        await memory.store_batch([*hers, archived, *others])
        await memory.forget(hers[0].id, user_id="alice")
        assert await memory.delete_all(user_id="alice") == 5
        assert await memory.delete_all(user_id="alice") == 0
        assert await memory.search_semantic("hers", min_similarity=0, user_id="alice") == []
        assert await memory.restore(hers[1].id, user_id="alice")
        assert await memory.delete_all(user_id="alice", permanent=True) == 6
        ids = [one.id for one in (*hers, archived)]
        assert await memory.retrieve_batch(ids, all_users=True, include_forgotten=True) == {}
        assert await memory.count(all_users=True) == 2
        assert (await memory.get_stats(all_users=True)).storage_bytes_used == len("hisnobody's")

    run(scenario, tmp_path / "a.db")


def test_the_front_door_deletes_all_of_a_scope_and_no_more():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        for session in ("one", "two"):
            memory.add_many(["a", "b"], user_id="alice", session_id=session)
        memory.add("c")
        assert memory.scoped(user_id="alice").delete_all(session_id="one") == 2
        assert memory.count(user_id="alice") == 2
        assert memory.delete_all(permanent=True) == 1
        assert (memory.count(), memory.count(user_id="alice")) == (0, 2)
