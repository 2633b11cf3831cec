"""A turn in an agent's loop: one retrieval for a message, its block, and what never disturbs it."""

import asyncio
import logging
from uuid import UUID

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.hyde import AsyncHydeEngine, HydeConfig, build_conversation_window, format_injection
from tests.support.hyde import ListedModel, contents, memory_of

HISTORY = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


@pytest.fixture(params=["async", "sync"])
def door(request):
    """Opens an engine and its turns, through one of both doors."""
    return request.param


def run(door, engine, body, *args, **options):
    """Call a function with an entered turn, and with its `retrieve` as a plain function."""
    if door == "sync":
        with engine.sync as opened, opened.turn(*args, **options) as turn:
            return body(turn, turn.retrieve)

    async def inside():
        async with engine, engine.turn(*args, **options) as turn:
            loop = asyncio.get_running_loop()

            def retrieve():
                return asyncio.run_coroutine_threadsafe(turn.retrieve(), loop).result(10)

            return await asyncio.to_thread(body, turn, retrieve)

    return asyncio.run(inside())


def engine_of(*texts, model=None, **options):
    memory = memory_of(*texts)
    return AsyncHydeEngine(
        memory, memory.embedder, model or ListedModel(*texts), HydeConfig(**options)
    )


@pytest.mark.requirement("R379", "R371", "R332", "T011", "T012")
def test_a_turn_has_an_id_a_window_memories_and_their_block(door):
    engine = engine_of("alpha", "beta", retrieval_top_k=2)

    def body(turn, _):
        return turn.id, turn.window, turn.memories, turn.text, str(turn), repr(turn)

    name, window, memories, text, shown, printed = run(door, engine, body, "And now?", HISTORY)
    assert UUID(name).version == 4
    assert window == build_conversation_window(HISTORY, message="And now?")
    assert sorted(contents(memories)) == ["alpha", "beta"]
    assert text == shown == format_injection(memories)
    assert printed.endswith(f"(id={name!r}, <2 memories>)")
    assert "alpha" not in printed


@pytest.mark.requirement("R336", "R380", "R396", "R331", "T007")
def test_sub_turns_call_no_model(door):
    model = ListedModel("alpha")
    engine = engine_of("alpha", "beta", model=model)

    def body(turn, retrieve):
        before = turn.memories, turn.text
        return [contents(retrieve()) for _ in range(5)], before == (turn.memories, turn.text)

    subturns, is_unchanged = run(door, engine, body, "What?")
    assert subturns == [subturns[0]] * 5
    assert is_unchanged
    assert model.calls == 1
    assert engine.stats().cache_hits == 5


@pytest.mark.requirement("R358", "R357")
def test_each_message_has_an_id_of_its_own():
    engine = engine_of("alpha")
    names = {engine.turn("What?").id for _ in range(100)}

    assert len(names) == 100
    assert engine.turn("What?", turn_id=UUID(int=5)).id == str(UUID(int=5))
    assert engine.sync.turn("What?", turn_id="mine").id == "mine"
    engine.sync.close()


def test_a_turn_may_be_taken_up_by_its_id(door):
    model = ListedModel("alpha")
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, model)

    async def twice():
        async with engine:
            for _ in range(2):
                async with engine.turn("What?", turn_id="mine") as turn:
                    assert contents(turn.memories) == ["alpha"]

    def twice_plainly():
        with engine.sync as opened:
            for _ in range(2):
                with opened.turn("What?", turn_id="mine") as turn:
                    assert contents(turn.memories) == ["alpha"]

    asyncio.run(twice()) if door == "async" else twice_plainly()
    assert model.calls == 1


@pytest.mark.requirement("R375")
@pytest.mark.parametrize(
    ("base", "start"),
    [
        ("You code.", "You code.\n\n## Relevant"),
        (["You code.", "", "Be brief."], "You code.\n\nBe brief.\n\n## Relevant"),
        ("", "## Relevant"),
        ((), "## Relevant"),
    ],
)
def test_the_block_follows_the_segments_of_the_system_prompt(door, base, start):
    prompt = run(door, engine_of("alpha"), lambda turn, _: turn.system_prompt(base), "What?")

    assert prompt.startswith(start)
    assert "alpha" in prompt


def test_without_memories_the_prompt_stays_as_it_is(door):
    assert run(door, engine_of(), lambda turn, _: turn.system_prompt("You code."), "What?") == (
        "You code."
    )


def test_a_memory_that_is_deleted_during_the_turn_leaves_its_block(door):
    memory = memory_of("alpha", "beta")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha", "beta"))

    def body(turn, retrieve):
        before = turn.text
        memory.delete(next(each.id for each in turn.memories if each.content == "alpha"))
        retrieve()
        return before, turn.text, contents(turn.memories)

    before, after, left = run(door, engine, body, "What?")
    assert "alpha" in before
    assert "alpha" not in after
    assert left == ["beta"]


@pytest.mark.requirement("R381", "R373")
def test_the_block_is_as_configured(door):
    engine = engine_of("alpha", injection_form="tagged")
    assert run(door, engine, lambda turn, _: turn.text, "What?").startswith("<long_term_memory>")
    engine = engine_of("alpha", injection_token_budget=5)
    assert run(door, engine, lambda turn, _: (turn.text, len(turn.memories)), "What?") == ("", 1)


class Broken:
    def count(self, text):
        raise ZeroDivisionError(text)


def test_a_counter_that_raises_leaves_the_block_out(door, caplog):
    caplog.set_level(logging.DEBUG, "mnemic.hyde")
    engine = engine_of("alpha", injection_token_budget=500)

    def body(turn, _):
        return turn.text, contents(turn.memories)

    assert run(door, engine, body, "What?", counter=Broken()) == ("", ["alpha"])
    (record,) = [each for each in caplog.records if "not rendered" in each.message]
    assert "ZeroDivisionError" in record.message
    assert "alpha" not in caplog.text


class Unreadable:
    role = "user"

    @property
    def content(self):
        raise RuntimeError("a secret of the message")


def test_a_message_that_cannot_be_read_costs_the_turn_its_memories_alone(door, caplog):
    caplog.set_level(logging.DEBUG, "mnemic.hyde")
    engine = engine_of("alpha")

    assert run(door, engine, lambda turn, _: (turn.window, turn.text), "What?", [Unreadable()]) == (
        [],
        "",
    )
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_errors_of_the_body_pass_through(door):
    def body(turn, _):
        raise KeyError(turn.id)

    with pytest.raises(KeyError):
        run(door, engine_of("alpha"), body, "What?")


@pytest.mark.parametrize(
    "arguments",
    [
        {"history": 3},
        {"history": "user: x"},
        {"turn_id": 3},
        {"counter": 3},
        {"last_summarization_index": "1"},
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments):
    engine = engine_of("alpha")
    for opened in (engine, engine.sync):
        with pytest.raises(InvalidArgumentError, match=r"messages|turn_id|counter|index"):
            opened.turn("What?", **arguments)
    engine.sync.close()
