"""The memory files of a repository and of a user together."""

import logging

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic_files import MemoryFiles
from mnemic_files.errors import MemoryFileExistsError
from tests.support.memory_files import memory_file


@pytest.mark.requirement("T053", "R329")
def test_both_scopes_have_their_files(files):
    file, other = memory_file(), memory_file(scope="user")
    files.write(file)
    assert files.read(file.id) == file
    with pytest.raises(MemoryFileExistsError):
        files.write(file)
    with pytest.raises(FileExistsError):
        files.write(memory_file(file.id, "another text"))
    files.write(other)
    assert len(files.list()) == 2
    assert files.list(scope="user") == [other]
    assert files.read(file.id) == file


@pytest.mark.requirement("C134")
def test_the_repository_shadows_the_user(files, caplog):
    mine, theirs = memory_file("mem_1", "mine", scope="user"), memory_file("mem_1", "theirs")
    files.write(mine)
    files.write(theirs)
    with caplog.at_level(logging.WARNING, "mnemic_files"):
        assert files.list() == [theirs]
    assert files.read("mem_1") == theirs
    assert files.list(scope="user") == [mine]
    files.list()
    (problem,) = files.problems()
    assert (problem.name, problem.scope, problem.is_left_out) == ("mem_1.md", "user", True)
    assert "mem_1.md" in caplog.text


def test_one_directory_does_not_stand_for_both_scopes(tmp_path):
    with pytest.raises(InvalidArgumentError):
        MemoryFiles(repo=tmp_path, user=tmp_path / ".." / tmp_path.name)
    with pytest.raises(InvalidArgumentError):
        MemoryFiles()
    with pytest.raises(InvalidArgumentError):
        MemoryFiles(user=tmp_path).write(memory_file())
