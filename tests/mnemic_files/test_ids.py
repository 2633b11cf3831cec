"""Ids of memory files: those that are refused, and new ones."""

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic_files import MemoryDirectory, MemoryFiles, new_memory_id
from tests.support.memory_files import NOON, memory_file


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def directory(folder):
    return MemoryDirectory(folder, "repo", clock=lambda: NOON)


@pytest.fixture
def files(tmp_path):
    return MemoryFiles(repo=tmp_path / "repo", user=tmp_path / "user")


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
