"""Texts, names and metadata of any kind: stored with the rest of their batch, or refused."""

import hostile
from listed import message, run, texts
from strands.memory.types import AddMessagesContext
from strands_mnemic import MnemicMemoryStore

from mnemic import Memory


def played(play, **named):
    """Play with a store of its own, and return the errors that it refuses something with."""
    with Memory(":memory:") as memory, hostile.refusals() as refused:
        run(play(MnemicMemoryStore(memory, **{"name": "notes"} | named)))
    return refused


@hostile.texts
def test_a_text(text):
    async def play(store):
        said = [message("tea"), message(text, "assistant"), message("tea and cake")]
        await store.add_messages(said, AddMessagesContext([0, 1, 2]))
        assert await store.scoped.count() == (3 if text.strip("\0 \n\t\u2003") else 2)
        assert isinstance(await store.search(text), list)
        with hostile.refusals():
            await store.add(text)

    assert not played(play)


@hostile.metadatas
def test_metadata(metadata):
    async def play(store):
        await store.add("tea", metadata)
        (found,) = await store.search("tea")
        assert {key: found.metadata[key] for key in metadata} == metadata

    played(play)


@hostile.names
def test_a_name(name):
    async def play(store):
        said = [message("tea", tracking_id=name), message("cake", role=name), message("milk")]
        with hostile.refusals() as refused:
            await store.add_messages(said)
        assert await store.scoped.count() == (0 if refused else 3)
        await store.scoped.delete_all(permanent=True)
        await store.add_messages([message("tea", tracking_id=name)] * 2)
        assert await texts(store, "tea") == ["tea"] * (2 if not name else 1)

    assert not played(play, user_id=name)
    if name.strip():
        assert not played(play, name=name)
