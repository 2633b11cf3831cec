"""What the store promises: one of those who write, retries, users apart, deletion, durability."""

import asyncio
import subprocess
import sys

import killed
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness import memory as harness
from pydantic_ai_mnemic import MnemicMemoryStore

from mnemic import AsyncMemory, Memory

PATH = "alice/main/MEMORY.md"
BOUNDS = {"limit": 5, "max_files": 100, "max_chars": 1000, "max_file_chars": 1000}

WRITER = """
import asyncio, sys
from mnemic import Memory
from pydantic_ai_harness.memory import MemoryConflictError, MemoryOperation
from pydantic_ai_mnemic import MnemicMemoryStore

async def main(path, name, turns):
    with Memory(path, embedder=None) as memory:
        store = MnemicMemoryStore(memory)
        for turn in range(turns):
            operation = MemoryOperation(f"{name}-{turn}", "append")
            while True:
                file = await store.read("a/b/log.md", max_chars=10**6)
                text = (file.content if file else "") + f"{name} {turn}\\n"
                try:
                    await store.write(
                        "a/b/log.md",
                        text,
                        expected_version=file and file.version,
                        operation=operation,
                    )
                    break
                except MemoryConflictError:
                    continue
            print(turn, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def start(path, name, turns):
    command = [sys.executable, "-c", WRITER, str(path), name, str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", embedder=None) as opened:
        yield opened


def log(memory):
    file = asyncio.run(MnemicMemoryStore(memory).read("a/b/log.md", max_chars=10**6))
    return [line.split() for line in file.content.splitlines()]


def test_it_is_a_store_of_each_kind(memory):
    store = MnemicMemoryStore(memory)
    assert isinstance(store, harness.MemoryStore)
    assert isinstance(store, harness.MetadataMemoryStore)
    assert isinstance(store, harness.SearchableMemoryStore)


def test_an_agent_keeps_its_memory_in_it(memory):
    store = MnemicMemoryStore(memory)
    model = TestModel(call_tools=["write_memory"])
    kept = harness.Memory(store=store, namespace="alice", write_metadata={"by": "agent"})
    result = Agent(model, capabilities=[kept]).run_sync("remember")
    assert "write_memory" in str(result.all_messages())
    (path,) = asyncio.run(store.list_paths(limit=5))
    file = asyncio.run(store.read(path, max_chars=100))
    assert path.startswith("alice/main/")
    assert file.metadata == {"by": "agent"}
    assert file.operation_id is not None


def test_files_are_found_in_other_words_than_theirs():
    async def run():
        async with AsyncMemory(":memory:") as memory:
            store = MnemicMemoryStore(memory)
            for name, text in (
                ("food.md", "Allergic to peanuts. " * 5),
                ("work.md", "Ships code on Fridays"),
                ("deeper/food.md", "Allergic to everything"),
            ):
                await store.write(f"alice/main/{name}", text, expected_version=None)
            await store.write("bob/main/food.md", "Allergic to milk", expected_version=None)
            found = await store.search("alice/main/", "Which foods must she avoid?", **BOUNDS)
            short = await store.search(
                "alice/main/", "peanuts", **BOUNDS | {"max_chars": 20, "limit": 1}
            )
            return found, short

    found, short = asyncio.run(run())
    assert found.matches[0].path == "alice/main/food.md"
    assert {match.path for match in found.matches} <= {"alice/main/food.md", "alice/main/work.md"}
    assert found.scanned == 2
    (match,) = short.matches
    assert len(match.snippet) == 20 - len("food.md")
    assert "peanuts" in match.snippet or "Allergic" in match.snippet


@pytest.mark.parametrize(
    "changed", [{"limit": 0}, {"max_files": 0}, {"max_chars": 0}, {"max_file_chars": 0}]
)
def test_a_search_without_room_finds_nothing(memory, changed):
    store = MnemicMemoryStore(memory)
    asyncio.run(store.write(PATH, "word", expected_version=None))
    assert asyncio.run(store.search("alice/main/", "word", **BOUNDS)).matches
    assert not asyncio.run(store.search("alice/main/", "word", **BOUNDS | changed)).matches
    assert not asyncio.run(store.search("alice/main/", " ", **BOUNDS)).matches


def test_of_writes_that_expect_the_same_version_one_is_made(memory):
    async def run():
        store = MnemicMemoryStore(memory.aio)
        first = await store.write(PATH, "0", expected_version=None)
        writes = [store.write(PATH, str(at), expected_version=first.version) for at in range(1, 11)]
        results = await asyncio.gather(*writes, return_exceptions=True)
        made = [each for each in results if isinstance(each, harness.MemoryMutation)]
        assert len(made) == 1
        assert sum(isinstance(each, harness.MemoryConflictError) for each in results) == 9
        assert (await store.read(PATH, max_chars=10)).version == made[0].version

    asyncio.run(run())


@pytest.mark.parametrize("exists", [False, True])
def test_an_operation_that_is_repeated_at_once_is_applied_once(memory, exists):
    async def run():
        store = MnemicMemoryStore(memory.aio)
        before = await store.write(PATH, "old", expected_version=None) if exists else None
        operation = harness.MemoryOperation("op", "f")
        expected = before.version if before else None
        results = await asyncio.gather(
            *(
                store.write(PATH, "new", expected_version=expected, operation=operation)
                for _ in range(8)
            )
        )
        assert len({each.version for each in results}) == 1
        assert sorted(each.replayed for each in results) == [False] + [True] * 7

    asyncio.run(run())


def test_a_version_is_never_used_twice(memory):
    async def run():
        store, seen = MnemicMemoryStore(memory), set()
        for _ in range(5):
            made = await store.write(PATH, "same", expected_version=None)
            seen.add(made.version)
            await store.delete(PATH, expected_version=made.version)
            with pytest.raises(harness.MemoryConflictError):
                await store.write(PATH, "late", expected_version=made.version)
        assert len(seen) == 5

    asyncio.run(run())


def test_the_last_hundred_receipts_of_a_path_are_kept(memory):
    async def run():
        store, version = MnemicMemoryStore(memory), None
        for at in range(103):
            operation = harness.MemoryOperation(str(at), "f")
            written = await store.write(PATH, "x", expected_version=version, operation=operation)
            version = written.version
        known = [await store.get_operation(harness.MemoryOperation(str(at), "f")) for at in (2, 3)]
        assert [each is None for each in known] == [True, False]

    asyncio.run(run())


def test_processes_that_append_at_once_lose_nothing(memory, tmp_path):
    writers = [start(tmp_path / "agent.db", f"w{at}", 15) for at in range(3)]
    assert [writer.wait(250) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.stdout.close()
    for name in ("w0", "w1", "w2"):
        own = [int(turn) for writer, turn in log(memory) if writer == name]
        assert own == list(range(15))


def test_what_a_killed_process_acknowledged_is_there_with_its_receipt(memory, tmp_path):
    lines = killed.lines_of(WRITER, tmp_path / "agent.db", "w", 100_000, least=15)
    turns = [int(turn) for _, turn in log(memory)]
    assert turns == list(range(len(turns)))
    assert len(lines) <= len(turns) <= len(lines) + 1
    last = harness.MemoryOperation(f"w-{turns[-1]}", "append")
    assert asyncio.run(MnemicMemoryStore(memory).get_operation(last)).replayed


def test_what_another_directory_has_changes_no_answer(memory):
    async def answers(store):
        path = "alice/main/notes.md"
        written = await store.write(path, "tea and cake", expected_version=None)
        file = await store.read(path, max_chars=5)
        found = await store.search("alice/main/", "tea", **BOUNDS)
        paths = await store.list_paths("alice/main/n", limit=10)
        await store.delete(path, expected_version=written.version)
        return file.content, found, paths, await store.read(path, max_chars=5)

    async def run():
        store = MnemicMemoryStore(memory.aio)
        alone = await answers(store)
        for folder in ("bob/main", "alice/mainly", "alice/main/deeper", "alice"):
            await store.write(f"{folder}/notes.md", "tea " * 9, expected_version=None)
        assert await answers(store) == alone
        assert [hit.user_id for hit in memory.search("tea", user_id="bob/main")] == ["bob/main"]

    asyncio.run(run())


def test_what_was_deleted_stays_away(tmp_path):
    async def run(memory):
        store = MnemicMemoryStore(memory)
        operations = [harness.MemoryOperation(name, "f") for name in "ab"]
        first = await store.write(
            PATH, "zebras at dawn", expected_version=None, operation=operations[0]
        )
        await store.delete(PATH, expected_version=first.version, operation=operations[1])
        second = await store.write("a/zebras.md", "zebras at dusk", expected_version=None)
        await store.delete("a/zebras.md", expected_version=second.version)

    async def again(memory):
        store = MnemicMemoryStore(memory)
        assert await store.list_paths(limit=10) == []
        assert await store.read(PATH, max_chars=10) is None
        assert (await store.get_operation(harness.MemoryOperation("b", "f"))).existed

    with Memory(tmp_path / "agent.db", embedder=None) as memory:
        asyncio.run(run(memory))
    assert not any(b"zebras" in each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    with Memory(tmp_path / "agent.db", embedder=None) as memory:
        asyncio.run(again(memory))


def test_a_file_that_was_deleted_by_other_means_can_be_written_again(memory):
    async def run():
        store = MnemicMemoryStore(memory)
        await store.write(PATH, "old", expected_version=None)
        (entry,) = memory.list(user_id="alice/main")
        memory.delete(entry.id, user_id="alice/main")
        assert await store.read(PATH, max_chars=10) is None
        await store.write(PATH, "new", expected_version=None)
        assert (await store.read(PATH, max_chars=10)).content == "new"

    asyncio.run(run())


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "x" * 11_000_000])
def test_a_text_that_no_memory_holds_is_refused_and_changes_nothing(memory, text):
    async def run():
        store = MnemicMemoryStore(memory)
        first = await store.write(PATH, "old", expected_version=None)
        for path, version in ((PATH, first.version), ("other.md", None)):
            with pytest.raises(ValueError, match="content"):
                await store.write(path, text, expected_version=version)
        assert (await store.read(PATH, max_chars=10)).version == first.version
        assert await store.list_paths(limit=10) == [PATH]

    asyncio.run(run())
