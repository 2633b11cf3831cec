"""Keys, duplicates, later embedding and supersession through AsyncLongTermMemory."""

from uuid import UUID

import pytest

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingError,
    InvalidArgumentError,
    InvalidEntryError,
)
from mnemic.model import (
    MemoryEntryUpdate,
    MemoryStatus,
)
from mnemic.observability.events import MemoryStoredEvent
from tests.support.clock import DAY, NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.long_term import entry, numbers_found, run


class Picky(WordEmbedder):
    """Fails for texts that hold its bad word."""

    bad_word = "poison"

    def embed(self, texts):
        if any(self.bad_word in text for text in texts):
            raise RuntimeError("cannot embed this")
        return super().embed(texts)


# Keys


def test_a_used_key_answers_with_its_entry_whatever_became_of_it():
    async def scenario(memory, clock):
        events = []
        for number, key in enumerate(["forgotten", "expired", "superseded", "changed"], start=1):
            expires_at = NOON + SECOND if key == "expired" else None
            one = entry(number, key, expires_at=expires_at)
            assert await memory.store(one, idempotency_key=key) == one.id
        await memory.forget(UUID(int=1))
        clock.now += SECOND
        await memory.store(entry(5, "newer", supersedes=UUID(int=3)))
        await memory.update(UUID(int=4), MemoryEntryUpdate(content="another text"))
        memory.events.subscribe(MemoryStoredEvent, events.append)
        for number, key in enumerate(["forgotten", "expired", "superseded", "changed"], start=1):
            again = await memory.store(entry(10 + number, key), idempotency_key=key)
            assert again == UUID(int=number)
        assert events == []
        assert (await memory.get_stats()).forgotten_entries == 1
        assert await memory.count() == 2

    run(scenario)


def test_a_used_key_with_another_content_is_refused_and_nothing_of_the_batch_is_stored():
    async def scenario(memory, _clock):
        await memory.store(entry(1), idempotency_key="k")
        with pytest.raises(DuplicateEntryError):
            await memory.store(entry(2, "ferry"), idempotency_key="k")
        batch = [entry(3, "green"), entry(4, "ferry")]
        with pytest.raises(DuplicateEntryError):
            await memory.store_batch(batch, idempotency_keys=[None, "k"])
        assert await memory.count() == 1

    run(scenario)


@pytest.mark.parametrize("key", ["", "a\0b", "a\nb", 7])
def test_a_key_is_a_name(key):
    async def scenario(memory, _clock):
        with pytest.raises(InvalidArgumentError):
            await memory.store(entry(1), idempotency_key=key)
        assert await memory.count() == 0

    run(scenario)


def test_there_are_as_many_keys_as_entries():
    async def scenario(memory, _clock):
        with pytest.raises(InvalidArgumentError):
            await memory.store_batch([entry(1), entry(2)], idempotency_keys=["k"])
        assert await memory.count() == 0

    run(scenario)


# Duplicates


@pytest.mark.parametrize(
    ("fields", "is_duplicate"),
    [
        ({}, True),
        ({"content": "TEA  at noon."}, True),
        ({"content": "tea at one"}, False),
        ({"project_id": "p", "session_id": "s"}, True),
        ({"user_id": "alice"}, False),
        ({"status": MemoryStatus.ARCHIVED}, False),
    ],
)
def test_a_duplicate_says_the_same_to_the_same_user_in_any_project(fields, is_duplicate):
    async def scenario(memory, _clock):
        await memory.store(entry(1, **fields))
        new = entry(2, "Tea at noon")
        expected = UUID(int=1) if is_duplicate else UUID(int=2)
        assert await memory.store(new, on_duplicate="skip") == expected
        stats = await memory.get_stats(all_users=True)
        stored = stats.active_entries + stats.archived_entries
        assert stored == (1 if is_duplicate else 2)

    run(scenario)


def test_an_unknown_way_with_duplicates_is_refused():
    async def scenario(memory, _clock):
        for given in ({"on_duplicate": "replace"}, {"on_embed_error": "ignore"}):
            with pytest.raises(InvalidArgumentError):
                await memory.store(entry(1), **given)
        assert await memory.count() == 0

    run(scenario)


# Embedding later


def test_what_could_not_be_embedded_waits_and_holds_up_no_search(monkeypatch):
    monkeypatch.setattr("mnemic.repository.missing_vectors.RETRY_SECONDS", 0)
    embedder = Picky()

    async def scenario(memory, _clock):
        await memory.store(entry(1))
        with pytest.raises(EmbeddingError):
            await memory.store(entry(2, "poison tea"))
        await memory.store(entry(3, "poison tea"), on_embed_error="pending")
        assert await memory.count() == 2
        assert await numbers_found(memory) == [1]
        assert (await memory.retrieve(UUID(int=3))).content == "poison tea"
        embedder.bad_word = "nothing is bad"
        assert sorted(await numbers_found(memory)) == [1, 3]

    run(scenario, embedder=embedder)


def test_one_text_that_never_embeds_does_not_keep_others_from_being_found():
    async def scenario(memory, _clock):
        batch = [entry(1, "poison"), entry(2, "tea"), entry(3, "ferry tea")]
        await memory.store_batch(batch, on_embed_error="pending")
        for _ in range(3):
            assert await numbers_found(memory) == [2, 3]

    run(scenario, embedder=Picky())


# Supersession


def test_a_successor_marks_its_predecessor_and_links_to_it():
    async def scenario(memory, clock):
        await memory.store(entry(1))
        clock.now += DAY
        successor = entry(2, supersedes=UUID(int=1), created_at=clock.now)
        await memory.store(successor)
        old = await memory.retrieve(UUID(int=1), include_forgotten=True)
        assert (old.status, old.updated_at) == (MemoryStatus.SUPERSEDED, NOON + DAY)
        assert await memory.retrieve(UUID(int=1)) is None
        assert await numbers_found(memory) == [2]
        assert (await memory.retrieve(UUID(int=2))).supersedes == UUID(int=1)
        [link] = await memory.links(UUID(int=1))
        ends = (link.from_id.int, link.to_id.int)
        assert (ends, link.type.name, link.strength) == ((2, 1), "SUPERSEDES", 1.0)
        assert await memory.unlink(UUID(int=2), UUID(int=1)) == 0
        assert len(await memory.links(UUID(int=2), direction="out")) == 1
        await memory.forget(UUID(int=2), permanent=True)
        assert await memory.retrieve(UUID(int=1)) is None
        assert await memory.links(UUID(int=1)) == []

    run(scenario)


def test_nothing_supersedes_itself():
    async def scenario(memory, _clock):
        with pytest.raises(InvalidEntryError):
            await memory.store(entry(1, supersedes=UUID(int=1)))
        assert await memory.count() == 0

    run(scenario)
