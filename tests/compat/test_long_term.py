import asyncio
import threading
from functools import partial
from uuid import UUID, uuid4

import pytest

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError, StoreClosedError
from mnemic.model import MemoryEntryUpdate, Scope
from tests.support.doors import run, with_memory
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.threads import run_together


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


@pytest.mark.requirement("R008")
def test_one_memory_serves_several_event_loops_at_once(tmp_path):
    memory = AsyncLongTermMemory(tmp_path / "a.db", agent_id="aide", embedder=WordEmbedder())

    def work(worker):
        async def main():
            for number in range(20):
                stored = await memory.store(entry(f"worker{worker} memory {number}"))
                assert await memory.retrieve(stored) is not None
                assert await memory.search_semantic(f"worker{worker}", min_similarity=0)

        asyncio.run(main())

    run_together(*(partial(work, number) for number in range(4)))
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


def test_a_scope_of_all_users_names_none():
    assert str(Scope("a", all_users=True)) == "agent 'a', all users"
    with pytest.raises(InvalidArgumentError, match="all_users"):
        Scope("a", "alice", all_users=True)
    with pytest.raises(InvalidArgumentError, match="all_users"):
        Scope("a", all_users=True).narrowed(user_id="alice")
