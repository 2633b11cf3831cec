"""Two users, reopening, and a writer that is killed."""

from pathlib import Path

import killed
import pytest
from agent_framework import Message, SessionContext
from agent_framework_mnemic import MnemicContextProvider, MnemicHistoryProvider
from agents import agent, run, said, session

from mnemic import Memory

USERS = ["", "a", "a/history", "a/b", "a%2Fb", "A", " a", "a\n", "a\0", "\u00e4", "a\u0308", "*"]
WRITER = """
import sys
sys.path[:0] = [sys.argv[2]]
from agents import agent, run, session
from agent_framework_mnemic import MnemicContextProvider, MnemicHistoryProvider

async def write():
    context = MnemicContextProvider(sys.argv[1], user_id="alice")
    history = MnemicHistoryProvider(context.memory, user_id="alice")
    one, _ = agent(history, context)
    for at in range(10_000):
        await one.run(f"Note {at} about the harbour", session=session(sys.argv[3]))
        print(at, flush=True)

run(write())
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


async def found(provider, text):
    context = SessionContext(session_id="later", input_messages=[Message("user", [text])])
    await provider.before_run(agent=None, session=session("later"), context=context, state={})
    return [message.to_dict() for message in context.get_messages()]


def test_every_user_has_memories_and_sessions_of_their_own_whatever_their_names(path):
    async def play(memory):
        contexts = [MnemicContextProvider(memory, user_id=f"u{user}") for user in USERS]
        histories = [MnemicHistoryProvider(memory, user_id=f"u{user}") for user in USERS]
        for at, providers in enumerate(zip(histories, contexts, strict=True)):
            one, client = agent(*providers)
            await one.run(f"Secret number {at}", session=session("one"))
            assert client.shown == [[f"Secret number {at}"]]
        for at, (context, history) in enumerate(zip(contexts, histories, strict=True)):
            assert await said(context, f"u{USERS[at]}") == ["Good", f"Secret number {at}"]
            kept = [message.text for message in await history.get_messages("one")]
            assert kept == [f"Secret number {at}", "Good"]
        await contexts[3].scoped(f"u{USERS[3]}").delete_all(permanent=True)
        await histories[5].scoped().delete_all(permanent=True)
        left = [len(await said(contexts[at], f"u{name}")) for at, name in enumerate(USERS)]
        assert [at for at, number in enumerate(left) if not number] == [3]
        kept = [len(await history.get_messages("one")) for history in histories]
        assert [at for at, number in enumerate(kept) if not number] == [5]

    with Memory(path) as memory:
        run(play(memory))


def test_what_others_say_and_delete_changes_no_answer(path):
    async def play(memory):
        mine = MnemicContextProvider(memory, user_id="alice")
        theirs = MnemicContextProvider(memory, user_id="bob")
        (hers, _), (his, _) = agent(mine), agent(theirs)
        for at in range(20):
            await hers.run(f"I went to town {at} with Ana", session=session("one"))
        alone = await found(mine, "Where did I go with Ana?")
        for at in range(40):
            await his.run(f"I went to town {at} with Ana, too", session=session("one"))
        ids = [entry.id for entry in await mine.scoped("alice").list(limit=5)]
        assert await theirs.scoped("bob").delete_many(ids) == 0
        assert await found(mine, "Where did I go with Ana?") == alone

    with Memory(path) as memory:
        run(play(memory))


def test_a_deletion_stays_after_reopening_and_after_a_retry(path):
    said_once = Message("user", ["My safe opens with tangerine"], message_id="m1")

    async def play(*, is_first):
        provider = MnemicContextProvider(path, user_id="alice")
        context = SessionContext(session_id="one", input_messages=[said_once])
        if is_first:
            await provider.after_run(agent=None, session=session("one"), context=context, state={})
            (entry,) = await provider.scoped("alice").list()
            await provider.scoped("alice").delete(entry.id)
        await provider.after_run(agent=None, session=session("one"), context=context, state={})
        assert await said(provider, "alice") == []
        assert await found(provider, "tangerine") == []
        await provider.memory.close()

    run(play(is_first=True))
    run(play(is_first=False))


def test_what_was_acknowledged_is_there_after_a_writer_was_killed(path):
    async def read(name, last):
        context = MnemicContextProvider(path, user_id="alice")
        history = MnemicHistoryProvider(context.memory, user_id="alice")
        notes = [f"Note {at} about the harbour" for at in range(last + 1)]
        assert set(notes) <= set(await said(context, "alice"))
        texts = [message.text for message in await history.get_messages(name)]
        assert texts[: 2 * len(notes)] == [each for note in notes for each in (note, "Good")]
        await context.memory.close()

    for name in "abc":
        lines = killed.lines_of(WRITER, path, Path(__file__).parent, name, least=20)
        run(read(name, int(lines[-1])))
