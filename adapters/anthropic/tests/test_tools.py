"""What the tools promise: the SDK's texts, edits that meet, users apart, deletion, durability."""

import asyncio
import random
import threading

import anthropic
import killed
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from anthropic_mnemic import AsyncMnemicMemoryTool, MnemicMemoryTool

from mnemic import AsyncMemory, Memory

PATHS = (
    *("/memories", "/memories/", "/memories/a", "/memories/a/b.md", "/memories/a/c/d.txt"),
    *("/memories/a/c/d/e", "/memories/.hidden", "/memories/b.md", "/memories/x/../b.md"),
    *("/memories//a//b.md", "/memories/../etc", "/memories/a/.h/f", "/else/x", "/memoriesb", "/"),
)
TEXTS = ("", "\n", " \n\n", "one", "one\ntwo\n", "a\r\nb\r\n", "aaa", "é😀\n" * 3, "x" * 2000)
PARTS = ("", "a", "aa", "one", "\n", "two\n", "é", "x")

WRITER = """
import sys
from anthropic_mnemic import MnemicMemoryTool
from mnemic import Memory

with Memory(sys.argv[1], embedder=None) as memory:
    tool = MnemicMemoryTool(memory, user_id="alice")
    for number in range(100_000):
        line = {"insert_line": 0, "insert_text": str(number)}
        tool.call({"command": "insert", "path": "/memories/log", **line})
        print(number, flush=True)
"""


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "agent.db", embedder=None) as opened:
        yield opened


def call(tool, command, path=None, **fields):
    return tool.call({"command": command, **({"path": path} if path else {}), **fields})


def content(tool, path):
    shown = call(tool, "view", path).split("\n")[1:]
    return "\n".join(line.split("\t", 1)[1] for line in shown)


def drawn(draw):
    kind = draw.choice(
        ("view", "view", "create", "create", "str_replace", "insert", "delete", "rename")
    )
    if kind == "rename":
        return {"command": kind, "old_path": draw.choice(PATHS), "new_path": draw.choice(PATHS)}
    fields = {"command": kind, "path": draw.choice(PATHS)}
    if kind == "view" and draw.random() < 0.5:
        fields["view_range"] = [draw.randrange(-1, 4), draw.randrange(-1, 5)]
    elif kind == "create":
        fields["file_text"] = draw.choice(TEXTS)
    elif kind == "str_replace":
        fields |= {"old_str": draw.choice(PARTS), "new_str": draw.choice(PARTS)}
    elif kind == "insert":
        fields |= {"insert_line": draw.randrange(-1, 5), "insert_text": draw.choice(TEXTS)}
    return fields


def result(run, *given):
    """Return what a call gives; errors of the system are refusals without a text."""
    try:
        return alike(run(*given))
    except ToolError as error:
        return "refused: " + alike(str(error))
    except OSError:
        return "refused: "


def alike(text):
    """Return a text without the sizes of directories, which the disk has otherwise."""
    lines = text.split("\n")
    if not lines[0].startswith("Here're"):
        return text
    shown = [lines[1].split("\t")[1]] + [
        line.split("\t")[1] if line.endswith("/") else line for line in lines[2:]
    ]
    return "\n".join([lines[0], *shown])


def prune(root):
    """Remove empty directories, of which memories have none."""
    for folder in sorted(root.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


@pytest.mark.skipif(
    tuple(map(int, anthropic.__version__.split(".")[:2])) < (2, 6),
    reason="the SDK's own tool said other things of the root before",
)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["plain", "awaited"])
def test_random_commands_say_what_the_sdk_s_tool_says(tmp_path, memory, seed, kind):
    draw = random.Random(seed)  # noqa: S311 - repeatable
    theirs = BetaLocalFilesystemMemoryTool(base_path=str(tmp_path / "disk"))
    ours = MnemicMemoryTool(memory) if kind == "plain" else AsyncMnemicMemoryTool(memory.aio)

    def run(command):
        done = ours.call(command)
        return done if kind == "plain" else asyncio.run(done)

    refused = 0
    for _ in range(700):
        command = drawn(draw)
        expected = result(theirs.call, command)
        prune(theirs.memory_root)
        found = result(run, command)
        refused += found.startswith("refused: ")
        if expected == "refused: ":
            assert found.startswith(expected), command
        else:
            assert found == expected, command
    assert 100 < refused < 600
    assert call(ours, "view", "/memories") if kind == "plain" else True


def test_the_definition_is_that_of_the_sdk(memory):
    kept = {"type": "ephemeral"}
    tool = MnemicMemoryTool(memory, cache_control=kept)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory", "cache_control": kept}


def test_all_is_cleared_for_one_user_alone_and_nothing_else(memory):
    tools = [MnemicMemoryTool(memory, user_id=user) for user in ("alice", "bob", None)]
    for tool in tools:
        call(tool, "create", "/memories/a", file_text="text")
    memory.add("a note", user_id="alice")
    assert tools[0].clear_all_memory() == "All memory cleared"
    assert "/memories/a" not in call(tools[0], "view", "/memories")
    assert [content(tool, "/memories/a") for tool in tools[1:]] == ["text", "text"]
    assert [entry.content for entry in memory.list(user_id="alice")] == ["a note"]


def test_what_another_user_has_changes_no_answer(memory):
    def answers(tool):
        draw = random.Random(5)  # noqa: S311 - repeatable
        return [result(lambda: tool.call(drawn(draw))) for _ in range(150)]

    alone = answers(MnemicMemoryTool(memory, user_id="alice"))
    call(MnemicMemoryTool(memory, user_id="bob"), "create", "/memories/a", file_text="secret")
    carol = answers(MnemicMemoryTool(memory, user_id="carol"))
    assert carol == alone
    assert content(MnemicMemoryTool(memory, user_id="bob"), "/memories/a") == "secret"
    project = memory.scoped(project_id="p")
    assert answers(MnemicMemoryTool(project, user_id="carol")) == alone


def test_edits_that_meet_are_all_made(memory):
    tool = MnemicMemoryTool(memory)
    call(tool, "create", "/memories/log", file_text="")

    def write(name):
        for number in range(15):
            text = f"{name}{number}"
            call(tool, "insert", "/memories/log", insert_line=0, insert_text=text)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = content(tool, "/memories/log").split()
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abc" for number in range(15))


def test_a_file_is_made_once_among_all_who_try():
    async def run():
        async with AsyncMemory(":memory:", embedder=None) as memory:
            tool = AsyncMnemicMemoryTool(memory)
            return await asyncio.gather(
                *(
                    tool.call({"command": "create", "path": "/memories/a", "file_text": str(at)})
                    for at in range(10)
                ),
                return_exceptions=True,
            )

    results = asyncio.run(run())
    assert sum(isinstance(each, str) for each in results) == 1
    assert {str(each) for each in results if not isinstance(each, str)} == {
        "File /memories/a already exists"
    }


def test_a_file_that_is_edited_while_it_moves_is_moved_as_it_is_then(memory):
    tool = MnemicMemoryTool(memory)
    call(tool, "create", "/memories/a", file_text="old")
    real, edited = tool.awaited._add, []

    async def add(*arguments):
        copy = await real(*arguments)
        if not edited:
            edited.append(1)
            fields = {"path": "/memories/a", "old_str": "old", "new_str": "new"}
            MnemicMemoryTool(memory).call({"command": "str_replace", **fields})
        return copy

    tool.awaited._add = add
    call(tool, "rename", old_path="/memories/a", new_path="/memories/b")
    assert edited
    assert content(tool, "/memories/b") == "new"
    assert not memory.count(filters={"source": "/memories/a"})


def test_a_file_that_was_deleted_by_other_means_can_be_made_again(memory):
    tool = MnemicMemoryTool(memory)
    call(tool, "create", "/memories/a", file_text="old")
    memory.delete(memory.list()[0].id)
    assert "does not exist" in result(lambda: call(tool, "view", "/memories/a"))
    call(tool, "create", "/memories/a", file_text="new")
    assert content(tool, "/memories/a") == "new"


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "x" * 11_000_000])
def test_a_text_that_no_memory_holds_is_refused_and_changes_nothing(memory, text):
    tool = MnemicMemoryTool(memory)
    call(tool, "create", "/memories/a", file_text="old")
    for fields in (
        {"command": "create", "path": "/memories/b", "file_text": text},
        {"command": "str_replace", "path": "/memories/a", "old_str": "old", "new_str": text},
    ):
        with pytest.raises(ValueError, match="content"):
            tool.call(fields)
    assert content(tool, "/memories/a") == "old"
    assert memory.count() == 1


def test_a_path_of_odd_characters_is_one_all_the_same(memory):
    tool = MnemicMemoryTool(memory)
    for path in ("/memories/\ud800", "/memories/ü 😀 %41", "/memories/" + "x" * 3000):
        assert call(tool, "create", path, file_text="text").startswith("File created")
        assert content(tool, path) == "text"
        call(tool, "delete", path)
    for path in ("/memories/a\0b", "/memories/a\nb"):
        with pytest.raises(ValueError, match="character"):
            call(tool, "create", path, file_text="text")


def test_each_tool_takes_both_forms_of_a_memory(memory):
    call(MnemicMemoryTool(memory.aio), "create", "/memories/a", file_text="text")
    shown = asyncio.run(
        AsyncMnemicMemoryTool(memory).call({"command": "view", "path": "/memories"})
    )
    assert shown.endswith("/memories/a")


def test_what_was_deleted_stays_away(tmp_path):
    with Memory(tmp_path / "agent.db", embedder=None) as memory:
        tool = MnemicMemoryTool(memory, user_id="alice")
        call(tool, "create", "/memories/d/a", file_text="zebras at dawn")
        call(tool, "create", "/memories/d/b", file_text="zebras at dusk")
        call(tool, "delete", "/memories/d")
    assert not any(b"zebras" in each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    with Memory(tmp_path / "agent.db", embedder=None) as memory:
        assert (
            len(call(MnemicMemoryTool(memory, user_id="alice"), "view", "/memories").split("\n"))
            == 2
        )
        assert not memory.list(user_id="alice", include_deleted=True)


def test_what_a_killed_process_acknowledged_is_there(tmp_path, memory):
    tool = MnemicMemoryTool(memory, user_id="alice")
    call(tool, "create", "/memories/log", file_text="")
    lines = killed.lines_of(WRITER, tmp_path / "agent.db", least=20)
    written = content(tool, "/memories/log").split()
    assert written[::-1] == [str(number) for number in range(len(written))]
    assert len(lines) <= len(written) <= len(lines) + 1
