"""What a session promises: order, bytes, several writers, users apart, deletion, durability."""

import asyncio
import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import killed
import pytest
from agents import SessionSettings, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession, Session
from openai_agents_mnemic import MnemicSession

from mnemic import AsyncMemory, Memory
from mnemic.errors import InvalidEntryError

ODD = [
    {"role": "user", "content": ""},
    {"role": "user", "content": " \n\t"},
    {"role": "user", "content": "a\0b\ud800c", "n": 2**70, "f": 1e308, "nan": float("inf")},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
    {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": 3}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "yes"}, {"text": None}, 5]},
    {"role": 7, "content": None, "z": 1, "a": {"b": [None, True, 0.1]}},
    {"content": [[]]},
]

WRITER = """
import asyncio, sys
from mnemic import Memory
from openai_agents_mnemic import MnemicSession

async def main(path, name, turns):
    with Memory(path, embedder=None) as memory:
        session = MnemicSession("shared", memory, user_id="alice")
        for turn in range(turns):
            await session.add_items(
                [{"role": "user", "content": f"{name} {turn} {part}"} for part in range(3)]
            )
            print(turn, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", embedder=None) as opened:
        yield opened


def set_clock(monkeypatch, step):
    """Let each look at the clock find it so much further."""

    class Clock(datetime):
        now_is = datetime(2030, 1, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz=None):
            del tz
            cls.now_is += step
            return cls.now_is

    monkeypatch.setattr("openai_agents_mnemic.session.datetime", Clock)


def said(*texts):
    return [{"role": "user", "content": text} for text in texts]


def test_it_is_a_session_of_the_sdk(memory):
    session = MnemicSession("s", memory, session_settings=SessionSettings(limit=2))
    assert isinstance(session, Session)
    assert session.session_id == "s"
    assert session.session_settings.limit == 2


def test_items_come_back_byte_by_byte_and_in_order(memory):
    async def run():
        session = MnemicSession("s", memory)
        await session.add_items(ODD)
        assert json.dumps(await session.get_items()) == json.dumps(ODD)
        for item in reversed(ODD):
            assert json.dumps(await session.pop_item()) == json.dumps(item)
        assert await session.pop_item() is None

    asyncio.run(run())


def test_random_calls_agree_with_the_sdk_s_session(memory):
    draw = random.Random(0)  # noqa: S311 - repeatable

    async def run():
        pair = SQLiteSession("s"), MnemicSession("s", memory.aio)
        for turn in range(300):
            kind = draw.choice(
                ("add", "add", "get", "get", "pop", "clear" if turn % 7 == 0 else "get")
            )
            if kind == "add":
                items = said(*(f"{turn} {part}" for part in range(draw.randrange(4))))
                results = [await session.add_items(items) for session in pair]
            elif kind == "get":
                limit = draw.choice((None, 0, 1, 3, 1000, -1))
                results = [await session.get_items(limit) for session in pair]
            elif kind == "pop":
                results = [await session.pop_item() for session in pair]
            else:
                results = [await session.clear_session() for session in pair]
            assert results[0] == results[1], kind
        pair[0].close()

    asyncio.run(run())


def test_more_items_than_a_page_are_read(memory):
    async def run():
        session = MnemicSession("s", memory)
        items = said(*map(str, range(2345)))
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(1500) == items[-1500:]

    asyncio.run(run())


def test_tasks_that_add_at_the_same_moment_keep_their_items_together(memory, monkeypatch):
    set_clock(monkeypatch, timedelta(0))

    async def run():
        sessions = [MnemicSession("s", memory.aio) for _ in range(8)]
        await asyncio.gather(
            *(
                session.add_items(said(*(f"{at} {turn} {part}" for part in range(3))))
                for at, session in enumerate(sessions)
                for turn in range(5)
            )
        )
        return await sessions[0].get_items()

    check_together(asyncio.run(run()), writers=8, turns=5, in_turn=False)


def check_together(items, writers, turns, *, in_turn=True):
    texts = [item["content"].split() for item in items]
    assert len(texts) == writers * turns * 3
    for at in range(0, len(texts), 3):
        assert [text[:2] for text in texts[at : at + 3]] == [texts[at][:2]] * 3
        assert [text[2] for text in texts[at : at + 3]] == ["0", "1", "2"]
    for writer in {text[0] for text in texts}:
        own = [int(text[1]) for text in texts[::3] if text[0] == writer]
        assert sorted(own) == list(range(turns))
        assert own == sorted(own) or not in_turn


def start(path, name, turns):
    command = [sys.executable, "-c", WRITER, str(path), name, str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_add_at_once_keep_the_order_of_each(memory, tmp_path):
    writers = [start(tmp_path / "agent.db", f"w{at}", 20) for at in range(3)]
    assert [writer.wait(250) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.stdout.close()
    session = MnemicSession("shared", memory, user_id="alice")
    check_together(asyncio.run(session.get_items()), writers=3, turns=20)


def test_what_a_killed_process_acknowledged_is_there_and_whole(memory, tmp_path):
    lines = killed.lines_of(WRITER, tmp_path / "agent.db", "w", 1_000_000, least=15)
    items = asyncio.run(MnemicSession("shared", memory, user_id="alice").get_items())
    assert len(lines) <= len(items) / 3 <= len(lines) + 1
    check_together(items, writers=1, turns=len(items) // 3)


def test_those_that_pop_at_once_get_each_item_once(memory):
    async def run():
        items = said(*map(str, range(12)))
        sessions = [MnemicSession("s", memory.aio) for _ in range(4)]
        await sessions[0].add_items(items)
        popped = await asyncio.gather(*(session.pop_item() for session in sessions for _ in "abcd"))
        found = [item["content"] for item in popped if item is not None]
        assert sorted(found, key=int) == [str(at) for at in range(12)]
        assert await sessions[0].get_items() == []

    asyncio.run(run())


def test_a_clock_that_is_set_back_changes_no_order(memory, monkeypatch):
    set_clock(monkeypatch, timedelta(hours=-1))

    async def run():
        session = MnemicSession("s", memory)
        for at in range(5):
            await session.add_items(said(str(at), f"{at}b"))
        assert [item["content"] for item in await session.get_items()] == [
            text for at in range(5) for text in (str(at), f"{at}b")
        ]

    asyncio.run(run())


def test_an_item_that_was_deleted_by_other_means_is_no_obstacle(memory):
    async def run():
        session = MnemicSession("s", memory, user_id="alice")
        await session.add_items(said("one", "two"))
        memory.delete(memory.list(user_id="alice")[0].id, user_id="alice")
        await session.add_items(said("three", "four"))
        assert [item["content"] for item in await session.get_items()] == ["one", "three", "four"]

    asyncio.run(run())


def test_nothing_of_a_call_is_stored_if_an_item_is_refused(memory):
    async def run():
        session = MnemicSession("s", memory)
        with pytest.raises(TypeError):
            await session.add_items([*said("a"), {"content": object()}])
        with pytest.raises(InvalidEntryError):
            await session.add_items([*said("a"), *said("x" * 11_000_000)])
        assert await session.get_items() == []

    asyncio.run(run())


def test_one_user_s_session_never_shows_in_another_s(memory):
    async def run(session):
        await session.add_items(said("mine"))
        return await session.get_items(), await session.pop_item(), await session.get_items()

    alone = asyncio.run(run(MnemicSession("s", memory, user_id="alice")))
    for user in ("bob", None):
        asyncio.run(MnemicSession("s", memory, user_id=user).add_items(said("secret")))
    asyncio.run(MnemicSession("t", memory, user_id="alice").add_items(said("other session")))
    assert asyncio.run(run(MnemicSession("s", memory, user_id="alice"))) == alone
    assert not memory.search("secret", user_id="alice", search_type="keyword", min_score=0.01)
    project = memory.scoped(project_id="p")
    assert asyncio.run(run(MnemicSession("s", project, user_id="bob"))) == alone


def test_what_was_cleared_stays_away_and_other_memories_stay(tmp_path):
    path = tmp_path / "agent.db"
    with Memory(path, embedder=None) as memory:
        memory.add("a note of the program", user_id="alice", session_id="s")
        session = MnemicSession("s", memory, user_id="alice")
        asyncio.run(session.add_items(said("zebras at dawn", "and at dusk")))
        assert asyncio.run(session.pop_item())["content"] == "and at dusk"
        asyncio.run(session.clear_session())
    assert not any(b"zebras" in each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    with Memory(path, embedder=None) as memory:
        session = MnemicSession("s", memory, user_id="alice")
        assert asyncio.run(session.get_items()) == []
        found = memory.list(user_id="alice", include_deleted=True)
        assert [entry.content for entry in found] == ["a note of the program"]


def test_a_cancelled_call_ends_when_its_outcome_is_known(memory):
    async def run():
        session = MnemicSession("s", memory.aio)
        adding = asyncio.create_task(session.add_items(said("a")))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        before = await session.get_items()
        await asyncio.sleep(0.05)
        assert await session.get_items() == before == said("a")

    asyncio.run(run())


def test_a_session_can_be_compacted():
    class Compacted:
        output = ({"role": "assistant", "content": "They talked."},)

    class Client:
        class responses:  # noqa: N801 - the name of the client
            @staticmethod
            async def compact(**_):
                return Compacted

    async def run():
        async with AsyncMemory(":memory:", embedder=None) as memory:
            below = MnemicSession("s", memory)
            session = OpenAIResponsesCompactionSession(
                "s", below, client=Client, compaction_mode="input"
            )
            await session.add_items(said("a", "b"))
            await session.run_compaction({"force": True})
            assert [item["content"] for item in await below.get_items()] == ["They talked."]

    asyncio.run(run())
