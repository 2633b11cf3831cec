"""The two front doors are one: what one does the other does, awaited or not."""

import asyncio
from uuid import uuid4

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import EntryNotFoundError, InvalidArgumentError, StoreClosedError
from tests.support.embedders import WordEmbedder


@pytest.mark.parametrize("verb", ["update", "restore", "purge", "list", "delete_all", "stats"])
def test_both_doors_have_what_long_term_memory_adds(verb):
    assert hasattr(Memory, verb)
    assert hasattr(AsyncMemory, verb)


def test_every_verb_works_awaited(tmp_path):
    async def scenario():
        path = tmp_path / "a.db"
        async with AsyncMemory(path, "aide", embedder=WordEmbedder()) as memory:
            kept = await memory.add("red sofa", user_id="a", tags=["x"])
            others = await memory.add_many(["blue chair", "green lamp"], user_id="a")
            found = await memory.search("red", user_id="a", limit=1)
            assert [hit.entry for hit in found] == [kept]
            assert await memory.get(kept.id, user_id="a") == kept
            changed = await memory.update(kept.id, user_id="a", content="red couch")
            assert changed.content == "red couch"
            await memory.touch([kept.id], user_id="a")
            link = await memory.link(kept.id, others[0].id, user_id="a")
            assert await memory.links(kept.id, user_id="a") == [link]
            assert await memory.unlink(kept.id, others[0].id, user_id="a") == 1
            page = await memory.list(user_id="a", filters={"tags": {"contains": "x"}})
            assert [entry.access_count for entry in page] == [2]
            assert await memory.delete(kept.id, user_id="a") == 1
            assert await memory.restore(kept.id, user_id="a")
            assert await memory.count(user_id="a") == 3
            assert await memory.delete_all(user_id="a") == 3
            assert await memory.purge(user_id="a") == 0
            assert (await memory.stats(user_id="a")).forgotten_entries == 3
            assert memory.agent_id == "aide"
        with pytest.raises(StoreClosedError):
            await memory.count()

    asyncio.run(scenario())


def test_an_awaited_view_names_the_scope_and_keeps_it():
    async def scenario():
        async with AsyncMemory(":memory:", embedder=WordEmbedder()) as memory:
            alice = memory.scoped(user_id="alice")
            kept = await alice.add("tea")
            assert (await alice.scoped(session_id="s").add("more")).session_id == "s"
            assert await alice.count() == 2
            assert await memory.count() == 0
            with pytest.raises(InvalidArgumentError, match="bound to 'alice'"):
                await alice.get(kept.id, user_id="bob")
            with pytest.raises(EntryNotFoundError, match="user 'bob'"):
                await memory.get(kept.id, user_id="bob")
            with pytest.raises(EntryNotFoundError):
                await alice.delete(uuid4())

    asyncio.run(scenario())


def test_both_doors_may_have_one_file_open(tmp_path):
    path = tmp_path / "a.db"

    async def scenario():
        async with AsyncMemory(path, embedder=WordEmbedder()) as awaited:
            with Memory(path, embedder=WordEmbedder()) as plain:
                kept = plain.add("red sofa")
                assert (await awaited.search("sofa"))[0].entry == kept
                later = await awaited.add("blue chair")
                assert plain.search("chair")[0].entry == later

    asyncio.run(scenario())
