"""Coroutine functions as embedders: awaited on one event loop of the memory's own."""

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from mnemic import AsyncMemory, Memory
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import BusyThreadError, EmbeddingError
from mnemic.threads.event_loop_thread import EventLoopThread, LoopEndedError
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.threads import run_together

THREAD = "mnemic-embedder"
asker = contextvars.ContextVar("asker", default=None)


class CoroutineEmbedder:
    """`WordEmbedder` behind a coroutine function; it notes where it ran."""

    join_calls = False

    def __init__(self):
        self.words = WordEmbedder()
        self.model, self.dimensions = self.words.model, self.words.dimensions
        self.loops, self.askers = set(), []
        self.is_held, self.begun = None, threading.Event()
        self.was_cancelled = threading.Event()

    async def embed(self, texts):
        self.loops.add(asyncio.get_running_loop())
        self.askers.append(asker.get())
        await asyncio.sleep(0)
        if self.is_held is not None:
            self.begun.set()
            try:
                await self.is_held()
            except asyncio.CancelledError:
                self.was_cancelled.set()
                raise
        return self.words.embed(texts)


class Later:
    """Can be awaited, and is no coroutine."""

    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return self.coroutine.__await__()


class AwaitableEmbedder(CoroutineEmbedder):
    """A plain function that returns something to be awaited."""

    def embed(self, texts):
        return Later(super().embed(texts))


def threads():
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert threads() == []


@pytest.mark.parametrize("kind", [CoroutineEmbedder, AwaitableEmbedder])
def test_a_coroutine_function_embeds_at_the_synchronous_door(kind):
    embedder = kind()
    with (
        Memory(":memory:", embedder=embedder) as memory,
        Memory(":memory:", embedder=WordEmbedder()) as plain,
    ):
        for door in (memory, plain):
            door.add_many(["red sofa", "blue chair", "green table"])
            door.update(door.add("a lamp").id, content="a red lamp")
        found = [(hit.content, hit.score) for hit in memory.search("red")]
        assert found == [(hit.content, hit.score) for hit in plain.search("red")]
        assert len(embedder.loops) == 1
        assert len(threads()) == 1
    assert all(loop.is_closed() for loop in embedder.loops)


def test_a_coroutine_function_embeds_at_the_asynchronous_doors_on_a_loop_of_its_own(tmp_path):
    embedder = CoroutineEmbedder()

    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            await memory.add("red sofa")
            assert [hit.content for hit in await memory.search("red")] == ["red sofa"]
        async with AsyncLongTermMemory(tmp_path / "a.db", embedder=embedder) as memory:
            await memory.store(entry("blue chair", agent_id="default"))
            found = await memory.search_semantic("blue", min_similarity=0)
            assert [hit.entry.content for hit in found] == ["blue chair"]
        assert asyncio.get_running_loop() not in embedder.loops
        assert len(embedder.loops) == 2  # one for each memory

    asyncio.run(scenario())


def test_the_callers_loop_goes_on_and_calls_embed_side_by_side():
    embedder = CoroutineEmbedder()

    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            meeting = threading.Barrier(4, timeout=30)  # of three calls and the caller's loop
            embedder.is_held = lambda: asyncio.to_thread(meeting.wait)
            calls = [asyncio.create_task(memory.add(f"memory {at}")) for at in range(3)]
            await asyncio.to_thread(meeting.wait)
            embedder.is_held = None
            assert len(await asyncio.gather(*calls)) == 3
            assert len(await memory.search("memory")) == 3

    asyncio.run(scenario())


def test_threads_share_one_loop_and_context_variables_are_those_of_the_caller():
    embedder = CoroutineEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:

        def add(name):
            asker.set(name)
            memory.add(name)

        run_together(*(partial(add, f"thread {at}") for at in range(8)))
        assert sorted(embedder.askers) == sorted(f"thread {at}" for at in range(8))
        assert len(embedder.loops) == len(threads()) == 1


def test_a_cancelled_call_cancels_the_coroutine_and_stores_nothing():
    embedder = CoroutineEmbedder()

    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            embedder.is_held = asyncio.Event().wait
            call = asyncio.create_task(memory.add("never"))
            await asyncio.to_thread(embedder.begun.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(embedder.was_cancelled.wait, 30)
            embedder.is_held = None
            await memory.add("red sofa")
            assert await memory.count() == 1

    asyncio.run(scenario())


def test_closing_ends_a_coroutine_that_would_never_end():
    embedder = CoroutineEmbedder()
    memory = Memory(":memory:", embedder=embedder)
    embedder.is_held = asyncio.Event().wait
    failed = []

    def add():
        try:
            memory.add("never")
        except EmbeddingError as error:
            failed.append(error)

    adding = threading.Thread(target=add)
    adding.start()
    assert embedder.begun.wait(30)
    memory.close()
    adding.join(30)
    assert embedder.was_cancelled.is_set()
    assert "close() ended the event loop" in str(failed[0])
    assert all(loop.is_closed() for loop in embedder.loops)


def test_ctrl_c_in_the_midst_of_handing_over_cancels_the_coroutine_in_its_own_thread(monkeypatch):
    thread, raised, ended = EventLoopThread(), [], threading.Event()

    async def waits():
        try:
            await asyncio.sleep(30)
        except BaseException as error:
            raised.append(type(error))
            raise
        finally:
            ended.set()

    thread.run(asyncio.sleep(0))
    loop = thread._running._loop
    hand_over = loop.call_soon_threadsafe

    def interrupted(*arguments):
        hand_over(*arguments)
        time.sleep(0.05)  # it waits by now
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.run(waits())
    assert ended.wait(30)
    assert raised == [asyncio.CancelledError]
    thread.close()


def test_a_memory_that_is_not_closed_leaves_no_thread_and_no_warning(tmp_path):
    program = f"""
import sys; sys.path[:0] = {sys.path!r}
from tests.threads.test_event_loop_thread import CoroutineEmbedder, threads
from mnemic import Memory
import gc
memory = Memory({str(tmp_path / "a.db")!r}, embedder=CoroutineEmbedder())
memory.add("red sofa")
del memory
gc.collect()
assert threads() == [], threads()
kept = Memory({str(tmp_path / "a.db")!r}, embedder=CoroutineEmbedder())
print(kept.search("red")[0].content)
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "red sofa\n", "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda _: np.zeros((7, 7), np.float32), "returned shape"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: asyncio.current_task().cancel(), "CancelledError"),
    ],
)
def test_a_coroutine_that_fails_is_an_error_of_the_embedder(wrong, said):
    embedder = CoroutineEmbedder()

    async def embed(texts):
        answer = wrong(texts)
        await asyncio.sleep(0)
        return answer

    embedder.embed = embed
    with Memory(":memory:", embedder=embedder) as memory:
        with pytest.raises(EmbeddingError, match=said):
            memory.add("red sofa")
        assert memory.count() == 0


def test_an_embedder_that_waits_for_itself_is_told_so_and_hangs_nothing():
    embedder = CoroutineEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        words = embedder.words

        async def embed(texts):
            if texts == ["outer"]:
                memory.add("inner")
            return words.embed(texts)

        embedder.embed = embed
        with pytest.raises(EmbeddingError, match="EmbeddingError"):
            memory.add("outer")
        assert memory.count() == 0


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_error_that_would_end_the_event_loop_is_the_callers_and_the_loop_goes_on(error):
    loop = EventLoopThread("test")

    async def fail():
        raise error

    async def thread():
        return threading.get_ident()

    before = loop.run(thread())
    with pytest.raises(type(error)):
        loop.run(fail())
    assert loop.run(thread()) == before
    loop.close()


async def in_a_task(error):
    async def inner():
        raise error

    await asyncio.wait_for(inner(), 5)


async def in_a_task_left_alone(error):
    async def inner():
        raise error

    kept = asyncio.create_task(inner())
    await asyncio.sleep(60)
    await kept


async def in_a_group(error):
    async def inner():
        raise error

    async with asyncio.TaskGroup() as group:
        group.create_task(inner())
        group.create_task(asyncio.sleep(60))


def _raise(error):
    raise error


async def in_a_callback(error):
    asyncio.get_running_loop().call_soon(_raise, error)
    await asyncio.get_running_loop().create_future()


async def in_a_callback_of_a_thread(error):
    loop = asyncio.get_running_loop()
    threading.Timer(0.01, lambda: loop.call_soon_threadsafe(_raise, error)).start()
    await loop.create_future()


async def again_when_it_is_cancelled(error):
    asyncio.get_running_loop().call_soon(_raise, error)
    try:
        await asyncio.sleep(60)
    finally:
        await in_a_task(error)


async def by_stopping_it(_):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(60)


ENDING = [
    in_a_task,
    in_a_task_left_alone,
    in_a_group,
    in_a_callback,
    in_a_callback_of_a_thread,
    again_when_it_is_cancelled,
    by_stopping_it,
]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("ending", ENDING)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_who_waits_for_a_loop_that_is_ended_gets_an_error_and_the_next_call_a_new_loop(
    ending, error, caplog
):
    loop = EventLoopThread("test")
    begun, failed = threading.Event(), []

    async def held():
        begun.set()
        await asyncio.sleep(60)

    def wait():
        try:
            loop.run(held(), 30)
        except Exception as raised:  # noqa: BLE001 - compared below
            failed.append(raised)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(30)
    with pytest.raises((LoopEndedError, type(error))):
        loop.run(ending(error), 30)
    waiting.join(30)
    cause = "stop()" if ending is by_stopping_it else type(error).__name__
    assert [str(each) for each in failed] == [f"{cause} ended the event loop of the test"]
    for _ in range(3):
        assert loop.run(asyncio.sleep(0, "answer"), 30) == "answer"
    loop.close()
    caplog.clear()


@pytest.mark.parametrize("error", [OSError("too many open files"), SystemExit(3)])
def test_where_no_loop_is_to_be_had_that_call_fails_and_the_next_one_has_one(error, monkeypatch):
    def fail():
        raise error

    loop = EventLoopThread("test")
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.events, "new_event_loop", fail)
        with pytest.raises(type(error)):
            loop.run(asyncio.sleep(0), 10)
    assert loop.run(asyncio.sleep(0, "answer"), 30) == "answer"
    loop.close()


def test_calls_beside_the_end_of_a_loop_get_an_answer_or_an_error():
    loop = EventLoopThread("test")
    outcomes = []

    def call(at):
        for _ in range(20):
            try:
                ending = in_a_callback(SystemExit()) if at == 0 else asyncio.sleep(0, "answer")
                outcomes.append(loop.run(ending, 30))
            except LoopEndedError:
                outcomes.append("ended")

    run_together(*(partial(call, at) for at in range(6)))
    assert len(outcomes) == 120
    assert outcomes.count("ended") >= 20
    assert loop.run(asyncio.sleep(0, "answer"), 30) == "answer"
    loop.close()


@pytest.mark.parametrize("ending", ENDING)
def test_an_embedder_that_ends_its_loop_fails_that_add_and_the_next_one_is_stored(ending):
    embedder = CoroutineEmbedder()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        embedder.is_held = lambda: ending(SystemExit(3))
        with pytest.raises(EmbeddingError, match=r"failed: \S+ ended the event loop"):
            memory.add("blue")
        assert memory.search("red").degraded
        embedder.is_held = None
        memory.add("blue chair")
        assert [hit.content for hit in memory.search("blue", limit=1)] == ["blue chair"]


def test_a_coroutine_that_cannot_be_run_any_more_warns_of_nothing(recwarn):
    loop = EventLoopThread("test")
    loop.close()

    async def nothing():
        pass

    with pytest.raises(RuntimeError, match="closed"):
        loop.run(nothing())
    gc.collect()
    assert not list(recwarn)


def test_a_handler_in_the_midst_of_a_wait_for_the_loop_is_refused_and_does_not_hang(monkeypatch):
    embedder, outcomes = CoroutineEmbedder(), []
    wait = threading.Condition.wait

    def interrupted(condition, timeout=None):
        monkeypatch.undo()
        try:
            memory.search("tea")  # as a handler of a signal that comes before the wait begins
        except BusyThreadError:
            outcomes.append("refused")
        return wait(condition, timeout)

    def search():
        monkeypatch.setattr(threading.Condition, "wait", interrupted)
        outcomes.append(len(memory.search("a red sofa")))

    memory = Memory(":memory:", embedder=embedder)
    memory.add("a red sofa")
    embedder.is_held = lambda: asyncio.sleep(0.05)
    searching = threading.Thread(target=search, daemon=True)
    searching.start()
    searching.join(20)
    assert outcomes == ["refused", 1]
    memory.close()
