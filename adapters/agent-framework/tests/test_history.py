"""The history, and 600 random operations on it and on the framework's in memory."""

import random

import pytest
from agent_framework import HistoryProvider, InMemoryHistoryProvider, Message, _sessions
from agent_framework_mnemic import MnemicContextProvider, MnemicHistoryProvider
from agents import agent, run, session

from mnemic import Memory

WORDS = ["yes", "no", "tea", "garden", "", "\u00e4\U0001f600", "half \ud800", "nul\0here"]
SESSIONS = "a", "b", "a/b", None
STEPS = 200


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "memory.db", embedder=None) as opened:
        yield opened


def plain(messages):
    return [message.to_dict() for message in messages]


def test_messages_come_back_whole_and_in_their_order(memory):
    async def play():
        history = MnemicHistoryProvider(memory, user_id="alice")
        assert isinstance(history, HistoryProvider)
        image = "data:image/png;base64," + "A" * 3_000_000
        given = [
            Message("user", ["Look", {"type": "data", "uri": image, "media_type": "image/png"}]),
            Message("assistant", [{"type": "function_call", "call_id": "1", "name": "f"}]),
            Message("tool", [{"type": "function_result", "call_id": "1", "result": "\ud800 x"}]),
            Message("assistant", ["A"], author_name="w", message_id="m"),
            Message("user", ["A"], additional_properties={"a": [1, {"b": None}]}),
        ]
        await history.save_messages("one", given, state={})
        await history.save_messages("one", [], state={})
        assert plain(await history.get_messages("one", state={})) == plain(given)
        assert await history.get_messages("two") == []

    run(play())


def test_a_long_history_comes_in_its_order(memory):
    async def play():
        history = MnemicHistoryProvider(memory, user_id="alice")
        for at in range(0, 2_600, 650):
            new = [Message("user", [f"{number}"]) for number in range(at, at + 650)]
            await history.save_messages("one", new)
        texts = [message.text for message in await history.get_messages("one")]
        assert texts == [str(number) for number in range(2_600)]

    run(play())


def test_an_agent_goes_on_with_a_session_after_reopening(tmp_path):
    async def play(text):
        history = MnemicHistoryProvider(tmp_path / "a.db", user_id="alice")
        one, client = agent(history)
        await one.run(text, session=session("one"))
        await history.memory.close()
        return client.shown[-1]

    assert run(play("I like tea")) == ["I like tea"]
    assert run(play("What do I like?")) == ["I like tea", "Good", "What do I like?"]


def test_both_providers_share_a_file_and_find_nothing_twice(tmp_path):
    async def play(memory):
        history = MnemicHistoryProvider(memory, user_id="alice")
        context = MnemicContextProvider(memory, user_id="alice")
        one, client = agent(history, context)
        for name, text in (("one", "I like tea"), ("one", "And milk"), ("two", "tea?")):
            await one.run(text, session=session(name))
        assert client.shown[1] == ["I like tea", "Good", "And milk"]
        assert " ".join(client.shown[2]).count("I like tea") == 1

    with Memory(tmp_path / "a.db") as memory:
        run(play(memory))


def test_what_is_stored_follows_the_options_of_the_framework(memory):
    async def play():
        audit = MnemicHistoryProvider(
            memory, user_id="a", load_messages=False, store_inputs=False, source_id="audit"
        )
        one, client = agent(audit)
        now = session("one")
        await one.run("I like tea", session=now)
        assert [message.text for message in await audit.get_messages("one")] == ["Good"]
        assert audit.source_id == "audit"
        assert client.shown == [["I like tea"]]

    run(play())


@pytest.mark.skipif(
    not hasattr(_sessions, "filter_new_messages"),
    reason="this version of the framework stores a conversation that is given again twice",
)
@pytest.mark.parametrize("seed", range(3))
def test_it_has_the_history_that_the_framework_has_in_memory(memory, seed):
    async def play():
        chosen = random.Random(seed)  # noqa: S311 - the same operations each time
        ours = MnemicHistoryProvider(memory, user_id="alice")
        theirs, states = InMemoryHistoryProvider(), {name: {} for name in SESSIONS}
        for at in range(STEPS):
            name = chosen.choice(SESSIONS)
            known = await theirs.get_messages(name, state=states[name])
            given = [new(chosen, at) for _ in range(chosen.randint(0, 3))]
            if known and chosen.random() < 0.4:  # a conversation that is given again, or its end
                given = known[-chosen.randint(1, len(known)) :] + given
            await theirs.save_messages(name, given, state=states[name])
            await ours.save_messages(name, given)
            expected = await theirs.get_messages(name, state=states[name])
            assert plain(await ours.get_messages(name)) == plain(expected), (at, name)
        assert sum(len(state["messages"]) for state in states.values()) > STEPS / 2

    run(play())


def new(chosen, at):
    named = {"message_id": str(at)} if chosen.random() < 0.3 else {}
    role = chosen.choice(["user", "assistant"])
    return Message(role, [chosen.choice(WORDS)], **named)
