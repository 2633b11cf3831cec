"""Which files changed, and which memories they want: bad, touched, empty and shadowed ones."""

import os
from pathlib import Path

import pytest

from mnemic_files import MemoryFiles, serialise_memory_file
from mnemic_files.ids import entry_id
from tests.support.memory_files import EVERY_STATE, contents, drop, memory_file, put


def test_a_file_that_was_only_touched_changes_nothing(files, memory):
    file = memory_file()
    files.write(file)
    files.synchronise(memory)
    path = Path(files.directory("repo").path_of(file.id))
    text = serialise_memory_file(file).replace("\n", "\r\n")
    path.write_text(text, encoding="utf-8", newline="")
    assert not files.synchronise(memory)
    assert memory.get(file.entry_id).version == 1


def test_a_directory_that_is_not_there_deletes_nothing(files, memory, tmp_path):
    file = memory_file()
    files.write(file)
    files.synchronise(memory)
    (tmp_path / "repo").rename(tmp_path / "elsewhere")
    assert not files.synchronise(memory)
    assert contents(memory) == {file.content}
    (tmp_path / "elsewhere").rename(tmp_path / "repo")
    drop(files, file)
    assert files.synchronise(memory).removed == (file.id,)


@pytest.mark.requirement("C134")
def test_the_repository_shadows_the_user(files, memory):
    files.write(memory_file("mem_1", "mine", scope="user"))
    files.synchronise(memory)
    assert contents(memory) == {"mine"}
    theirs = memory_file("mem_1", "theirs")
    files.write(theirs)
    result = files.synchronise(memory)
    assert contents(memory) == {"theirs"}
    assert memory.get(entry_id("mem_1")).scope == "repo"
    assert [(one.name, one.scope) for one in result.problems] == [("mem_1.md", "user")]
    assert files.problems() == result.problems
    drop(files, theirs)
    assert files.synchronise(memory).problems == ()
    assert contents(memory) == {"mine"}


def test_a_bad_file_changes_nothing_of_its_memory(files, memory):
    file = memory_file()
    files.write(file)
    second = files.new_version(file.id, "two")
    files.synchronise(memory)
    before = memory.list(filters=EVERY_STATE).entries
    for again in (files, MemoryFiles(*(one.path for one in files.directories))):
        for bad in (file, second):
            Path(again.directory("repo").path_of(bad.id)).write_text("---\nid: [")
        result = again.synchronise(memory)
        assert not result
        assert [one.name for one in result.problems] == sorted([f"{file.id}.md", f"{second.id}.md"])
        assert memory.list(filters=EVERY_STATE).entries == before
    put(files, file)
    put(files, second)
    assert files.synchronise(memory).problems == ()


def test_a_file_without_content_is_left_out(files, memory):
    files.write(memory_file(content=""))
    result = files.synchronise(memory)
    assert not result
    assert result.problems[0].reason == "it has no content"


ODD_NAMES = [
    b"caf\xe9.md",
    b"\xff\xfe.md",
    b"mem_\x80.md",
    b"\xed\xa0\x80.md",
    b"a\nb.md",
    b" .md",
    "\u202e.md".encode(),
    "re\u0301sume\u0301.md".encode(),
]


@pytest.mark.parametrize("text", [None, "plain text", ""])
def test_files_whose_names_are_no_text_hide_no_other_file(files, memory, tmp_path, text):
    good = memory_file()
    files.write(good)
    for name in ODD_NAMES:
        path = tmp_path / "repo" / os.fsdecode(name)
        path.write_text(serialise_memory_file(memory_file()) if text is None else text)
    for _ in range(2):
        result = files.synchronise(memory)
        assert len(result.problems) == len(ODD_NAMES)
        assert all(problem.is_left_out for problem in result.problems)
        assert result.problems == files.problems()
        str(result.problems).encode()
        result.to_json()
    assert contents(memory) == {good.content}
    files.list()
    assert len(files.problems()) == len(ODD_NAMES)
    assert len(files.export(memory).written) == 0


def test_plain_markdown_is_reported_and_told_where_it_belongs(files, memory, tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "README.md").write_text("# Notes\n\nThe port is 5432.\n")
    (problem,) = files.synchronise(memory).problems
    assert problem.name == "README.md"
    assert "memory.add" in problem.reason
    assert "5432" not in problem.reason
