"""No thread, task or socket is left; loops, threads and child processes each have their own."""

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading

import pytest

from mnemic import AsyncMemory, HttpEmbedder, Memory
from mnemic.errors import EmbeddingError, LanguageModelError
from mnemic.llm import HttpLanguageModel
from tests.support.processes import ENVIRONMENT
from tests.support.threads import run_together


def sockets():
    gc.collect()
    found = []
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names alone
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))  # noqa: PTH115 - as above
    return sorted(name for name in found if name.startswith(("socket:", "pipe:", "anon_inode")))


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = sockets(), set(threading.enumerate())
    yield
    assert (sockets(), set(threading.enumerate())) == before


def test_the_synchronous_form_leaves_nothing(server):
    with HttpEmbedder("m", base_url=server.url) as embedder:
        before = len(sockets())
        embedder.embed_sync(["a"])
        assert len(sockets()) > before


def test_a_memory_leaves_nothing_though_its_embedder_is_forgotten(server):
    with Memory(":memory:", embedder=HttpEmbedder("m", base_url=server.url)) as memory:
        memory.add("tea")


def test_a_loop_leaves_nothing_though_its_models_are_forgotten(server):
    embedder = HttpEmbedder("m", base_url=server.url)
    llm = HttpLanguageModel("m", base_url=server.url)

    async def scenario():
        await asyncio.gather(*(embedder.embed([str(number)]) for number in range(30)))
        await llm.complete("user: tea?")

    for _ in range(3):  # a new loop each time, with the same objects
        before = sockets()
        asyncio.run(scenario())
        assert sockets() == before


def test_aclose_leaves_no_task_and_no_socket(server):
    async def scenario():
        before = sockets()
        embedder = HttpEmbedder("m", base_url=server.url)
        llm = HttpLanguageModel("m", base_url=server.url)
        await asyncio.gather(*(embedder.embed([str(number)]) for number in range(30)))
        await llm.complete("user: tea?")
        await asyncio.gather(embedder.aclose(), llm.aclose())
        await embedder.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sockets() == before

    asyncio.run(scenario())


def test_close_in_a_loop_closes_by_its_next_turns(server):
    async def scenario():
        before = sockets()
        with HttpEmbedder("m", base_url=server.url) as embedder:
            await embedder.embed(["a"])
        await asyncio.sleep(0.05)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert sockets() == before

    asyncio.run(scenario())


def test_close_ends_what_runs_in_other_threads_and_their_loops(server):
    server.faults(hang=True, times=0)
    embedder = HttpEmbedder("m", base_url=server.url, max_retries=5)
    llm = HttpLanguageModel("m", base_url=server.url)
    errors = []

    def run(call):
        with pytest.raises((EmbeddingError, LanguageModelError)) as raised:
            asyncio.run(call("a"))
        errors.append(str(raised.value))

    calls = [lambda text: embedder.embed([text])] * 3 + [llm.complete]
    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    server.until(lambda report: report["running"] == 4)
    embedder.close()
    llm.close()
    for thread in threads:
        thread.join(20)
    assert len(errors) == 4
    assert all("closed" in error for error in errors)
    server.until(lambda report: report["running"] == 0)


def test_loops_of_several_threads_share_the_objects(server):
    with (
        HttpEmbedder("m", base_url=server.url) as embedder,
        HttpLanguageModel("m", base_url=server.url) as llm,
    ):
        failed = []

        async def talk(number):
            for turn in range(5):
                text = f"thread {number} turn {turn}"
                vectors, answer = await asyncio.gather(embedder.embed([text]), llm.complete(text))
                if vectors.shape != (1, 64) or answer != f"Thread {number} turn {turn}.":
                    failed.append(text)

        run_together(*[lambda number=number: asyncio.run(talk(number)) for number in range(8)])
        assert failed == []
    report = server.report()
    assert (report["embeddings"], report["chat"]) == (40, 40)


def test_a_closed_loop_is_forgotten(server):
    embedder = HttpEmbedder("m", base_url=server.url)
    for _ in range(3):
        asyncio.run(embedder.embed(["a"]))
    assert embedder._transport._clients._clients == {}
    loop = asyncio.new_event_loop()  # is never closed its generators
    loop.run_until_complete(embedder.embed(["a"]))
    kept = embedder._transport._clients._clients[loop]
    loop.run_until_complete(kept.client.aclose())
    loop.close()
    asyncio.run(embedder.embed(["a"]))
    assert embedder._transport._clients._clients == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_has_connections_of_its_own(server):
    program = f"""
import asyncio, os, sys
from mnemic import HttpEmbedder
from mnemic.llm import HttpLanguageModel
embedder = HttpEmbedder("m", base_url={server.url!r})
llm = HttpLanguageModel("m", base_url={server.url!r})
embedder.embed_sync(["parent"])

async def scenario():
    await llm.complete("parent")
    child = os.fork()
    if child:
        await embedder.embed(["parent, after the fork"])
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asyncio.events._set_running_loop(None)
    try:
        assert not embedder._transport._clients._clients
        embedder.embed_sync(["child"])
        asyncio.run(llm.complete("child"))
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

code = asyncio.run(scenario())
embedder.embed_sync(["parent, at the end"])
embedder.close()
sys.exit(code)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    texts = [each["body"]["input"][0] for each in server.requests("embeddings")]
    assert sorted(texts) == ["child", "parent", "parent, after the fork", "parent, at the end"]


def test_connections_are_used_again_and_limited(server):
    async def scenario():
        async with HttpEmbedder("m", base_url=server.url, max_connections=7) as embedder:
            before = len(sockets())
            for number in range(10):
                await embedder.embed([str(number)])
            assert len(sockets()) == before + 1
            server.faults(delay=0.02, times=0)
            await asyncio.gather(*(embedder.embed([str(number)]) for number in range(200)))
            assert len(sockets()) <= before + 7

    asyncio.run(scenario())
    report = server.report()
    assert report["embeddings"] == 210
    assert report["most"] <= 7


def test_the_doors_of_an_asynchronous_memory_leave_nothing(server):
    async def scenario():
        async with AsyncMemory(
            ":memory:", embedder=HttpEmbedder("m", base_url=server.url)
        ) as memory:
            await memory.add_many(["tea", "coffee"])
            await asyncio.gather(*(memory.search(f"tea {number}") for number in range(20)))

    asyncio.run(scenario())
