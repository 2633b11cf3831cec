import asyncio
import threading
from datetime import datetime

import pytest
from adk import content, event, found, run, session, texts
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Blob, Content, FunctionCall, Part
from google_adk_mnemic import MnemicMemoryService

from mnemic import AsyncMemory, Memory
from mnemic.errors import InvalidEntryError

SAID = event("e1", "I am allergic to peanuts", seconds=1_700_000_000.25)
NOTED = event("e2", "Noted: no peanuts", "waiter")


@pytest.fixture
def service(tmp_path):
    opened = MnemicMemoryService(tmp_path / "memory.db")
    yield opened
    run(opened.memory.close())


def test_a_question_in_other_words_finds_what_was_said(service):
    run(service.add_session_to_memory(session(SAID, event("e2", "The weather is fine today"))))
    assert run(texts(service, "Which foods must I avoid?"))[0] == "I am allergic to peanuts"


def test_author_time_session_and_metadata_are_given_back(service):
    told = event("e1", "Noted", "waiter", 1_700_000_000.25, custom_metadata={"mood": ["calm"]})
    run(
        service.add_events_to_memory(
            app_name="app",
            user_id="alice",
            events=[told],
            session_id="s9",
            custom_metadata={"source": "web", "mood": "lost"},
        )
    )
    (memory,) = run(found(service, "noted"))
    assert (memory.id, memory.author, memory.content) == ("e1", "waiter", told.content)
    assert datetime.fromisoformat(memory.timestamp).timestamp() == 1_700_000_000.25
    assert memory.custom_metadata == {"session_id": "s9", "source": "web", "mood": ["calm"]}


def test_a_session_that_is_added_again_adds_only_what_is_new(service):
    run(service.add_session_to_memory(session(SAID)))
    run(service.add_session_to_memory(session(SAID, NOTED)))
    run(service.add_session_to_memory(session(SAID, NOTED)))
    run(
        service.add_events_to_memory(
            app_name="app", user_id="alice", events=[NOTED, NOTED], session_id="s1"
        )
    )
    assert sorted(run(texts(service, "peanuts"))) == [
        "I am allergic to peanuts",
        "Noted: no peanuts",
    ]


def test_events_of_two_sessions_with_the_same_id_are_both_kept(service):
    run(service.add_session_to_memory(session(event("1", "Likes tea"), key="a")))
    run(service.add_session_to_memory(session(event("1", "Likes coffee"), key="b")))
    assert sorted(run(texts(service, "drinks"))) == ["Likes coffee", "Likes tea"]


def test_events_without_text_and_streamed_parts_are_skipped(service):
    call = Content(role="model", parts=[Part(function_call=FunctionCall(name="look"))])
    thought = Content(role="model", parts=[Part(text="The user seems sad", thought=True)])
    blank = [content(""), content(" \n"), Content(role="user"), Content(role="user", parts=[])]
    events = [Event(author="x", content=each) for each in [call, thought, None, *blank]]
    streamed = event("e3", "I am all", partial=True)
    run(service.add_session_to_memory(session(*events, streamed, SAID)))
    assert run(service.scoped(app_name="app", user_id="alice").count()) == 1
    run(service.add_session_to_memory(session(*events)))


def test_all_parts_of_a_content_are_given_back_without_blobs(service):
    parts = [
        Part(text="Here it is"),
        Part(text="a\0b"),
        Part(text="sly", thought=True, thought_signature=b"\xff\x00"),
        Part(function_call=FunctionCall(name="look", args={"n": 2**70})),
        Part(inline_data=Blob(data=b"0" * 12_000_000, mime_type="image/png")),
    ]
    whole = Event(id="e1", author="bot", content=Content(role="model", parts=parts))
    run(service.add_session_to_memory(session(whole)))
    (memory,) = run(found(service, "here"))
    assert memory.content == Content(role="model", parts=[*parts[:-1], Part()])


def test_added_memories_are_given_back_as_they_were_given(service):
    given = [
        MemoryEntry(content=content("Lives in Oslo"), timestamp="last spring", author="crm"),
        MemoryEntry(id="own", content=content("Has a cat"), timestamp="2026-01-01T10:00:00+05:00"),
        MemoryEntry(content=content("Paints"), custom_metadata={"session_id": 7, "a": {"b": [1]}}),
    ]
    run(service.add_memory(app_name="app", user_id="alice", memories=given))
    back = {each.content.parts[0].text: each for each in run(found(service, "what about her?"))}
    for each in given:
        stored = back[each.content.parts[0].text]
        assert stored.custom_metadata == each.custom_metadata
        assert (stored.author, stored.content) == (each.author, each.content)
        assert stored.timestamp == each.timestamp or each.timestamp is None
        assert stored.id == each.id or each.id is None
    cats = service.scoped(app_name="app", user_id="alice")
    (cat,) = run(cats.list(filters={"message_id": "own"}))
    assert cat.created_at.isoformat() == "2026-01-01T05:00:00+00:00"


def test_a_memory_with_an_id_takes_the_place_of_the_one_before_also_of_a_deleted_one(service):
    where = {"app_name": "app", "user_id": "alice"}
    for place in ("Oslo", "Rome"):
        entry = MemoryEntry(id="home", content=content(f"Lives in {place}"))
        run(service.add_memory(**where, memories=[entry]))
    assert run(texts(service, "home")) == ["Lives in Rome"]
    run(service.delete_memory(**where, memory_id="home"))
    assert run(texts(service, "home")) == []
    run(service.add_memory(**where, memories=[entry]))
    assert run(texts(service, "home")) == ["Lives in Rome"]


def test_a_question_without_words_finds_nothing_and_one_of_any_length_is_answered(service):
    run(service.add_session_to_memory(session(SAID)))
    assert [run(texts(service, query)) for query in ("", "  \n", "\0", "?!")] == [[]] * 4
    assert run(texts(service, "peanuts " * 5_000)) == ["I am allergic to peanuts"]


def test_limit_and_floor_bound_what_is_found(tmp_path):
    events = [event(f"e{at}", f"Note {at} about the garden") for at in range(20)]
    memory = Memory(tmp_path / "memory.db")
    run(MnemicMemoryService(memory).add_session_to_memory(session(*events)))
    assert len(run(texts(MnemicMemoryService(memory, limit=3), "garden"))) == 3
    strict = MnemicMemoryService(memory.aio, min_score="auto")
    assert run(texts(strict, "xyzzy")) == []
    assert len(run(texts(strict, "garden"))) == 10
    memory.close()


def test_what_cannot_be_stored_raises_errors_of_mnemic_and_stores_nothing(service):
    bad = [
        (session(SAID, event("e3", "Late", seconds=float("inf"))), InvalidEntryError),
        (session(SAID, event("e3", "Odd", custom_metadata={"at": object()})), InvalidEntryError),
        (session(SAID, key="a\nb"), InvalidEntryError),
        (session(SAID, event("e\x01", "Bell")), InvalidEntryError),
    ]
    for given, error in bad:
        with pytest.raises(error):
            run(service.add_session_to_memory(given))
    assert run(service.memory.count(all_users=True)) == 0


def test_calls_come_from_many_tasks_and_event_loops_at_once(service):
    async def many(start):
        async def one(at):
            await service.add_session_to_memory(
                session(event(f"e{at}", f"Note {at}"), key=f"s{at}")
            )
            return await texts(service, f"Note {at}")

        return await asyncio.gather(*(one(at) for at in range(start, start + 20)))

    answers = {}

    def work(start):
        answers[start] = run(many(start))

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 20, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 20, 40]
    for start, lists in answers.items():
        assert all(f"Note {start + at}" in found for at, found in enumerate(lists))


def test_the_event_loop_turns_while_a_session_is_stored_and_the_file_is_opened(tmp_path):
    async def both():
        service = MnemicMemoryService(AsyncMemory(tmp_path / "memory.db"))
        events = [event(f"e{at}", f"A long note {at} about rivers. " * 20) for at in range(300)]
        adding = asyncio.create_task(service.add_session_to_memory(session(*events)))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0.005)
            turns += 1
        await adding
        await service.memory.close()
        return turns

    assert run(both()) > 20


def test_half_of_a_surrogate_pair_is_replaced_in_events_and_queries(service):
    run(service.add_session_to_memory(session(event("1", "peanuts \ud83d"), event("2", "I ski"))))
    assert run(texts(service, "peanuts \ud83d"))[0] == "peanuts \ufffd"
    assert run(texts(service, "ski"))[0] == "I ski"
