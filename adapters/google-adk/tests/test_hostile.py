"""Two users, reopening, and a writer that is killed."""

import itertools
from pathlib import Path

import killed
import pytest
from adk import content, event, found, run, session, texts
from google.adk.memory.memory_entry import MemoryEntry
from google_adk_mnemic import MnemicMemoryService

NAMES = [
    "",
    "a",
    "a/b",
    "b",
    "a%2Fb",
    "A",
    " a",
    "a ",
    "a\n",
    "a\0",
    "\u00e4",
    "a\u0308",
    "*",
    "%",
    "null",
]
WRITER = """
import sys
sys.path[:0] = [sys.argv[2]]
from adk import event, run, session
from google_adk_mnemic import MnemicMemoryService

async def write():
    service = MnemicMemoryService(sys.argv[1])
    events = []
    for at in range(10_000):
        events.append(event(f"e{at}", f"Note {at} about the harbour"))
        await service.add_session_to_memory(session(*events[-3:]))
        print(at, flush=True)

run(write())
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


def test_every_app_and_user_has_memories_of_its_own_whatever_their_names(path):
    async def play():
        service = MnemicMemoryService(path)
        scopes = list(itertools.product(NAMES, NAMES))
        for at, (app, user) in enumerate(scopes):
            given = [event("e", f"Secret number {at}")]
            await service.add_events_to_memory(app_name=app, user_id=user, events=given)
        for at, (app, user) in enumerate(scopes):
            assert await texts(service, "secret", app, user) == [f"Secret number {at}"]
        await service.delete_memory(app_name="a", user_id="b", memory_id="e")
        left = [await texts(service, "secret", app, user) for app, user in scopes]
        assert left.count([]) == 1
        assert left[scopes.index(("a", "b"))] == []
        await service.memory.close()

    run(play())


def test_what_others_store_and_delete_changes_no_answer(path):
    async def play():
        service = MnemicMemoryService(path)
        mine = [event(f"e{at}", f"I went to town {at} with Ana") for at in range(30)]
        await service.add_session_to_memory(session(*mine))
        alone = await found(service, "Where did I go with Ana?")
        scores = await scored(service)
        for app, user in (("app", "bob"), ("other", "alice"), ("app/alice", ""), ("", "app/alice")):
            theirs = [event(f"e{at}", f"I went to town {at} with Ana, too") for at in range(60)]
            await service.add_session_to_memory(session(*theirs, app=app, user=user))
            await service.delete_memory(app_name=app, user_id=user, memory_id="e7")
            assert await found(service, "Where did I go with Ana?") == alone
            assert await scored(service) == scores
            assert all("too" in text for text in await texts(service, "Ana", app, user))
        await service.memory.close()

    async def scored(service):
        view = service.scoped(app_name="app", user_id="alice")
        return [(hit.id, hit.score) for hit in await view.search("Where did I go with Ana?")]

    run(play())


def test_a_deletion_stays_after_reopening_and_adding_again_and_erases_the_text(path):
    where = {"app_name": "app", "user_id": "alice"}
    said = [event("e1", "My safe opens with tangerine"), event("e2", "Nice weather")]
    told = MemoryEntry(id="m1", content=content("Her code is tangerine"), author="tangerine")

    async def delete():
        service = MnemicMemoryService(path)
        await service.add_session_to_memory(session(*said))
        await service.add_events_to_memory(**where, events=said, session_id="s2")
        await service.add_memory(**where, memories=[told])
        await service.delete_memory(**where, memory_id="e1")
        await service.delete_memory(**where, memory_id="m1")
        for unknown in (None, "", "e9", "a\nb", "e1"):
            await service.delete_memory(**where, memory_id=unknown)
        await service.memory.close()

    async def again():
        service = MnemicMemoryService(path)
        assert await texts(service, "tangerine") == ["Nice weather"]
        await service.add_session_to_memory(session(*said))
        await service.add_events_to_memory(**where, events=said)
        assert await texts(service, "tangerine") == ["Nice weather"]
        await service.memory.close()

    run(delete())
    run(again())
    assert b"safe opens" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_what_was_acknowledged_is_there_after_a_writer_was_killed(path):
    for _ in range(3):
        last = int(killed.lines_of(WRITER, path, Path(__file__).parent, least=40)[-1])
        service = MnemicMemoryService(path)
        stored = run(service.scoped(app_name="app", user_id="alice").list(limit=1000))
        numbers = {int(entry.message_id[1:]) for entry in stored}
        assert set(range(last + 1)) <= numbers
        assert len(numbers) == len(stored)
        run(service.memory.close())
