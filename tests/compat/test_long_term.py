import asyncio
import threading
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import (
    EmbedderRequiredError,
    InvalidArgumentError,
    InvalidEntryError,
    StoreClosedError,
)
from mnemic.memory import Memory
from mnemic.model import (
    MemoryEntryUpdate,
    MemoryType,
    Scope,
    TagUsage,
)
from mnemic.repository import RETENTION
from tests.support.clock import NOON, Clock
from tests.support.doors import run, with_memory
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry


@pytest.mark.requirement("R021", "R114", "R115", "R116", "R124")
@with_memory()
async def test_what_was_stored_is_retrieved_by_id_and_found_by_meaning(memory):
    kept = entry()
    assert await memory.store(kept) == kept.id
    await memory.store(entry("ferries leave at noon"))
    assert await memory.retrieve(kept.id) == kept
    found = await memory.search_semantic("which mode the user prefers", min_similarity=0.5)
    assert [(hit.entry, hit.rank) for hit in found] == [(kept, 1)]
    assert 0.5 <= found[0].similarity <= 1
    assert await memory.count(all_users=True) == 2


@pytest.mark.requirement("R024", "C102")
@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.search_semantic(" "),
        lambda memory: memory.search_semantic("q", limit=0),
        lambda memory: memory.search_semantic("q", limit=1001),
        lambda memory: memory.search_semantic("q", limit=True),
        lambda memory: memory.search_semantic("q", min_similarity=1.5),
        lambda memory: memory.search_semantic("q", min_similarity=float("nan")),
        lambda memory: memory.search_semantic("q", user_id="u", all_users=True),
        lambda memory: memory.retrieve("no uuid"),
        lambda memory: memory.retrieve(None),
        lambda memory: memory.update(uuid4(), {"content": "x"}),
        lambda memory: memory.store(None),
        lambda memory: memory.store("text"),
        lambda memory: memory.store(entry(agent_id="other")),
    ],
)
@with_memory()
async def test_wrong_arguments_are_refused_and_change_nothing(memory, call):
    with pytest.raises(InvalidArgumentError):
        await call(memory)
    assert await memory.count() == 0


@pytest.mark.requirement("R110", "R111", "R112", "C100")
@pytest.mark.parametrize(
    "fields",
    [
        {"content": "  "},
        {"content": "a\0b"},
        {"importance": 1.01},
        {"importance": float("nan")},
        {"add_tags": ["a\n"]},
        {"remove_tags": "tag"},
        {"type": "opinion"},
        {"metadata": {"x": float("inf")}},
    ],
)
def test_an_update_is_checked_as_an_entry_is(fields):
    with pytest.raises(InvalidEntryError):
        MemoryEntryUpdate(**fields)


@with_memory()
async def test_two_updates_at_once_lose_nothing_of_each_other(memory):
    kept = entry()
    await memory.store(kept)
    updates = [MemoryEntryUpdate(add_tags=[f"t{at}"], metadata={str(at): at}) for at in range(50)]
    await asyncio.gather(*(memory.update(kept.id, update) for update in updates))
    after = await memory.retrieve(kept.id)
    assert set(after.tags) == {f"t{at}" for at in range(50)}
    assert after.metadata == {str(at): at for at in range(50)}


def test_without_an_embedder_memories_are_stored_updated_and_embedded_later(tmp_path):
    path, kept = tmp_path / "a.db", entry()

    async def without(memory):
        await memory.store(kept)
        await memory.update(kept.id, MemoryEntryUpdate(content="the ferry leaves at noon"))
        with pytest.raises(EmbedderRequiredError):
            await memory.search_semantic("ferry")

    async def with_embedder(memory):
        found = await memory.search_semantic("ferry leaves", min_similarity=0)
        assert [hit.entry.content for hit in found] == ["the ferry leaves at noon"]

    run(without, path, embedder=None)
    run(with_embedder, path)


@pytest.mark.requirement(
    "R037", "R062", "R063", "R064", "R065", "R066", "R067", "R068", "R069", "R128"
)
@with_memory()
async def test_stats_tell_what_is_there(memory):
    assert (await memory.get_stats()).oldest_entry is None
    entries = [
        entry(
            f"memory {number} ø",
            created_at=NOON + timedelta(days=number),
            type=MemoryType.EVENT if number % 2 else MemoryType.FACT,
            tags=["all", "odd"] if number % 2 else ["all", "all"],
            user_id="alice" if number % 3 else None,
        )
        for number in range(10)
    ]
    await memory.store_batch(entries)
    await memory.forget(entries[0].id)
    stats = await memory.get_stats(all_users=True)
    assert (stats.active_entries, stats.forgotten_entries) == (9, 1)
    assert stats.storage_bytes_used == sum(len(one.content.encode()) for one in entries)
    assert (stats.storage_bytes_limit, stats.storage_percent_used) == (None, 0.0)
    assert stats.entries_by_type == {MemoryType.FACT: 4, MemoryType.EVENT: 5}
    assert stats.top_tags == (TagUsage("all", 9), TagUsage("odd", 5))
    assert (stats.oldest_entry, stats.newest_entry) == (
        NOON + timedelta(days=1),
        NOON + timedelta(days=9),
    )
    assert stats.total_embeddings_generated == 10
    assert stats.average_embedding_time_ms > 0


@pytest.mark.requirement("R122", "R129")
def test_a_hundred_stores_at_once_are_all_there_and_all_found(tmp_path):
    async def scenario(memory):
        entries = [entry(f"memory number{number}") for number in range(100)]
        ids = await asyncio.gather(*map(memory.store, entries))
        assert ids == [one.id for one in entries]
        assert await memory.count() == 100
        assert (await memory.get_stats(all_users=True)).total_embeddings_generated == 100
        found = await memory.search_semantic("memory", 1000, 0)
        assert {hit.entry.id for hit in found} == set(ids)

    run(scenario, tmp_path / "a.db")


@pytest.mark.requirement("R008")
def test_one_memory_serves_several_event_loops_at_once(tmp_path):
    memory = AsyncLongTermMemory(tmp_path / "a.db", agent_id="aide", embedder=WordEmbedder())
    failures = []

    def work(worker):
        async def main():
            for number in range(20):
                stored = await memory.store(entry(f"worker{worker} memory {number}"))
                assert await memory.retrieve(stored) is not None
                assert await memory.search_semantic(f"worker{worker}", min_similarity=0)

        try:
            asyncio.run(main())
        except Exception as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert asyncio.run(memory.count()) == 80
    asyncio.run(memory.close())


def test_embedding_does_not_hold_up_the_event_loop():
    entered, leave = threading.Event(), threading.Event()

    class Slow(WordEmbedder):
        def embed(self, texts):
            entered.set()
            assert leave.wait(30)
            return super().embed(texts)

    async def scenario(memory):
        storing = asyncio.create_task(memory.store(entry()))
        assert await asyncio.to_thread(entered.wait, 30)
        assert await memory.count() == 0, "the loop goes on meanwhile"
        leave.set()
        await storing
        assert await memory.count() == 1

    run(scenario, embedder=Slow())


def test_after_closing_every_call_says_so():
    async def main():
        memory = AsyncLongTermMemory(":memory:", agent_id="aide", embedder=WordEmbedder())
        await memory.close()
        await memory.close()
        for call in (
            memory.count(),
            memory.store(entry()),
            memory.retrieve(UUID(int=1)),
            memory.forget(UUID(int=1)),
            memory.restore(UUID(int=1)),
            memory.purge_expired(),
            memory.get_stats(),
            memory.update(UUID(int=1), MemoryEntryUpdate(importance=1.0)),
            memory.search_semantic("q"),
        ):
            with pytest.raises(StoreClosedError):
                await call

    asyncio.run(main())


# The front door


def test_the_front_door_updates_restores_purges_and_counts():
    clock = Clock()
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as memory:
        view = memory.scoped(user_id="alice")
        kept = view.add("likes tea", tags=["drink"])
        changed = view.update(kept.id, content="likes coffee", add_tags=["morning"])
        assert (changed.content, changed.tags) == ("likes coffee", ("drink", "morning"))
        assert view.search("coffee")[0].entry == changed == view.get(kept.id)
        view.delete(kept.id)
        assert view.restore(kept.id)
        assert not view.restore(kept.id)
        view.delete(kept.id)
        clock.now += RETENTION + timedelta(days=1)
        assert (memory.stats().forgotten_entries, view.stats().forgotten_entries) == (0, 1)
        assert (memory.purge(), view.purge()) == (0, 1)
        assert memory.stats(all_users=True).forgotten_entries == 0


def test_the_front_door_names_the_scope_in_which_there_was_nothing_to_change():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        hers = memory.add("hers", user_id="alice")
        for call in (
            lambda: memory.update(hers.id, importance=1.0),
            lambda: memory.update(hers.id),
            lambda: memory.delete(hers.id, permanent=True),
        ):
            with pytest.raises(KeyError, match="agent 'default', no user"):
                call()
        assert not memory.restore(hers.id)
        memory.delete(hers.id, permanent=True, user_id="alice")
        assert memory.count(user_id="alice") == 0


def test_a_scope_of_all_users_names_none():
    assert str(Scope("a", all_users=True)) == "agent 'a', all users"
    with pytest.raises(InvalidArgumentError, match="all_users"):
        Scope("a", "alice", all_users=True)
    with pytest.raises(InvalidArgumentError, match="all_users"):
        Scope("a", all_users=True).narrowed(user_id="alice")
