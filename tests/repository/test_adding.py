"""Writes that are repeated: keys and duplicates."""

import asyncio

import pytest

from mnemic.errors import DuplicateEntryError, InvalidArgumentError
from mnemic.memory import Memory
from mnemic.observability.events import MemoryStoredEvent
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import run
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents, entry


def test_a_key_used_again_returns_the_first_memory_and_stores_nothing():
    async def scenario(memory):
        heard = []
        memory.events.subscribe(MemoryStoredEvent, heard.append)
        first = await memory.store(entry("tea"), idempotency_key="turn-7")
        assert await memory.store(entry("tea"), idempotency_key="turn-7") == first
        assert await memory.count() == 1
        assert len(heard) == 1
        await memory.forget(first)
        assert await memory.store(entry("tea"), idempotency_key="turn-7") == first
        assert await memory.count() == 0
        await memory.forget(first, permanent=True)
        assert await memory.store(entry("tea"), idempotency_key="turn-7") != first

    run(scenario)


def test_a_key_belongs_to_one_content_of_one_user():
    async def scenario(memory):
        first = await memory.store(entry("tea", user_id="a"), idempotency_key="k")
        with pytest.raises(DuplicateEntryError, match="'k' was used for another content"):
            await memory.store(entry("coffee", user_id="a"), idempotency_key="k")
        others = {
            await memory.store(entry("coffee", user_id=user), idempotency_key="k")
            for user in ("b", None)
        }
        assert len(others | {first}) == 3
        with pytest.raises(InvalidArgumentError, match="idempotency_key"):
            await memory.store(entry(), idempotency_key="")

    run(scenario)


def test_a_batch_has_a_key_for_each_and_knows_its_own():
    async def scenario(memory):
        texts = ("tea", "coffee", "tea")
        keys = ["a", None, "a"]
        ids = await memory.store_batch([entry(text) for text in texts], idempotency_keys=keys)
        assert ids[0] == ids[2] != ids[1]
        again = await memory.store_batch([entry(text) for text in texts], idempotency_keys=keys)
        assert (again[0], again[2]) == (ids[0], ids[0])
        assert again[1] not in ids
        with pytest.raises(InvalidArgumentError, match="2 entries come with 1"):
            await memory.store_batch([entry(), entry()], idempotency_keys=["a"])

    run(scenario)


def test_retries_at_once_store_one_memory(tmp_path):
    async def scenario(memory):
        stores = [memory.store(entry("tea"), idempotency_key="k") for _ in range(50)]
        assert len(set(await asyncio.gather(*stores))) == 1
        assert await memory.count() == 1

    run(scenario, tmp_path / "a.db")


def test_the_same_text_of_the_same_user_is_skipped_if_asked():
    async def scenario(memory):
        first = await memory.store(entry("Prefers TEA", user_id="a"))
        later = entry("prefers  tea", user_id="a", session_id="s", project_id="p")
        assert await memory.store(later, on_duplicate="skip") == first
        assert await memory.store(entry("prefers tea", user_id="b"), on_duplicate="skip") != first
        assert await memory.store(entry("prefers tea", user_id="a")) != first
        assert await memory.count(all_users=True) == 3
        with pytest.raises(InvalidArgumentError, match="on_duplicate must be one of keep, skip"):
            await memory.store(entry(), on_duplicate="replace")

    run(scenario)


def test_what_is_not_found_is_no_duplicate():
    clock = Clock()

    async def scenario(memory):
        forgotten, brief = entry("one"), entry("two", expires_at=NOON + HOUR)
        old = entry("three")
        await memory.store_batch([forgotten, brief, old, entry("four", supersedes=old.id)])
        await memory.forget(forgotten.id)
        clock.now += HOUR
        stored = [entry(text) for text in ("one", "two", "three")]
        assert await memory.store_batch(stored, on_duplicate="skip") == [one.id for one in stored]

    run(scenario, clock=clock)


def test_merging_joins_tags_metadata_and_importance_and_changes_nothing_else():
    clock = Clock()

    async def scenario(memory):
        old = entry("Tea", tags=["a", "b"], metadata={"x": 1, "y": 1}, importance=0.7)
        await memory.store(old)
        clock.now += HOUR
        new = entry("tea", tags=["b", "c"], metadata={"y": 2}, importance=0.2)
        assert await memory.store(new, on_duplicate="merge") == old.id
        merged = await memory.retrieve(old.id)
        assert (merged.content, merged.tags, merged.metadata, merged.importance) == (
            "Tea",
            ("a", "b", "c"),
            {"x": 1, "y": 2},
            0.7,
        )
        assert (merged.created_at, merged.updated_at) == (NOON, clock.now)
        clock.now += HOUR
        await memory.store(entry("tea", tags=["c"]), on_duplicate="merge")
        assert (await memory.retrieve(old.id)).updated_at == NOON + HOUR
        assert await memory.count() == 1

    run(scenario, clock=clock)


def test_duplicates_inside_one_batch_are_found():
    async def scenario(memory):
        batch = [entry("tea", tags=["a"]), entry("TEA", tags=["b"]), entry("coffee")]
        ids = await memory.store_batch(batch, on_duplicate="merge")
        assert ids == [batch[0].id, batch[0].id, batch[2].id]
        assert (await memory.retrieve(ids[0])).tags == ("a", "b")
        found = await memory.search_semantic("tea", min_similarity=0.5)
        assert contents(hit.entry for hit in found) == ["tea"]

    run(scenario)


def test_after_an_update_a_text_is_no_longer_what_it_was():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        kept = memory.add("tea")
        memory.update(kept.id, content="coffee")
        assert memory.add("tea", on_duplicate="skip").id != kept.id
        assert memory.add("Coffee", on_duplicate="skip").id == kept.id
