"""Builds of an engine's index: in one worker, coalesced, and never in the way."""

import asyncio
import logging
import threading
import time

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import EmbeddingModelMismatchError
from mnemic.hyde import AsyncHydeEngine, HydeEngine, build
from mnemic.hyde.build import BuildWorker
from mnemic.threads.sync_bridge import sync_method
from tests.support.hyde import AxisEmbedder, ListedModel, axis, contents, memory_of
from tests.support.threads import run_together

WINDOW = ["user: what is it?"]
SECONDS = 20

ready_sync = sync_method(BuildWorker.ready)


class Builds:
    """A build that a test holds and lets fail."""

    def __init__(self):
        self.started = 0
        self.running = 0
        self.most = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.error = None

    def __call__(self):
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.entered.set()
        assert self.gate.wait(SECONDS)
        self.running -= 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def builds(monkeypatch):
    monkeypatch.setattr(build, "FIRST_DELAY", 0.0)
    return Builds()


def ended(worker):
    """Wait until no build is under way."""
    end = time.monotonic() + SECONDS
    while worker._running is not None:
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.requirement("C114", "R400")
def test_triggers_during_a_build_are_one_further_build(builds):
    worker = BuildWorker(builds, "aide")
    builds.gate.clear()
    worker.trigger()
    assert builds.entered.wait(SECONDS)
    run_together(*[worker.trigger] * 50)
    builds.gate.set()
    ended(worker)
    assert (builds.started, builds.most, worker.builds) == (2, 1, 2)


def test_the_thread_ends_with_the_builds(builds, threads_named):
    worker = BuildWorker(builds, "aide")
    worker.trigger()
    ended(worker)
    worker._thread.join(SECONDS)
    assert not threads_named("hyde-build")


@pytest.mark.requirement("R387", "R388", "R393", "C131")
def test_the_first_failure_is_one_warning_and_later_ones_are_for_debugging(builds, caplog):
    caplog.set_level(logging.DEBUG, logger="mnemic.hyde")
    worker = BuildWorker(builds, "aide")
    builds.error = ValueError("quoted secret")
    for _ in range(3):
        worker.trigger()
        ended(worker)
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"]
    assert "secret" not in caplog.text
    assert (worker.is_ready, worker.failed_builds) == (False, 3)
    builds.error = None
    worker.trigger()
    assert ready_sync(worker, SECONDS)
    ended(worker)
    builds.error = ValueError()
    worker.trigger()
    ended(worker)
    assert worker.is_ready  # by the build before
    assert "indexed before" in caplog.records[-1].getMessage()


def test_builds_wait_longer_after_each_failure(builds, monkeypatch):
    waits = []
    monkeypatch.setattr(build, "FIRST_DELAY", 10.0)
    worker = BuildWorker(builds, "aide")
    monkeypatch.setattr(worker._stop, "wait", lambda seconds: waits.append(round(seconds)))
    builds.error = ValueError()
    for _ in range(5):
        worker.trigger()
        ended(worker)
    assert waits == [10, 20, 30, 30]
    builds.error = None
    worker.trigger()
    ended(worker)
    worker.trigger()
    ended(worker)
    assert len(waits) == 5


@pytest.mark.requirement("C108", "T013")
def test_waiting_for_readiness_ends_with_the_first_success_or_the_failure(builds):
    async def waited(worker):
        return await asyncio.gather(*(worker.ready(SECONDS) for _ in range(5)))

    worker = BuildWorker(builds, "aide")
    assert not asyncio.run(worker.ready(SECONDS))  # nothing is under way
    builds.error = ValueError()
    worker.trigger()
    assert asyncio.run(waited(worker)) == [False] * 5
    builds.error = None
    worker.trigger()
    assert asyncio.run(waited(worker)) == [True] * 5


def test_a_cancelled_wait_leaves_the_build(builds):
    async def run(worker):
        waiting = asyncio.ensure_future(worker.ready(SECONDS))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    worker = BuildWorker(builds, "aide")
    builds.gate.clear()
    worker.trigger()
    asyncio.run(run(worker))
    builds.gate.set()
    assert ready_sync(worker, SECONDS)


def test_waiting_gives_up_after_its_seconds(builds):
    worker = BuildWorker(builds, "aide")
    builds.gate.clear()
    worker.trigger()
    assert not asyncio.run(worker.ready(0.01))
    assert not ready_sync(worker, 0.01)
    builds.gate.set()
    ended(worker)


def test_closing_leaves_a_hanging_build_behind_and_begins_no_other(builds):
    worker = BuildWorker(builds, "aide")
    builds.gate.clear()
    worker.trigger()
    assert builds.entered.wait(SECONDS)
    worker.trigger()
    worker.close(0.01)
    worker.trigger()
    builds.gate.set()
    worker._thread.join(SECONDS)
    assert builds.started == 1


def test_no_thread_to_be_had_is_a_failed_build(builds, monkeypatch, caplog):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    worker = BuildWorker(builds, "aide")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        worker.trigger()
    assert worker.failed_builds == 1
    assert "RuntimeError" in caplog.text
    worker.trigger()
    assert ready_sync(worker, SECONDS)


# In an engine


class Failing(AxisEmbedder):
    def __init__(self):
        super().__init__()
        self.fails = False

    def embed(self, texts):
        if self.fails:
            self.calls.append(list(texts))
            raise OSError("down")
        return super().embed(texts)


def unembedded(embedder, *texts):
    """A memory whose entries lack vectors."""
    memory = Memory(":memory:", embedder=embedder)
    embedder.fails = True
    for text in texts:
        memory.add_many([text], on_embed_error="pending")
    return memory


class Undeclared:
    """An embedder whose dimension is not known before it was called."""

    model = AxisEmbedder.model
    embed = staticmethod(lambda texts: [axis(text) for text in texts])


@pytest.mark.requirement("C168", "R346")
@pytest.mark.parametrize("given", [(), ("gamma",)])
@pytest.mark.parametrize("embedder", [AxisEmbedder, Undeclared])
def test_without_an_embedder_of_the_memory_that_of_the_engine_embeds(given, embedder):
    memory = Memory(":memory:", embedder=None, embedding_model=AxisEmbedder.model)
    for text in given:
        memory.add(MemoryEntry(content=text, embedding=axis(text)))
    memory.add("alpha")
    with HydeEngine(memory, embedder(), ListedModel("alpha")) as engine:
        assert engine.ready(SECONDS)
        assert contents(engine.retrieve("1", WINDOW))[:1] == ["alpha"]
        memory.add("beta")
        engine.trigger_rebuild()
        ended(engine._service._parts().worker)
        assert not memory.repository._indexes.active.index.summary().unembedded
    assert memory.embedder is None
    with pytest.raises(EmbeddingModelMismatchError, match="8 dimensions"):
        memory.add(MemoryEntry(content="delta", embedding=[1.0, 0.0]))


@pytest.mark.requirement("R387", "R393")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_first_build_without_a_vector_fails_with_one_warning(count, caplog):
    memory = Memory(":memory:", embedder=None, embedding_model=AxisEmbedder.model)
    memory.add_many([f"alpha {number}" for number in range(count)])
    embedder = Failing()
    embedder.fails = True
    with HydeEngine(memory, embedder, ListedModel("alpha")) as engine:
        assert not engine.ready(SECONDS)
        assert engine.stats().failed_builds >= 1
    of_engine = [each.levelname for each in caplog.records if each.name == "mnemic.hyde"]
    assert of_engine.count("WARNING") == 1


@pytest.mark.requirement("R353", "R405")
def test_the_first_retrieval_begins_the_build():
    memory = memory_of("alpha")
    engine = HydeEngine(memory, memory.embedder, ListedModel("alpha"))
    assert contents(engine.retrieve("1", WINDOW)) == ["alpha"]
    assert engine.stats().builds == 1
    engine.close()


def test_closing_an_engine_ends_a_build_of_a_coroutine_embedder(threads_named):
    entered, ended = threading.Event(), threading.Event()

    class Hanging(Failing):
        async def embed(self, texts):
            if self.fails:
                return super().embed(texts)
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    embedder = Hanging()
    memory = unembedded(embedder, "alpha")
    embedder.fails = False
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"))
    engine.start()
    assert entered.wait(SECONDS)
    asyncio.run(engine.aclose())
    assert ended.wait(SECONDS)  # cancelled in a thread that may be late
    assert not threads_named("hyde")
