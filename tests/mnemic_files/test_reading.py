"""Files of a directory are read without leaving it."""

import logging
import os
from pathlib import Path

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic_files import MemoryDirectory, new_memory_id, serialise_memory_file
from mnemic_files.errors import MemoryFileExistsError, MemoryFileFormatError
from tests.support.memory_files import memory_file


@pytest.mark.requirement("T055", "C132", "R348")
def test_a_list_leaves_out_what_is_no_memory_file(directory, files, folder, caplog):
    file = memory_file()
    directory.write(file)
    (folder / "corrupt.md").write_text("---\nid: [\n---\n\nsecret words", encoding="utf-8")
    (folder / "README.md").write_text("secret words", encoding="utf-8")
    (folder / "bytes.md").write_bytes(b"---\n\xff\n---\n")
    (folder / "notes.txt").write_text("not read", encoding="utf-8")
    (folder / ".hidden.md").write_text("not read", encoding="utf-8")
    (folder / "empty.md").touch()
    (folder / "folder.md").mkdir()
    (folder / "folder.md" / "deep.md").write_text("not read", encoding="utf-8")
    (folder / "other.md").write_text(serialise_memory_file(memory_file()), encoding="utf-8")
    with caplog.at_level(logging.DEBUG, "mnemic_files"):
        assert directory.list() == [file]
    problems = directory.problems()
    names = [one.name for one in problems]
    assert names == ["README.md", "bytes.md", "corrupt.md", "empty.md", "other.md"]
    assert all(one.is_left_out and one.scope == "repo" for one in problems)
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    assert "secret" not in caplog.text + repr(problems)
    with pytest.raises(MemoryFileFormatError):
        directory.read("corrupt")
    assert files.list() == [file]
    assert files.problems() == problems


@pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
def test_links_out_of_the_directory_are_not_followed(directory, folder, tmp_path):
    outside, inside = memory_file(), memory_file()
    MemoryDirectory(tmp_path / "elsewhere", "repo").write(outside)
    directory.write(inside)
    (folder / f"{outside.id}.md").symlink_to(tmp_path / "elsewhere" / f"{outside.id}.md")
    (folder / "gone.md").symlink_to(tmp_path / "nothing")
    (folder / "circle.md").symlink_to("circle.md")
    os.mkfifo(folder / "pipe.md")
    assert directory.list() == [inside]
    assert len(directory.problems()) == 4
    with pytest.raises(MemoryFileFormatError, match="leads out"):
        directory.read(outside.id)
    with pytest.raises(MemoryFileExistsError):
        directory.write(memory_file("gone"))
    assert not (tmp_path / "nothing").exists()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_links_inside_the_directory_are_followed(directory, folder):
    file = memory_file("mem_1")
    (folder / "kept").mkdir(parents=True)
    (folder / "kept" / "text").write_text(serialise_memory_file(file), encoding="utf-8")
    (folder / "mem_1.md").symlink_to(Path("kept") / "text")
    assert directory.list() == [file]


@pytest.mark.requirement("T054")
@pytest.mark.parametrize(
    "given", ["../test", "a/b", "a\\b", "..", ".", ".hidden", "a\0b", "a\nb", "x" * 300, "\ud800"]
)
def test_ids_that_are_no_names_of_files_are_refused(directory, files, given):
    reads = (directory.read, directory.path_of, directory.version_chain, files.read)
    for call in (*reads, memory_file):
        with pytest.raises(InvalidArgumentError) as caught:
            call(given)
        assert str(caught.value).isprintable()


@pytest.mark.requirement("T054")
def test_an_empty_id_is_named_empty(directory, files):
    for call in (directory.read, files.read, memory_file):
        with pytest.raises(InvalidArgumentError, match="empty"):
            call("")


@pytest.mark.requirement("T059")
def test_new_ids_are_long_and_differ():
    made = {new_memory_id() for _ in range(100)}
    assert len(made) == 100
    assert all(one.startswith("mem_") and len(one) == 40 for one in made)
