"""Items and names of any kind: stored with the rest of their batch, or refused with it."""

import asyncio
import json

import hostile
from openai_agents_mnemic import MnemicSession

from mnemic import Memory


def played(session_id, *items, user_id="alice"):
    """Add items between two others, of which all are stored or none; return the refusals."""

    async def play(memory):
        session = MnemicSession(session_id, memory, user_id=user_id)
        given = [{"role": "user", "content": "tea"}, *items, {"role": "user", "content": "cake"}]
        with hostile.refusals(TypeError, ValueError, RecursionError) as refused:
            await session.add_items(given)
        with hostile.refusals() as unreadable:
            kept = await session.get_items()
            assert list(map(json.dumps, kept)) == ([] if refused else list(map(json.dumps, given)))
            await session.pop_item()
        assert refused or not unreadable
        return refused

    with Memory(":memory:") as memory:
        return asyncio.run(play(memory))


@hostile.texts
def test_a_text(text):
    assert not played("one", {"role": "user", "content": text})


@hostile.metadatas
def test_a_field(metadata):
    played("one", {"role": "user", "content": "tea", "m": metadata})


@hostile.names
def test_a_name(name):
    played(name)
    played("one", user_id=name)
    played("one", {"role": name, "content": "tea"})
