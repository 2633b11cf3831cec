"""A directory of memory files: complete files, added and never changed, and nothing outside it."""

import errno
import logging
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mnemic.errors import InvalidArgumentError, StoreFileError, StoreFullError
from mnemic_files import (
    MemoryDirectory,
    MemoryFiles,
    new_memory_id,
    parse_memory_file,
    serialise_memory_file,
)
from mnemic_files.errors import (
    MemoryFileExistsError,
    MemoryFileFormatError,
    MemoryFileNotFoundError,
    VersionChainError,
)
from tests.support.failing_files import fail_to_complete
from tests.support.memory_files import NOON, memory_file
from tests.support.processes import ENVIRONMENT


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def directory(folder):
    return MemoryDirectory(folder, "repo", clock=lambda: NOON)


@pytest.fixture
def files(tmp_path):
    return MemoryFiles(repo=tmp_path / "repo", user=tmp_path / "user")


def ids(files):
    return [file.id for file in files]


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


@pytest.mark.requirement("T056")
def test_a_chain_leads_from_the_oldest_to_the_newest(directory, files):
    for one in (directory, files):
        first = memory_file()
        one.write(first)
        second = one.new_version(first.id, "Spaces, not tabs.")
        assert one.version_chain(second.id) == [first, second]
        assert one.version_chain(second.id, 1) == [second]
        assert one.latest_version(first.id) == second
        assert one.latest_version(second.id) == second


@pytest.mark.requirement("T056", "C135")
def test_a_chain_may_cross_the_scopes(files):
    first = memory_file(scope="user")
    second = memory_file(supersedes=first.id)
    files.write(first)
    files.write(second)
    assert files.version_chain(second.id) == [first, second]
    assert files.latest_version(first.id) == second


@pytest.mark.requirement("T057")
def test_a_long_chain_is_cut_at_its_depth(directory):
    for number in range(9):
        before = f"mem_{number - 1}" if number else None
        directory.write(memory_file(f"mem_{number}", supersedes=before))
    assert ids(directory.version_chain("mem_8", 5)) == [f"mem_{number}" for number in range(4, 9)]
    assert directory.latest_version("mem_0").id == "mem_8"


@pytest.mark.requirement("T057")
def test_a_cycle_ends(directory):
    directory.write(memory_file("mem_1", supersedes="mem_2"))
    directory.write(memory_file("mem_2", supersedes="mem_1"))
    with pytest.raises(VersionChainError, match="cycle detected"):
        directory.latest_version("mem_1")
    assert len(directory.version_chain("mem_1", max_depth=5)) == 5
    assert len(directory.version_chain("mem_1")) == 100


@pytest.mark.requirement("T056")
def test_a_missing_predecessor_is_named(directory):
    directory.write(memory_file("mem_2", supersedes="mem_1"))
    with pytest.raises(VersionChainError, match="mem_1"):
        directory.version_chain("mem_2")
    with pytest.raises(MemoryFileNotFoundError):
        directory.version_chain("mem_1")
    with pytest.raises(MemoryFileNotFoundError):
        directory.latest_version("mem_1")


@pytest.mark.requirement("C135")
def test_of_two_successors_the_one_updated_last_counts(directory):
    directory.write(memory_file("mem_1"))
    directory.write(memory_file("mem_a", supersedes="mem_1", minutes=5))
    directory.write(memory_file("mem_b", supersedes="mem_1", minutes=9))
    assert directory.latest_version("mem_1").id == "mem_b"
    directory.write(memory_file("mem_0", supersedes="mem_1", minutes=9))
    assert directory.latest_version("mem_1").id == "mem_0"


@pytest.mark.requirement("T058")
def test_a_new_version_copies_its_predecessor(directory):
    old = memory_file(version=4, related=[("mem_1", "refines")], keys={"labels": ["a"]})
    directory.write(old)
    new = directory.new_version(old.id, "new", session_id="t", trigger="compaction")
    assert new.id != old.id
    assert (new.supersedes, new.version, new.scope, new.category) == (old.id, 5, "repo", "patterns")
    assert (new.session_id, new.trigger, new.content) == ("t", "compaction", "new")
    assert (new.created_at, new.updated_at) == (NOON, NOON)
    assert new.related == old.related
    old.keys["labels"].append("b")
    assert new.keys == {"labels": ["a"]}
    assert directory.read(new.id) == new
    assert directory.read(old.id).version == 4


@pytest.mark.requirement("T058", "T053")
@pytest.mark.parametrize("scope", ["repo", "user"])
def test_a_new_version_stands_in_the_same_scope(files, scope):
    old = memory_file(scope=scope)
    files.write(old)
    new = files.new_version(old.id, "a better fact")
    assert files.list(scope=scope) == sorted([old, new], key=lambda file: file.id)


@pytest.mark.requirement("T059")
def test_new_ids_are_long_and_differ():
    made = {new_memory_id() for _ in range(100)}
    assert len(made) == 100
    assert all(one.startswith("mem_") and len(one) == 40 for one in made)


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
