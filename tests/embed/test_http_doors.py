"""Every door with an embedder over HTTP: requests are counted, joined and split."""

import asyncio
import threading

import pytest

from mnemic import AsyncMemory, CachedEmbedder, HttpEmbedder, Memory
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import EmbeddingError, EmbeddingServiceError
from mnemic.http import transport
from tests.support.entries import entry

CALLERS = 12


@pytest.fixture
def embedder(server):
    with HttpEmbedder("m", base_url=server.url, batch_size=50) as made:
        yield made


def counts(server):
    report = server.report()
    return report["embeddings"], report["texts"]


@pytest.mark.parametrize("wrap", [lambda embedder: embedder, CachedEmbedder])
def test_many_texts_are_split_into_full_requests(embedder, server, wrap):
    texts = [f"memory number {number}" for number in range(230)]
    with Memory(":memory:", embedder=wrap(embedder)) as memory:
        memory.add_many(texts)
        assert counts(server) == (5, 230)
        assert memory.search("memory number 117", limit=1)[0].content == "memory number 117"
        assert counts(server)[0] <= 6
    sizes = [len(request["body"]["input"]) for request in server.requests()][:5]
    assert sorted(sizes) == [30, 50, 50, 50, 50]


def test_the_first_request_has_each_text_once(embedder, server):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("tea")
    assert [request["body"]["input"] for request in server.requests()] == [["tea"]]


def test_single_texts_of_threads_become_one_request(embedder, server):
    with Memory(":memory:", embedder=embedder) as memory:
        server.faults(delay=0.4)
        memory.add("warm")  # from which the usual time of a call is known
        server.reset()
        server.faults(delay=0.4)
        threads = [
            threading.Thread(target=memory.add, args=(f"thread {number}",))
            for number in range(CALLERS)
        ]
        threads[0].start()
        server.until(lambda report: report["running"] == 1)
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        requests, texts = counts(server)
        assert texts == CALLERS
        assert requests <= 4
        for number in range(CALLERS):
            assert memory.search(f"thread {number}", limit=1)[0].content == f"thread {number}"


def test_single_texts_of_tasks_become_one_request(embedder, server):
    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            await memory.add("warm")
            server.reset()
            server.faults(delay=0.4)
            first = asyncio.create_task(memory.add("task 0"))
            await asyncio.to_thread(server.until, lambda report: report["running"] == 1)
            await asyncio.gather(first, *(memory.add(f"task {n}") for n in range(1, CALLERS)))
            assert counts(server) == (2, CALLERS)
            server.reset()
            found = await asyncio.gather(*(memory.search(f"task {n}") for n in range(CALLERS)))
            assert [hits[0].content for hits in found] == [f"task {n}" for n in range(CALLERS)]
            requests, texts = counts(server)
            assert texts == CALLERS
            assert requests <= 4

    asyncio.run(scenario())


def test_one_embedder_serves_several_memories_and_their_loops(embedder, tmp_path):
    async def scenario():
        async with (
            AsyncMemory(":memory:", embedder=embedder) as one,
            AsyncLongTermMemory(tmp_path / "a.db", embedder=embedder) as two,
        ):
            await asyncio.gather(
                one.add("red sofa"), two.store(entry("blue chair", agent_id="default"))
            )
            direct = await embedder.embed(["red sofa"])
            assert [hit.content for hit in await one.search("red", limit=1)] == ["red sofa"]
            found = await two.search_semantic("blue", min_similarity=0)
            assert [hit.entry.content for hit in found] == ["blue chair"]
            assert direct.shape == (1, 64)

    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("green table")
        asyncio.run(scenario())
        assert memory.search("green")[0].content == "green table"


def test_a_failing_service_is_the_embedders_error_at_the_doors(embedder, server, monkeypatch):
    monkeypatch.setattr(transport, "FIRST_BACKOFF", 0.01)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        server.faults(status=503, times=0)
        with pytest.raises(EmbeddingServiceError) as raised:
            memory.add("blue chair")
        assert raised.value.status == 503
        pending = memory.add_many(["blue chair"], on_embed_error="pending")[0]
        assert [hit.content for hit in memory.search("blue chair", limit=1)] == ["blue chair"]
        server.reset()
        assert memory.get(pending.id).content == "blue chair"


def test_wrong_responses_store_nothing(embedder, server):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        for fault in ({"wrong_count": True}, {"malformed": True}, {"number": "NaN"}):
            server.faults(**fault)
            with pytest.raises(EmbeddingError):
                memory.add_many(["blue chair", "green table"])
        assert memory.count() == 1


def test_a_cancelled_call_of_a_door_ends_its_request(embedder, server):
    async def scenario():
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            await memory.add("warm")
            server.faults(hang=True)
            task = asyncio.create_task(memory.add("never"))
            await asyncio.to_thread(server.until, lambda report: report["running"] == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.until, lambda report: report["abandoned"] == 1)
            assert await memory.count() == 1

    asyncio.run(scenario())


def test_a_closed_memory_ends_its_requests(embedder, server):
    memory = Memory(":memory:", embedder=embedder)
    memory.add("warm")
    server.faults(hang=True)
    errors = []

    def add():
        try:
            memory.add("never")
        except Exception as error:  # noqa: BLE001 - whatever it is
            errors.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    server.until(lambda report: report["running"] == 1)
    memory.close()
    thread.join(20)
    assert len(errors) == 1
    server.until(lambda report: report["abandoned"] == 1)
