"""Memories written as memory files, and read back."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError
from mnemic.model import LinkType
from mnemic_files import MemoryFiles, new_memory_id
from tests.support.memory_files import memory_file
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("C132", "C133", "R330")


WORDS = st.text(min_size=1, max_size=60).filter(lambda text: text.strip() and "\0" not in text)


NAMES = WORDS.filter(str.isprintable)


def synchronised(files):
    memory = Memory(":memory:", embedder=None)
    memory_result = files.synchronise(memory)
    assert not memory_result.problems
    return memory


def state(memory):
    """All that files keep of memories, by id."""
    found = {}
    for entry in memory.list(filters={"status": {"in": ["active", "superseded"]}}, limit=1000):
        links = {
            (link.type, link.to_id)
            for link in memory.links(entry.id, direction="out")
            if link.type is not LinkType.SUPERSEDES
        }
        found[entry.id] = (
            entry.content,
            entry.status,
            entry.supersedes,
            entry.type,
            entry.importance,
            entry.tags,
            entry.sensitive,
            entry.session_id,
            entry.created_at,
            links,
        )
    return found


def test_memories_come_back_from_their_files(files, memory):
    old = memory.add(
        MemoryEntry("Indent with tabs", category="coding-preferences"), session_id="s1"
    )
    new = memory.add("Indent with spaces", supersedes=old.id, importance=0.9, tags=["go", "style"])
    memory.add("Hidden", sensitive=True)
    other = memory.add("Runs on Linux", type="procedural")
    memory.link(new.id, other.id, type="refines")
    result = files.export(memory, include_sensitive=True)
    assert (len(result.written), result.present, result.problems) == (4, 0, ())
    assert files.read(f"mem_{new.id}").version == 2
    with synchronised(files) as again:
        assert state(again) == state(memory)


def test_a_repeated_export_adds_what_is_new(files, memory):
    memory.add("one")
    assert len(files.export(memory).written) == 1
    added = memory.add("two")
    result = files.export(memory)
    assert (result.written, result.present) == ((f"mem_{added.id}",), 1)
    assert not files.export(memory)


def test_a_file_that_is_there_stays_as_it_is(files, memory):
    entry = memory.add("one")
    files.export(memory)
    memory.update(entry.id, content="another")
    (problem,) = files.export(memory).problems
    assert "another one" in problem.reason
    assert files.read(f"mem_{entry.id}").content == "one"


def test_memories_of_files_keep_ids_versions_and_further_keys(files, memory, tmp_path):
    first = memory_file(content="Use make", version=3, keys={"owner": "build team"})
    files.write(first)
    second = files.new_version(first.id, "Use just")
    files.synchronise(memory)
    elsewhere = MemoryFiles(tmp_path / "other repo", tmp_path / "other user")
    assert set(elsewhere.export(memory).written) == {first.id, second.id}
    for file in (first, second):  # superseding a memory changes it
        read = elsewhere.read(file.id)
        assert msgspec.structs.replace(read, updated_at=file.updated_at) == file


def test_sensitive_archived_and_deleted_memories_stay_behind(files, memory):
    memory.add("secret", sensitive=True)
    memory.update(memory.add("archived").id, status="archived")
    memory.delete(memory.add("deleted").id)
    assert not files.export(memory)


def test_one_user_alone_is_written(files, memory):
    memory.add("of ann", user_id="ann")
    memory.add("of bob", user_id="bob")
    files.export(memory.scoped(user_id="ann"))
    assert [file.content for file in files.list()] == ["of ann"]
    with pytest.raises(InvalidArgumentError, match="session"):
        files.export(memory.scoped(session_id="s"))


def test_a_memory_without_a_directory_is_a_problem(tmp_path, memory):
    files = MemoryFiles(repo=tmp_path / "repo")
    memory.add("of the user")
    (problem,) = files.export(memory).problems
    assert (problem.scope, problem.reason) == ("user", "there is no directory of its scope")


def test_progress_is_reported(files, memory):
    memory.add_many([f"memory {number}" for number in range(300)])
    seen = []
    files.export(memory, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 300)
    assert seen[-1] == (300, 300)


def test_an_export_in_an_event_loop(files):
    async def run():
        async with AsyncMemory(":memory:", embedder=None) as memory:
            await memory.add("one")
            return await files.export_async(memory)

    assert len(asyncio.run(run()).written) == 1


def test_long_chains_and_circles_have_versions(files, memory):
    last = memory.add("version 1")
    for number in range(2, 200):
        last = memory.add(f"version {number}", supersedes=last.id)
    files.export(memory)
    assert files.read(f"mem_{last.id}").version == 199
    assert len(files.version_chain(f"mem_{last.id}", 500)) == 199


HOSTILE = [
    "---\nid: forged\n---\n",
    "\r\n a\r\n",
    "a: &x [*x]",
    "\ttab",
    "\ufeffmark",
    "x" * 70_000,
    "\n\n# heading\n\n",
]


@examples(30)
@example(contents=["a"], tags=["b ", " b", "b"], category=" c ")
@given(
    contents=st.lists(
        st.one_of(WORDS, st.sampled_from(HOSTILE)), min_size=1, max_size=6, unique=True
    ),
    tags=st.lists(NAMES, max_size=3, unique=True),  # a file has each tag once
    category=st.one_of(st.none(), NAMES),
)
def test_any_text_comes_back_or_is_a_problem(tmp_path_factory, contents, tags, category):
    files = MemoryFiles(user=tmp_path_factory.mktemp("user"))
    with Memory(":memory:", embedder=None) as memory:
        for content in contents:
            memory.add(
                MemoryEntry(content, tags=tags, category=category, created_at=datetime.now(UTC))
            )
        result = files.export(memory)
        stored = state(memory)
    assert len(result.written) + len(result.problems) == len(stored)
    left_out = {problem.name for problem in result.problems}
    with synchronised(files) as again:
        assert state(again) == {
            key: value for key, value in stored.items() if f"mem_{key}.md" not in left_out
        }


@pytest.mark.parametrize("owner", ["a program", "another file", "its own"])
def test_metadata_of_a_program_with_the_keys_of_the_files_makes_no_second_memory(
    files, memory, owner, tmp_path
):
    entry = memory.add("made by a program")
    name = {"a program": "x", "another file": new_memory_id(), "its own": f"mem_{entry.id}"}[owner]
    own = {
        "memory_file": name,
        "memory_file_hash": "y",
        "memory_file_version": 7,
        "memory_file_related": [{"id": "mem_aunt", "relationship": "refines"}],
        "memory_file_supersedes": "mem_uncle",
        "memory_file_keys": {"own": 1},
        "trigger": "pulled",
    }
    memory.update(entry.id, metadata=own)
    assert files.export(memory).written == (f"mem_{entry.id}",)
    (path,) = (tmp_path / "user").iterdir()
    if owner != "its own":
        text = path.read_text()
        others = ("mem_aunt", "mem_uncle", "own", "pulled", "version: 7")
        assert not any(word in text for word in others)
    for _ in range(2):
        files.synchronise(memory)
        assert memory.count() == 1
    assert files.export(memory).present == 1
    assert [each.name for each in (tmp_path / "user").iterdir()] == [path.name]
    path.unlink()
    if owner != "its own":
        assert not files.synchronise(memory).removed
        assert memory.get(entry.id).metadata == own
