"""What fails, hangs, comes late or is cancelled costs a turn its memories, and nothing else."""

import asyncio
import gc
import logging
import os
import threading
import time

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry, errors
from mnemic.events import HypothesesRetrievedEvent
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine
from mnemic.hyde.search import TurnSearch
from mnemic.index import NativeIndex
from tests.support.hyde import (
    AxisEmbedder,
    ListedModel,
    PlainModel,
    contents,
    memory_of,
)

WINDOW = ["user: what is it?"]
SOON = HydeConfig(timeout=0.1)
PATIENT = HydeConfig(timeout=30)


RELEASED = threading.Event()
"""Ends what hangs in threads."""


@pytest.fixture(params=["async", "sync"])
def door(request):
    return request.param


@pytest.fixture(autouse=True)
def _release(threads_named):
    RELEASED.clear()
    yield
    RELEASED.set()
    end = time.monotonic() + 20
    while threads_named("hyde"):
        assert time.monotonic() < end, threads_named("hyde")
        time.sleep(0.001)


def retrieved(door, engine, *turns):
    """The results of turns, and then the engine is closed."""
    if door == "sync":
        with engine.sync as opened:
            assert opened.ready(20)
            return [opened.retrieve(turn, WINDOW) for turn in turns]

    async def run():
        async with engine:
            assert await engine.ready(20)
            return [await engine.retrieve(turn, WINDOW) for turn in turns]

    return asyncio.run(run())


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


async def forever():
    await asyncio.Event().wait()


async def stubborn():
    """A coroutine that ignores its cancellation for a while."""
    for _ in range(5):
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue


# The table of failures: what is broken, and the stage that is counted


def broken_model(_memory, _embedder, model):
    model.fail = raising(OSError("down"))


def cancelling_model(_memory, _embedder, model):
    model.fail = raising(asyncio.CancelledError())


def hanging_model(_memory, _embedder, model):
    model.fail = forever


def stubborn_model(_memory, _embedder, model):
    model.fail = stubborn


def wordless_model(_memory, _embedder, model):
    async def complete(_prompt, **_):
        return b"alpha"

    model.complete = complete


def broken_embedder(_memory, embedder, _model):
    embedder.fail = raising(OSError("down"))


def hanging_embedder(_memory, embedder, _model):
    embedder.fail = RELEASED.wait


def no_direction(_memory, embedder, _model):
    embedder.embed = lambda texts: np.zeros((len(texts), 8), np.float32)


def broken_search(memory, _embedder, _model):
    memory.repository.finder.find = raising(errors.StoreError("gone"))


def hanging_search(memory, _embedder, _model):
    memory.repository.finder.find = lambda *_, **__: time.sleep(0.5)


BEFORE_THE_SEARCH = [
    (broken_model, "hypotheses"),
    (cancelling_model, "hypotheses"),
    (hanging_model, "hypotheses"),
    (stubborn_model, "hypotheses"),
    (wordless_model, "hypotheses"),
    (broken_embedder, "embedding"),
    (hanging_embedder, "embedding"),
    (no_direction, "embedding"),
    (broken_search, "search"),
    (hanging_search, "search"),
]


@pytest.mark.requirement("R333", "R335", "R359", "R389", "R390", "R392", "R393", "R398", "C110")
@pytest.mark.parametrize(("breaks", "stage"), BEFORE_THE_SEARCH)
def test_a_failure_before_the_search_gives_nothing_for_the_turn(door, breaks, stage, caplog):
    caplog.set_level(logging.DEBUG, logger="mnemic.hyde")
    embedder, model = AxisEmbedder(), ListedModel("alpha")
    memory = memory_of("alpha", embedder=embedder)
    heard = []
    memory.events.subscribe(HypothesesRetrievedEvent, heard.append)
    breaks(memory, embedder, model)
    engine = AsyncHydeEngine(memory, memory.embedder, model, SOON)
    assert retrieved(door, engine, "1", "1") == [[], []]
    assert engine.stats().failures == {stage: 1}  # and it is kept for the turn
    assert [event.failed_stage for event in heard] == [stage]
    of_engine = [each for each in caplog.records if each.name == "mnemic.hyde"]
    assert [each.levelname for each in of_engine] == ["DEBUG"]
    assert "alpha" not in caplog.text


LATER = [
    (NativeIndex, "neighbours", {}, "expansion", ["alpha"]),
    (TurnSearch, "expanded", {"candidates_per_hypothesis": 1}, "expansion", ["alpha"]),
    (TurnSearch, "with_versions", {}, "lineages", ["alpha", "beta"]),
]


@pytest.mark.requirement("R391", "R392", "C110")
@pytest.mark.parametrize("error", [errors.StoreError("gone"), errors.DeadlineExceededError()])
@pytest.mark.parametrize("later", LATER)
def test_a_failure_after_the_search_leaves_what_was_found(door, later, error, monkeypatch):
    module, verb, options, stage, left = later
    memory = linked_memory()
    model = ListedModel("alpha", "alpha too")
    engine = AsyncHydeEngine(memory, memory.embedder, model, near(**options))
    monkeypatch.setattr(module, verb, raising(error))
    first, again = retrieved(door, engine, "1", "1")
    assert contents(first) == contents(again) == left
    stats = engine.stats()
    assert (stats.failures, stats.partial, stats.cache_hits) == ({stage: 1}, 1, 1)


@pytest.mark.requirement("C110")
def test_a_deadline_in_the_midst_of_the_hops_leaves_what_was_found(door, monkeypatch):
    memory = linked_memory()
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"), near(timeout=0.5))

    def as_long_as_the_deadline_allows(_, wanted):
        time.sleep(max(0.0, wanted.deadline - time.monotonic()))
        raise errors.DeadlineExceededError

    monkeypatch.setattr(NativeIndex, "neighbours", as_long_as_the_deadline_allows)
    begun = time.monotonic()
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]
    assert time.monotonic() - begun < 5
    assert engine.stats().failures == {"expansion": 1}


def linked_memory():
    memory = memory_of("alpha", "beta")
    alpha, beta = memory.search("alpha", search_type="keyword")[0], memory.search("beta")[0]
    memory.link(alpha.entry.id, beta.entry.id)
    return memory


def near(**options):
    return HydeConfig(min_similarity=0.5, **options)


@pytest.mark.requirement("R392", "C110")
def test_a_stage_that_hangs_after_the_search_leaves_what_was_found(door, monkeypatch):
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"), near(timeout=0.3))
    monkeypatch.setattr(TurnSearch, "with_versions", lambda *_, **__: time.sleep(1))
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]
    assert engine.stats().failures == {"lineages": 1}


INTERRUPTIONS = [SystemExit(3), KeyboardInterrupt()]


@pytest.mark.requirement("R333", "R398", "C131")
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_a_model_that_would_end_the_event_loop_of_the_plain_door_fails_one_turn(is_plain, error):
    memory = memory_of("alpha")
    answers = [error, "alpha"]

    def plain(_prompt):
        answer = answers.pop(0)
        if answer is error:
            raise error
        return answer

    async def coroutine(prompt):
        return plain(prompt)

    model = plain if is_plain else coroutine
    with HydeEngine(memory, memory.embedder, model, PATIENT) as engine:
        assert engine.retrieve("1", WINDOW) == []
        assert contents(engine.retrieve("2", WINDOW)) == ["alpha"]
        assert engine.stats().failures == {"hypotheses": 1}


@pytest.mark.requirement("R333", "R398")
@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_an_embedder_that_would_end_an_event_loop_fails_one_turn(door, error):
    embedder = AxisEmbedder()
    memory = memory_of("alpha", embedder=embedder)
    embeds, embedder.embed = embedder.embed, raising(error)
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"), PATIENT)
    engine.start()
    assert engine.sync.ready(20)

    def mended(_event):
        embedder.embed = embeds

    memory.events.subscribe(HypothesesRetrievedEvent, mended)
    first, second = retrieved(door, engine, "1", "2")
    assert (first, contents(second)) == ([], ["alpha"])
    assert engine.stats().failures == {"embedding": 1}


def test_a_turn_cancelled_before_its_model_was_called_warns_of_nothing(recwarn):
    memory = memory_of("alpha")

    async def run():
        async with AsyncHydeEngine(
            memory, memory.embedder, ListedModel("alpha"), PATIENT
        ) as engine:
            assert await started(engine)
            for rounds in range(30):
                call = asyncio.ensure_future(engine.retrieve(f"turn {rounds}", WINDOW))
                for _ in range(rounds):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)

    asyncio.run(run())
    gc.collect()
    assert not list(recwarn)


@pytest.mark.requirement("R335", "C110")
def test_a_plain_model_that_hangs_is_left_and_its_late_answer_dropped(door):
    memory = memory_of("alpha")
    model = PlainModel("alpha")
    model.blocks = threading.Event()
    engine = AsyncHydeEngine(memory, memory.embedder, model, SOON)
    assert retrieved(door, engine, "1") == [[]]
    model.blocks.set()
    assert engine.stats().failures == {"hypotheses": 1}


def test_a_model_that_blocks_the_plain_doors_event_loop_is_left():
    released = threading.Event()

    class Blocking:
        model = "blocking"

        async def complete(self, _prompt, **_):
            released.wait(20)
            return "alpha"

    memory = memory_of("alpha")
    engine = HydeEngine(memory, memory.embedder, Blocking(), SOON)
    assert engine.ready(20) is False  # nothing was begun
    assert engine.retrieve("1", WINDOW) == []
    released.set()
    engine.close()


def test_a_listener_that_fails_or_hangs_delays_no_turn_beyond_its_deadline(door):
    memory = memory_of("alpha")
    memory.events.subscribe(HypothesesRetrievedEvent, raising(OSError()))
    memory.events.subscribe(HypothesesRetrievedEvent, lambda _: forever())
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"), SOON)
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]


@pytest.mark.requirement("C111")
def test_a_turn_cancelled_at_any_await_is_not_kept_and_leaves_nothing():
    memory = memory_of("alpha")
    model = ListedModel("alpha")

    async def cancelled_after(rounds):
        engine = AsyncHydeEngine(memory, memory.embedder, model, PATIENT)
        assert await started(engine)
        call = asyncio.ensure_future(engine.retrieve("1", WINDOW))
        for _ in range(rounds):
            await asyncio.sleep(0)
        is_done = call.done()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert contents(await engine.retrieve("1", WINDOW)) == ["alpha"]
        assert not engine.stats().failures
        await engine.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return is_done

    assert not asyncio.run(cancelled_after(0))
    for rounds in (*range(1, 60), 100, 1000, 5000):
        asyncio.run(cancelled_after(rounds))


async def started(engine):
    engine.start()
    return await engine.ready(20)


# The kept result, and the memories of it


@pytest.mark.requirement("R357")
def test_a_deleted_memory_leaves_the_kept_result(door, tmp_path):
    path = tmp_path / "agent.db"
    memory = Memory(path, embedder=AxisEmbedder())
    other = Memory(path, embedder=AxisEmbedder())
    entries = [memory.add("alpha"), memory.add("beta"), memory.add("gamma")]
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha", "beta", "gamma"), near())
    plain = engine.sync

    def ask():
        return asyncio.run(engine.retrieve("1", WINDOW)) if door == "async" else again()

    def again():
        return plain.retrieve("1", WINDOW)

    assert sorted(contents(ask())) == ["alpha", "beta", "gamma"]
    memory.delete(entries[0].id)
    assert sorted(contents(ask())) == ["beta", "gamma"]
    other.delete(entries[1].id)  # as another process does
    assert contents(ask()) == ["gamma"]
    memory.update(entries[2].id, content="delta")
    assert contents(ask()) == ["delta"]
    assert engine.stats().turns == 1
    plain.close()


def test_an_expired_memory_leaves_the_kept_result(door):
    from tests.support.clock import NOON  # noqa: PLC0415

    now = [NOON]
    memory = Memory(":memory:", embedder=AxisEmbedder(), clock=lambda: now[0])
    memory.add(MemoryEntry("alpha", expires_at=NOON.replace(hour=13)))
    memory.add("beta")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha", "beta"), near())
    before, same = retrieved(door, engine, "1", "1")
    assert sorted(contents(before)) == ["alpha", "beta"]
    assert before == same
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha", "beta"), near())
    plain = engine.sync
    plain.retrieve("1", WINDOW)
    now[0] = NOON.replace(hour=14)
    assert contents(plain.retrieve("1", WINDOW)) == ["beta"]
    plain.close()


def test_the_callers_list_is_its_own():
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"))
    with engine.sync as plain:
        plain.retrieve("1", WINDOW).clear()
        assert contents(plain.retrieve("1", WINDOW)) == ["alpha"]


def test_sensitive_memories_are_left_out_unless_requested():
    memory = Memory(":memory:", embedder=AxisEmbedder())
    memory.add("alpha", sensitive=True)
    memory.add("beta")
    found = {}
    for wanted in (False, True):
        given = memory, memory.embedder, ListedModel("alpha", "beta"), near()
        with HydeEngine(*given, include_sensitive=wanted) as engine:
            found[wanted] = sorted(contents(engine.retrieve("1", WINDOW)))
    assert found == {False: ["beta"], True: ["alpha", "beta"]}


def test_a_turn_counts_no_access_of_its_memories():
    memory = memory_of("alpha")
    with HydeEngine(memory, memory.embedder, ListedModel("alpha")) as engine:
        (found,) = engine.retrieve("1", WINDOW)
    assert found.memory.access_count == 0
    assert memory.list().entries[0].access_count == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_answer_and_does_not_hang():
    memory = memory_of("alpha")
    model = PlainModel("alpha")
    engine = HydeEngine(memory, memory.embedder, model, HydeConfig(timeout=2))
    assert contents(engine.retrieve("1", WINDOW)) == ["alpha"]
    child = os.fork()
    if child == 0:  # pragma: no cover - of the child
        found = engine.retrieve("1", WINDOW)
        engine.close()
        os._exit(0 if isinstance(found, list) else 1)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise AssertionError("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    engine.close()


def test_an_engine_that_nobody_closes_leaves_no_thread():
    memory = memory_of("alpha")
    engine = HydeEngine(memory, memory.embedder, ListedModel("alpha"))
    assert contents(engine.retrieve("1", WINDOW)) == ["alpha"]
    del engine
    gc.collect()  # the fixture waits for the end of its threads
