"""Keys, duplicates, later embedding and supersession through AsyncLongTermMemory."""

from uuid import UUID

import pytest

from mnemic.errors import (
    EmbeddingError,
    InvalidArgumentError,
    InvalidEntryError,
)
from mnemic.model import (
    MemoryEntryUpdate,
    MemoryStatus,
)
from mnemic.observability.events import MemoryStoredEvent
from tests.support.clock import NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.long_term import entry, numbers_found, run, with_memory_and_clock


class Picky(WordEmbedder):
    """Fails for texts that hold its bad word."""

    bad_word = "poison"

    def embed(self, texts):
        if any(self.bad_word in text for text in texts):
            raise RuntimeError("cannot embed this")
        return super().embed(texts)


# Keys


@with_memory_and_clock()
async def test_a_used_key_answers_with_its_entry_whatever_became_of_it(memory, clock):
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


@pytest.mark.parametrize("key", ["", "a\0b", "a\nb", 7])
@with_memory_and_clock()
async def test_a_key_is_a_name(memory, key):
    with pytest.raises(InvalidArgumentError):
        await memory.store(entry(1), idempotency_key=key)
    assert await memory.count() == 0


@with_memory_and_clock()
async def test_there_are_as_many_keys_as_entries(memory):
    with pytest.raises(InvalidArgumentError):
        await memory.store_batch([entry(1), entry(2)], idempotency_keys=["k"])
    assert await memory.count() == 0


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
@with_memory_and_clock()
async def test_a_duplicate_says_the_same_to_the_same_user_in_any_project(
    memory, fields, is_duplicate
):
    await memory.store(entry(1, **fields))
    new = entry(2, "Tea at noon")
    expected = UUID(int=1) if is_duplicate else UUID(int=2)
    assert await memory.store(new, on_duplicate="skip") == expected
    stats = await memory.get_stats(all_users=True)
    stored = stats.active_entries + stats.archived_entries
    assert stored == (1 if is_duplicate else 2)


@with_memory_and_clock()
async def test_an_unknown_way_with_duplicates_is_refused(memory):
    for given in ({"on_duplicate": "replace"}, {"on_embed_error": "ignore"}):
        with pytest.raises(InvalidArgumentError):
            await memory.store(entry(1), **given)
    assert await memory.count() == 0


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


@with_memory_and_clock(embedder=Picky())
async def test_one_text_that_never_embeds_does_not_keep_others_from_being_found(memory):
    batch = [entry(1, "poison"), entry(2, "tea"), entry(3, "ferry tea")]
    await memory.store_batch(batch, on_embed_error="pending")
    for _ in range(3):
        assert await numbers_found(memory) == [2, 3]


# Supersession


@with_memory_and_clock()
async def test_nothing_supersedes_itself(memory):
    with pytest.raises(InvalidEntryError):
        await memory.store(entry(1, supersedes=UUID(int=1)))
    assert await memory.count() == 0
