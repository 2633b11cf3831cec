"""A directory of memory files: complete files, added and never changed, and nothing outside it."""

import errno
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mnemic.errors import InvalidArgumentError, StoreFileError, StoreFullError
from mnemic_files import MemoryDirectory, parse_memory_file, serialise_memory_file
from mnemic_files.errors import (
    MemoryFileExistsError,
    MemoryFileFormatError,
    MemoryFileNotFoundError,
)
from tests.support.failing_files import fail_to_complete
from tests.support.memory_files import ids, memory_file
from tests.support.processes import ENVIRONMENT


@pytest.mark.requirement("T050", "T053")
def test_a_file_is_read_as_it_was_written(directory):
    file = memory_file(
        content="one\n\ntwo\n",
        supersedes="mem_0",
        related=[("mem_1", "refines"), ("mem_2", "relates-to")],
    )
    path = Path(directory.write(file))
    assert path.name == f"{file.id}.md"
    assert parse_memory_file(path.read_text(encoding="utf-8")) == file
    assert directory.read(file.id) == file


@pytest.mark.requirement("T052")
def test_an_unknown_id_raises(directory, files):
    for one in (directory, files):
        with pytest.raises(MemoryFileNotFoundError):
            one.read("mem_1")
        with pytest.raises(KeyError):
            one.read("mem_1")
        assert one.list() == []


@pytest.mark.requirement("C134")
def test_a_list_has_an_order(directory, files):
    given = [
        memory_file(f"mem_{name}", minutes=minutes)
        for name, minutes in (("b", 0), ("a", 9), ("c", 0))
    ]
    for file in given:
        directory.write(file)
    for one in (directory, files):
        assert ids(one.list()) == ["mem_a", "mem_b", "mem_c"]
        assert ids(one.list(order="time")) == ["mem_b", "mem_c", "mem_a"]
        with pytest.raises(InvalidArgumentError):
            one.list(order="size")


def test_a_directory_that_does_not_exist_is_empty(directory, folder):
    assert directory.list() == []
    assert not folder.exists()


@pytest.mark.requirement("C133", "T053")
@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_files_are_of_their_owner_alone(directory, folder):
    before = os.umask(0)
    try:
        path = directory.write(memory_file())
    finally:
        os.umask(before)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o750


@pytest.mark.requirement("C133")
def test_a_write_that_fails_leaves_nothing(directory, folder, monkeypatch):
    directory.write(memory_file())
    before = sorted(folder.iterdir())
    fail_to_complete(monkeypatch, errno.ENOSPC)
    with pytest.raises(Exception, match="disk is full"):
        directory.write(memory_file("mem_1"))
    assert sorted(folder.iterdir()) == before
    monkeypatch.undo()
    directory.write(memory_file("mem_1"))


@pytest.mark.requirement("C133")
def test_a_file_that_does_not_fit_raises_and_leaves_nothing(directory, folder):
    resource = pytest.importorskip("resource")
    directory.write(memory_file())
    before = sorted(folder.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StoreFullError, match="mem_big"):
            directory.write(memory_file("mem_big", "word " * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(folder.iterdir()) == before


@pytest.mark.requirement("C133")
def test_a_killed_writer_leaves_no_half_file(directory, folder):
    program = """
        import os, sys
        from contextlib import contextmanager
        from mnemic.new_files import new_part
        from mnemic_files import MemoryDirectory, folder
        from tests.support.memory_files import memory_file

        @contextmanager
        def killed(target, **_):
            with new_part(target) as (descriptor, _):
                yield descriptor
                os.kill(os.getpid(), 9)

        folder.new_file = killed
        MemoryDirectory(sys.argv[1], "repo").write(memory_file("mem_1"))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder)]
    subprocess.run(command, env=ENVIRONMENT, check=False, capture_output=True, timeout=60)
    assert [path.name for path in folder.iterdir() if path.suffix == ".part"]
    assert directory.list() == []
    file = memory_file("mem_1")
    directory.write(file)
    assert [path.name for path in folder.iterdir()] == ["mem_1.md"]
    assert directory.list() == [file]


def test_a_path_that_is_a_file_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFileError):
        MemoryDirectory(tmp_path / "file", "repo").write(memory_file())


def test_the_directory_decides_on_the_scope(directory, folder):
    forged = memory_file("mem_1", scope="user")
    with pytest.raises(MemoryFileFormatError, match="scope user"):
        directory.write(forged)
    folder.mkdir()
    (folder / "mem_1.md").write_text(serialise_memory_file(forged), encoding="utf-8")
    assert [file.scope for file in directory.list()] == ["repo"]
    assert directory.read("mem_1").scope == "repo"
    (problem,) = directory.problems()
    assert not problem.is_left_out


@pytest.mark.requirement("T060")
def test_threads_write_at_once(files):
    given = [memory_file(scope=scope) for scope in ["repo", "user"] * 10]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(files.write, given))
    assert files.list() == sorted(given, key=lambda file: file.id)


@pytest.mark.requirement("T060", "C133")
def test_of_threads_with_one_id_one_writes_a_whole_file(directory, folder):
    def written(file):
        try:
            directory.write(file)
        except MemoryFileExistsError:
            return None
        return file

    given = [memory_file("mem_1", f"text {at} " * 2000) for at in range(20)]
    with ThreadPoolExecutor(20) as pool:
        (winner,) = filter(None, pool.map(written, given))
    assert directory.list() == [winner]
    assert [path.name for path in folder.iterdir()] == ["mem_1.md"]


@pytest.mark.requirement("T060")
def test_processes_write_at_once(directory, folder):
    program = """
        import sys
        from mnemic_files import MemoryDirectory
        from tests.support.memory_files import memory_file
        directory = MemoryDirectory(sys.argv[1], "repo")
        for at in range(5):
            directory.write(memory_file(f"mem_{sys.argv[2]}_{at}"))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder)]
    running = [subprocess.Popen([*command, str(at)], env=ENVIRONMENT) for at in range(4)]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    assert len(directory.list()) == 20
    assert directory.problems() == ()


def test_a_directory_whose_name_is_not_in_utf_8_is_refused_at_once(tmp_path):
    with pytest.raises(InvalidArgumentError, match="not in UTF-8"):
        MemoryDirectory(tmp_path / "caf\udce9", "repo")
