"""One file in several memories, threads and processes; closing and opening."""

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pytest

from mnemic.errors import StoreClosedError
from mnemic.memory import Memory
from mnemic.store.operations import RowsSince
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents
from tests.support.operations import replace_operation
from tests.support.processes import ENVIRONMENT
from tests.support.threads import run_together


@pytest.fixture(params=["file", "memory"])
def memory(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as opened:
        yield opened


# Closing, opening, sharing


def test_after_closing_every_call_says_so_and_closing_again_is_harmless(memory):
    memory.close()
    memory.close()
    for call in (
        lambda: memory.add("x"),
        lambda: memory.search("x"),
        lambda: memory.get(uuid4()),
        lambda: memory.delete(uuid4()),
        memory.count,
    ):
        with pytest.raises(StoreClosedError, match="closed"):
            call()


@pytest.mark.requirement("R001")
def test_every_acknowledged_memory_survives_a_killed_process(path):
    code = (
        "import sys\n"
        "from mnemic.memory import Memory\n"
        "from tests.support.embedders import WordEmbedder\n"
        "memory = Memory(sys.argv[1], embedder=WordEmbedder())\n"
        "for number in range(10**6):\n"
        "    print(memory.add(f'memory {number}').id, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    acknowledged = [process.stdout.readline().strip() for _ in range(60)]
    process.kill()
    rest = process.stdout.read().split("\n")[:-1]
    process.stdout.close()
    assert process.wait(30) == -9
    acknowledged += rest
    with opened(path) as memory:
        for number, entry_id in enumerate(acknowledged):
            assert memory.get(entry_id).content == f"memory {number}"
        assert len(acknowledged) <= memory.count() <= len(acknowledged) + 1
        assert len(memory.search("memory 5", limit=10**6)) == memory.count()


def test_processes_that_write_at_once_lose_nothing(path):
    code = (
        "import sys\n"
        "from mnemic.memory import Memory\n"
        "from tests.support.embedders import WordEmbedder\n"
        "with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:\n"
        "    for number in range(40):\n"
        "        memory.add(f'note {number} of {sys.argv[2]}')\n"
        "        found = memory.search(f'note {number} of {sys.argv[2]}', limit=1)\n"
        "        assert found[0].content == f'note {number} of {sys.argv[2]}'\n"
    )
    with opened(path) as memory:
        command = [sys.executable, "-c", code, str(path)]
        started = [
            subprocess.Popen([*command, name], env=ENVIRONMENT) for name in ("ann", "ben", "cat")
        ]
        while any(process.poll() is None for process in started):
            assert len(memory.search("note", limit=1000)) <= memory.count()
        assert [process.returncode for process in started] == [0, 0, 0]
        found = memory.search("note", limit=1000)
        assert len(found) == len({hit.content for hit in found}) == memory.count() == 120


def test_a_memory_that_is_never_closed_lets_go_of_its_file_when_collected(path):
    memory = opened(path)
    memory.add("x")
    before = threading.active_count()
    del memory
    assert threading.active_count() == before - 1
    assert [found.name for found in path.parent.iterdir()] == ["a.db"]


def test_two_memories_that_lack_vectors_embed_each_text_once(path):
    with Memory(path, embedder=None) as bare, opened(path) as one, opened(path) as two:
        bare.add("red sofa")
        two.add("blue chair")  # it learns here that the sofa lacks a vector
        assert contents(one.search("red", limit=1)) == ["red sofa"]
        assert contents(two.search("red", limit=1)) == ["red sofa"]
        assert one.embedder.texts == ["red sofa", "red"]
        assert two.embedder.texts == ["blue chair", "red"]


def test_a_search_does_not_wait_for_what_others_write_after_it_began(path, monkeypatch):
    with opened(path) as reader, opened(path) as other:
        calls = []

        def overtaken(read, wanted, **named):
            batch = read(wanted, **named)
            calls.append(other.add(f"late {len(calls)}"))
            return batch

        replace_operation(monkeypatch, reader._repository._store, RowsSince, overtaken)
        other.add("early")
        found = reader.search("early")
        assert (found[0].content, len(calls)) == ("early", 1)


# Threads


def test_closing_while_threads_use_a_memory_gives_answers_or_says_closed(memory):
    memory.add_many([f"note {number}" for number in range(100)])

    def work(call):
        with suppress(StoreClosedError):
            while True:
                call()

    calls = (
        lambda: memory.add("note"),
        lambda: memory.search("note"),
        lambda: memory.get(memory.add("note").id),
        lambda: memory.delete(memory.add("note").id),
    )
    run_together(memory.close, *(partial(work, call) for call in calls))


@pytest.mark.requirement("R008")
def test_threads_add_and_search_at_once_and_see_their_own_writes(memory):
    def work(name):
        view = memory.scoped(user_id=name)
        for number in range(30):
            added = view.add(f"note {number} of {name}")
            found = view.search(f"note {number} of {name}", limit=100)
            assert len(found) == number + 1 - number // 10
            assert added.id in {hit.id for hit in found}
            assert {hit.user_id for hit in found} == {name}
            if number % 10 == 9:
                view.delete(added.id)
                assert added.id not in {hit.id for hit in view.search("note", limit=100)}

    names = [f"user{number}" for number in range(6)]
    run_together(*(partial(work, name) for name in names))
    assert [memory.count(user_id=name) for name in names] == [27] * 6


def test_searches_beside_deletions_answer_with_living_memories_in_full(memory):
    added = memory.add_many([f"note {number}" for number in range(300)])
    done = threading.Event()
    answers = []

    def search():
        while not done.is_set():
            answers.append(memory.search("note", limit=5))

    def delete():
        try:
            for entry in added[:200]:
                memory.delete(entry.id)
        finally:
            done.set()

    run_together(delete, search, search, search)
    assert {len(answer) for answer in answers} <= {5}
    assert memory.count() == 100


def test_a_plain_memory_can_be_used_inside_an_event_loop(memory):
    async def inside():
        memory.add("red sofa")
        return memory.search("red")

    assert contents(asyncio.run(inside())) == ["red sofa"]
