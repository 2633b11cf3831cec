"""Texts, names and metadata of any kind: stored with the rest of their batch, or refused."""

import hostile
import pytest
from adk import content, event, found, run, session
from google.adk.memory.memory_entry import MemoryEntry
from google_adk_mnemic import MnemicMemoryService

BLANK = "\0 \n\t\u2003"


@pytest.fixture
def service():
    return MnemicMemoryService(":memory:")


async def stored(service, app="app", user="alice"):
    return await service.scoped(app_name=app, user_id=user).count()


@hostile.texts
def test_a_text(service, text):
    async def play():
        events = [event("1", "tea"), event("2", text), event("3", "tea and cake")]
        await service.add_session_to_memory(session(*events))
        number = 3 if text.strip(BLANK) else 2
        assert await stored(service) == number
        entries = [MemoryEntry(content=content(each), author="a") for each in ("tea", text)]
        await service.add_memory(app_name="app", user_id="alice", memories=entries)
        assert await stored(service) == 2 * number - 1
        assert isinstance(await found(service, text), list)

    run(play())


@hostile.metadatas
def test_metadata(service, metadata):
    async def play():
        with hostile.refusals() as refused:
            await service.add_events_to_memory(
                app_name="app",
                user_id="alice",
                session_id="s1",
                events=[event("1", "tea"), event("2", "tea and cake")],
                custom_metadata=metadata,
            )
        assert await stored(service) == (0 if refused else 2)
        for each in await found(service, "tea"):
            assert each.custom_metadata == {"session_id": "s1"} | metadata

    run(play())


@hostile.names
def test_a_name(service, name):
    async def play():
        for made in (
            lambda: session(event(name, "tea"), event("2", "tea")),
            lambda: session(event("1", "tea", author=name), event("2", "tea")),
            lambda: session(event("1", "tea"), event("2", "tea"), key=name),
        ):
            await service.scoped(app_name="app", user_id="alice").delete_all(permanent=True)
            with hostile.refusals() as refused:
                await service.add_session_to_memory(made())
            assert await stored(service) == (0 if refused else 2)
        entry = MemoryEntry(id=name, content=content("tea"), author=name, timestamp=name)
        with hostile.refusals():
            await service.add_memory(app_name=name, user_id=name, memories=[entry])
        with hostile.refusals():
            await service.delete_memory(app_name=name, user_id=name, memory_id=name)
        await service.add_session_to_memory(session(event("1", "tea"), app=name, user=name))
        assert len(await found(service, "tea", name, name)) >= 1

    run(play())
