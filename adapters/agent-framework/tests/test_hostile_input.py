"""Texts and names of any kind: stored with the rest of their run, or refused with it."""

import hostile
from agent_framework import AgentSession, Message, SessionContext
from agent_framework_mnemic import MnemicContextProvider, MnemicHistoryProvider
from agents import agent, run, said, session

from mnemic import Memory


@hostile.texts
def test_a_text(text):
    async def play(memory):
        context = MnemicContextProvider(memory, user_id="alice")
        history = MnemicHistoryProvider(memory, user_id="alice")
        one, _ = agent(history, context)
        await one.run([Message("user", ["tea"]), Message("user", [text])], session=session("one"))
        is_blank = not text.strip("\0 \n\t\u2003")
        assert len(await said(context, "alice")) == (2 if is_blank else 3)
        kept = [message.text for message in await history.get_messages("one")]
        assert kept == ["tea", text, "Good"]
        await one.run(text, session=session("two"))

    with Memory(":memory:") as memory:
        run(play(memory))


@hostile.names
def test_a_name(name):
    async def play(memory):
        context = MnemicContextProvider(memory, user_id="alice")
        for fields in ({"message_id": name}, {"author_name": name}, {"role": name}):
            await context.scoped("alice").delete_all(permanent=True)
            first = Message(**{"role": "user", "contents": ["tea"]} | fields)
            given = [first, Message("user", ["cake"])]
            with hostile.refusals() as refused:
                await context.after_run(
                    agent=None,
                    session=session("one"),
                    context=SessionContext(session_id="one", input_messages=given),
                    state={},
                )
            assert len(await said(context, "alice")) == (0 if refused else 2)

    with Memory(":memory:") as memory:
        run(play(memory))


@hostile.names
def test_a_name_of_a_user_and_of_a_session(name):
    async def play(memory):
        if name:
            context = MnemicContextProvider(memory, user_id=name)
            history = MnemicHistoryProvider(memory, user_id=name)
            one, _ = agent(history, context)
            await one.run("tea", session=AgentSession(session_id=name))
            assert len(await history.get_messages(name)) == len(await said(context, name)) == 2

    with Memory(":memory:") as memory:
        run(play(memory))
