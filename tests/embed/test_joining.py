"""Concurrent calls with few texts are joined into one call of the embedder."""

import asyncio
import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from mnemic import AsyncMemory, Memory, as_embedder
from mnemic.embed import joining
from mnemic.embed.adapting import FEW_TEXTS
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import DeadlineExceededError, EmbeddingError
from tests.support.embedders import WordEmbedder
from tests.support.interrupts import interrupted_at
from tests.support.waiting import until

CALLERS = 140


class Held:
    """`WordEmbedder` whose calls wait until they are let go; it notes their texts."""

    model = "words"

    def __init__(self):
        self.words = WordEmbedder()
        self.dimensions = self.words.dimensions
        self.calls, self.begun, self.let_go = [], threading.Event(), threading.Event()
        self.fails = lambda _texts: False

    def embed(self, texts):
        self.calls.append(list(texts))
        self.begun.set()
        self.let_go.wait(60)
        if self.fails(texts):
            raise ConnectionError("secret")
        return self.words.embed(texts)


class HeldCoroutine(Held):
    """The same behind a coroutine function."""

    def __init__(self):
        super().__init__()
        self.was_cancelled = threading.Event()

    async def embed(self, texts):
        self.calls.append(list(texts))
        self.begun.set()
        try:
            while not self.let_go.is_set():  # noqa: ASYNC110 - threads let go
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        if self.fails(texts):
            raise ConnectionError("secret")
        return self.words.embed(texts)


@pytest.fixture(params=[Held, HeldCoroutine])
def embedder(request, monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 60.0)
    held = request.param()
    yield held
    held.let_go.set()


def waiting_of(embedder):
    """Return the number of calls that wait in a memory's or an embedder's joiner."""
    return len(embedder._documents._waiting)


def begin(function, *texts):
    """Run a function for each text in a thread; return futures after the first has begun."""
    pool = ThreadPoolExecutor(len(texts))
    futures = [pool.submit(function, text) for text in texts]
    pool.shutdown(wait=False)
    return futures


def test_texts_that_arrive_during_a_call_go_together_in_the_next_one(embedder):
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "text 0")
    assert embedder.begun.wait(60)
    later = []
    for at in range(1, 10):
        later += begin(lambda text: validated.embed([text]), f"text {at}")
        until(lambda at=at: waiting_of(validated) == at)
    embedder.let_go.set()
    vectors = [future.result(60) for future in [first, *later]]
    texts = [f"text {at}" for at in range(10)]
    assert embedder.calls == [texts[:1], texts[1:]]
    assert np.concatenate(vectors).tobytes() == embedder.words.embed(texts).tobytes()
    validated.close()


def test_adds_of_tasks_that_wait_for_one_call_go_in_the_next_one(embedder):
    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            first = asyncio.create_task(memory.add("first"))
            await asyncio.to_thread(embedder.begun.wait, 60)
            others = [asyncio.create_task(memory.add(f"text {at}")) for at in range(CALLERS - 1)]
            validated = memory.repository._models.embedder
            await asyncio.to_thread(until, lambda: waiting_of(validated) == CALLERS - 1)
            embedder.let_go.set()
            await asyncio.gather(first, *others)
            assert len(embedder.calls) == 2

    asyncio.run(scenario())


def test_a_joined_call_that_fails_fails_nobody_elses_text(embedder):
    validated = ValidatedEmbedder(embedder)
    embedder.fails = lambda texts: "poison" in texts
    (first,) = begin(lambda text: validated.embed([text]), "first")
    assert embedder.begun.wait(60)
    later = begin(lambda text: validated.embed([text]), "one", "poison", "two")
    until(lambda: waiting_of(validated) == 3)
    embedder.let_go.set()
    assert len(first.result(60)) == 1
    one, poison, two = later
    assert one.result(60).tobytes() == embedder.words.embed(["one"]).tobytes()
    assert two.result(60).tobytes() == embedder.words.embed(["two"]).tobytes()
    with pytest.raises(EmbeddingError, match="ConnectionError") as caught:
        poison.result(60)
    assert "secret" not in str(caught.value)
    assert sorted(map(len, embedder.calls)) == [1, 1, 1, 1, 3]
    validated.close()


def test_a_task_that_is_cancelled_leaves_the_call_of_the_others(embedder):
    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            validated = memory.repository._models.embedder
            first = asyncio.create_task(memory.add("first"))
            await asyncio.to_thread(embedder.begun.wait, 60)
            others = [asyncio.create_task(memory.add(text)) for text in ("one", "two", "three")]
            await asyncio.to_thread(until, lambda: waiting_of(validated) == 3)
            others[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await others[1]
            assert waiting_of(validated) == 2
            embedder.let_go.set()
            await asyncio.gather(first, others[0], others[2])
            assert embedder.calls == [["first"], ["one", "three"]]
            assert await memory.count() == 3

    asyncio.run(scenario())


def test_a_call_is_cancelled_with_the_last_of_its_tasks(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 60.0)
    embedder = HeldCoroutine()

    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            tasks = [asyncio.create_task(memory.add(text)) for text in ("one", "two")]
            await asyncio.to_thread(embedder.begun.wait, 60)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert await asyncio.to_thread(embedder.was_cancelled.wait, 60)
            embedder.let_go.set()
            await memory.add("three")
            assert await memory.count() == 1

    asyncio.run(scenario())


def test_a_hanging_call_holds_up_no_later_one(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 0.05)
    embedder = Held()
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "hangs")
    assert embedder.begun.wait(60)
    embedder.embed = embedder.words.embed
    later = begin(lambda text: validated.embed([text]), "one", "two")
    assert [len(future.result(60)) for future in later] == [1, 1]

    async def scenario():
        threads = Memory(":memory:", embedder=None).repository
        return await asyncio.gather(
            *(validated.embed_awaited([text], threads) for text in ("three", "four"))
        )

    assert len(asyncio.run(scenario())) == 2
    assert not first.done()
    embedder.let_go.set()
    assert len(first.result(60)) == 1


class SlowFirst(Held):
    """`Held`, whose first call takes twenty milliseconds."""

    def embed(self, texts):
        if self.calls:
            return super().embed(texts)
        self.calls.append(list(texts))
        time.sleep(0.02)
        return self.words.embed(texts)


@pytest.mark.parametrize("waits", [True, False])
def test_threads_begin_a_call_beside_one_of_an_embedder_that_mostly_waits(monkeypatch, waits):
    processor = (lambda: 0.0) if waits else time.monotonic
    clocks = SimpleNamespace(monotonic=time.monotonic, thread_time=processor)
    monkeypatch.setattr(joining, "STALLED_SECONDS", 60.0)
    monkeypatch.setattr(joining, "time", clocks)
    embedder = SlowFirst()
    validated = ValidatedEmbedder(embedder)
    validated.embed(["first"])
    held = begin(lambda text: validated.embed([text]), "held")
    assert embedder.begun.wait(60)
    later = begin(lambda text: validated.embed([text]), "one")
    if waits:
        until(lambda: embedder.calls[1:] == [["held"], ["one"]])
    else:
        until(lambda: waiting_of(validated) == 1)
        assert validated._documents._waiting[0].patience == 60
    embedder.let_go.set()
    assert [len(future.result(60)) for future in held + later] == [1, 1]
    validated.close()


def test_a_deadline_holds_while_another_call_hangs(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 60.0)
    embedder = Held()
    embedder.let_go.set()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("tea at noon")
        embedder.let_go.clear()
        embedder.begun.clear()
        (first,) = begin(lambda text: memory.search(text, search_type="semantic"), "hangs")
        assert embedder.begun.wait(60)
        with pytest.raises(DeadlineExceededError):
            memory.search("tea", timeout=0.05)
        embedder.let_go.set()
        assert len(first.result(60)) == 1


def test_queries_and_memories_are_joined_apart():
    class Apart(Held):
        def embed_query(self, text):
            return self.words.embed([text])[0]

    embedder = Apart()
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "memory")
    assert embedder.begun.wait(60)
    assert len(validated.embed_chunked(["query"], queries=True)) == 1  # it does not wait
    embedder.let_go.set()
    first.result(60)
    assert embedder.calls == [["memory"]]


def test_large_calls_neither_join_nor_wait():
    sizes = []

    class Counting(WordEmbedder):
        def embed(self, texts):
            sizes.append(len(texts))
            return super().embed(texts)

    def joins(texts, **options):
        return as_embedder(Counting(), **options).joins(texts, queries=False)

    assert joins(["text"] * FEW_TEXTS)
    assert not joins(["text"] * (FEW_TEXTS + 1))
    assert not joins([])
    assert not joins(["text"] * 3, batch_size=2)
    assert not joins(["text"], join_calls=False)
    in_batches = ValidatedEmbedder(as_embedder(Counting(), batch_size=4))
    assert len(in_batches.embed(["text"] * 9)) == 9
    assert sizes == [4, 4, 1]


def test_a_joined_call_has_no_more_texts_than_a_batch(embedder):
    embedder.batch_size = 4
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "first")
    assert embedder.begun.wait(60)
    later = begin(lambda text: validated.embed([text, text]), *(f"text {at}" for at in range(5)))
    until(lambda: waiting_of(validated) == 5)
    embedder.let_go.set()
    for future in [first, *later]:
        future.result(60)
    assert [len(call) for call in embedder.calls] == [1, 4, 4, 2]
    validated.close()


def test_an_interrupted_wait_blocks_no_later_call():
    embedder = WordEmbedder()
    validated = ValidatedEmbedder(embedder)
    for moment in range(12):
        interrupted_at(moment, lambda: validated.embed(["text"]))
    done = begin(lambda text: validated.embed([text]), "text")
    assert len(done[0].result(30)) == 1


def test_an_interrupted_wait_for_another_call_blocks_no_later_call(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 0.005)
    embedder = Held()
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "first")
    assert embedder.begun.wait(60)
    embedder.embed = embedder.words.embed
    moment = 0
    while not interrupted_at(moment, lambda: validated.embed(["text"])):
        moment += 1
    assert moment > 12
    embedder.let_go.set()
    first.result(60)
    joiner = validated._documents
    until(lambda: joiner._running is None or time.monotonic() - joiner._running.began > 0.005)
    assert waiting_of(validated) == 0
    monkeypatch.setattr(joining, "STALLED_SECONDS", 0.0)
    assert len(validated.embed(["text"])) == 1


def test_an_interrupted_leader_leaves_the_others_their_vectors(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 0.5)
    moment, is_over = 0, False
    while not is_over:
        embedder = Held()
        validated = ValidatedEmbedder(embedder)
        (first,) = begin(lambda text, to=validated: to.embed([text]), "first")
        assert embedder.begun.wait(60)

        def join(embedder=embedder, validated=validated):
            until(lambda: waiting_of(validated))  # the one that will lead
            (other,) = begin(lambda text: validated.embed([text]), "other")
            until(lambda: waiting_of(validated) != 1)
            embedder.let_go.set()
            return other.result(30)

        joined = ThreadPoolExecutor(1).submit(join)
        is_over = interrupted_at(
            moment, lambda to=validated: to.embed(["the leader's"]), joining.__file__
        )
        (late,) = begin(lambda text, to=validated: to.embed([text]), "late")
        assert len(joined.result(60)) == 1
        assert len(first.result(60)) == len(late.result(60)) == 1
        validated.close()
        moment += 1
    assert moment > 20


def test_a_forked_process_waits_for_no_call_of_the_first(embedder):
    validated = ValidatedEmbedder(embedder)
    (first,) = begin(lambda text: validated.embed([text]), "first")
    assert embedder.begun.wait(60)
    (waiting,) = begin(lambda text: validated.embed([text]), "waiting")
    until(lambda: waiting_of(validated) == 1)

    def embed_in_child():
        embedder.let_go = threading.Event()
        embedder.let_go.set()
        assert len(validated.embed(["text"])) == 1

    child = multiprocessing.get_context("fork").Process(target=embed_in_child)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    embedder.let_go.set()
    assert [len(future.result(60)) for future in (first, waiting)] == [1, 1]
    validated.close()


def test_an_embedder_that_wants_no_joined_calls_gets_none():
    embedder = Held()
    embedder.join_calls = False
    validated = ValidatedEmbedder(embedder)
    futures = begin(lambda text: validated.embed([text]), "one", "two", "three")
    until(lambda: len(embedder.calls) == 3)
    embedder.let_go.set()
    assert [len(future.result(60)) for future in futures] == [1, 1, 1]


def test_a_closed_memory_ends_waiting_calls(monkeypatch):
    monkeypatch.setattr(joining, "STALLED_SECONDS", 60.0)
    embedder = HeldCoroutine()
    memory = Memory(":memory:", embedder=embedder)
    futures = begin(memory.add, "first")
    assert embedder.begun.wait(60)
    futures += begin(memory.add, "one", "two")
    until(lambda: waiting_of(memory.repository._models.embedder) == 2)
    memory.close()
    for future in futures:
        assert isinstance(future.exception(60), EmbeddingError)


def test_many_threads_and_tasks_at_random_all_get_their_own_vectors():
    words = WordEmbedder()
    calls = []

    def embed(texts):
        calls.append(len(texts))
        if any("poison" in text for text in texts):
            raise ConnectionError
        return words.embed(texts)

    embedder = Held()
    embedder.embed = embed
    validated = ValidatedEmbedder(embedder)

    def right(text):
        expected = words.embed([text]).tobytes()
        for _ in range(30):
            if "poison" in text:
                with pytest.raises(EmbeddingError):
                    validated.embed([text])
            elif validated.embed([text]).tobytes() != expected:
                return False
        return True

    futures = begin(right, *(f"text {at}" for at in range(14)), "poison 1", "poison 2")
    assert all(future.result(120) for future in futures)
    assert not validated._documents._running
    assert waiting_of(validated) == 0


class Own(BaseException):
    """An exception that only a program of its own knows."""


RAISED = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Own]


class Refusing:
    """`WordEmbedder` that raises an exception for a text, plainly or in a coroutine."""

    model = "words"

    def __init__(self, kind):
        self.words, self.kind = WordEmbedder(), kind
        self.dimensions = self.words.dimensions

    def embed(self, texts):
        time.sleep(0.01)  # others arrive
        if "refused" in texts:
            raise self.kind("secret")
        return self.words.embed(texts)


class RefusingCoroutine(Refusing):
    """The same behind a coroutine function."""

    async def embed(self, texts):
        return super().embed(texts)


@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("embedder", [Refusing, RefusingCoroutine])
def test_an_awaited_call_ends_whatever_the_embedder_raises(embedder, kind):
    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder(kind)) as memory:
            texts = [f"text {at}" for at in range(40)]
            adds = [memory.add(text) for text in [*texts[:20], "refused", *texts[20:], "refused"]]
            done = await asyncio.wait_for(asyncio.gather(*adds, return_exceptions=True), 60)
            failed = [each for each in done if isinstance(each, BaseException)]
            assert [type(each) for each in failed] == [EmbeddingError, EmbeddingError]
            assert all(kind.__name__ in str(each) and not each.__context__ for each in failed)
            assert await memory.count() == len(texts)
            async with asyncio.timeout(60):
                assert (await memory.search("refused")).degraded
                assert (await memory.search("refused", timeout=30)).degraded
                with pytest.raises(EmbeddingError):
                    await memory.update(done[0].id, content="refused")
                with pytest.raises(EmbeddingError):
                    await memory.add_many(["refused"] * 30)

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", RAISED)
def test_what_a_plain_embedder_raises_in_its_callers_thread_is_the_callers(kind):
    with Memory(":memory:", embedder=Refusing(kind)) as memory:

        def add(text):
            try:
                memory.add(text)
            except BaseException as error:  # noqa: BLE001 - compared below
                return type(error)

        texts = [f"text {at}" for at in range(8)]
        futures = begin(add, *texts, "refused")
        assert [future.result(60) for future in futures].count(kind) >= 1
        assert futures[-1].result() is kind
        memory.add("text")
