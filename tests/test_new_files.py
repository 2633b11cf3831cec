"""New files that are killed, or meet a full disk, leave nothing of what they held."""

import errno
import os
import random
import subprocess
import sys
import textwrap
import time

import pytest

from mnemic._core import NewFile, remove_part, remove_parts, sync_folder
from mnemic.errors import StoreBusyError, StoreError, StoreFileError
from mnemic.memory import Memory
from mnemic.new_files import new_file, new_part
from tests.support.paths import names_in
from tests.support.processes import ENVIRONMENT

SECRET = b"nobody else writes this sentence"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs locks and signals of a POSIX system")


def begun(program, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE)


def killed(process):
    process.kill()
    process.wait()
    process.stdout.close()


def who_have_the_secret(folder):
    return sorted(path.name for path in folder.iterdir() if SECRET in path.read_bytes())


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source" / "a.db"
    path.parent.mkdir()
    with Memory(path, embedder=None) as memory:
        memory.add_many([f"{SECRET.decode()} {number} " * 200 for number in range(50)])
    return path


def half_a_backup(target):
    """Begin a backup in another process and kill it when everything is copied but not named."""
    program = """
        import os, sys, time
        from mnemic.new_files import new_part

        with new_part(sys.argv[1]) as (descriptor, part):
            os.write(descriptor, sys.argv[2].encode() * 1000)
            open(f"{part}-journal", "w").write(sys.argv[2])
            print("written", flush=True)
            time.sleep(60)
    """
    process = begun(program, target, SECRET.decode())
    assert process.stdout.readline() == b"written\n"
    return process


def test_a_killed_backup_is_removed_by_the_next_opening_of_its_target_which_says_so(tmp_path):
    Memory(tmp_path / "another.db", embedder=None).close()
    killed(half_a_backup(tmp_path / "b.db"))
    assert len(who_have_the_secret(tmp_path)) == 2
    Memory(tmp_path / "another.db", embedder=None).close()
    Memory(tmp_path / "new.db", embedder=None).close()
    with pytest.raises(StoreFileError, match="does not exist"):
        Memory(tmp_path / "b.db", embedder=None, read_only=True)
    assert len(who_have_the_secret(tmp_path)) == 2
    with pytest.raises(StoreFileError, match=r"unfinished backup.*make the backup again"):
        Memory(tmp_path / "b.db", embedder=None)
    assert names_in(tmp_path) == ["another.db", "new.db"]
    Memory(tmp_path / "b.db", embedder=None).close()
    assert names_in(tmp_path) == ["another.db", "b.db", "new.db"]


def test_what_is_left_beside_a_file_that_is_there_is_removed_without_a_word(tmp_path):
    killed(half_a_backup(tmp_path / "b.db"))
    (tmp_path / "b.db").touch()
    Memory(tmp_path / "b.db", embedder=None).close()
    assert names_in(tmp_path) == ["b.db"]


@pytest.mark.parametrize("way", ["backup", "export"])
def test_a_killed_backup_is_removed_by_the_next_backup_or_export_to_its_folder(
    tmp_path, source, way
):
    folder = tmp_path / "copies"
    folder.mkdir()
    killed(half_a_backup(folder / "one"))
    assert len(who_have_the_secret(folder)) == 2
    with Memory(source, embedder=None) as memory:
        getattr(memory, way)(folder / "two")
    assert names_in(folder) == ["two"]


def test_what_another_process_is_still_writing_is_left_to_it(tmp_path):
    process = half_a_backup(tmp_path / "one")
    before = names_in(tmp_path)
    with new_file(str(tmp_path / "two")) as descriptor:
        os.write(descriptor, b"x")
    busy = pytest.raises(StoreBusyError, match="another process makes the same file")
    with busy, new_part(str(tmp_path / "one")):
        pass
    assert names_in(tmp_path) == [*before, "two"]
    killed(process)


def test_backups_and_exports_killed_at_any_moment_leave_nothing_for_good(tmp_path, source):
    program = """
        import os, sys
        from mnemic.memory import Memory

        folder = sys.argv[2]
        with Memory(sys.argv[1], embedder=None) as memory:
            print("begun", flush=True)
            while True:
                memory.backup(f"{folder}/b.db")
                os.unlink(f"{folder}/b.db")
                memory.export(f"{folder}/e.jsonl")
                memory.export(f"{folder}/e.jsonl", overwrite=True)
                os.unlink(f"{folder}/e.jsonl")
    """
    choose = random.Random(5)  # noqa: S311 - not a secret
    folder = tmp_path / "copies"
    folder.mkdir()
    for _ in range(8):
        process = begun(program, source, folder)
        assert process.stdout.readline() == b"begun\n"
        time.sleep(choose.uniform(0, 0.1))
        killed(process)
        for name in ("b.db", "e.jsonl"):
            (folder / name).unlink(missing_ok=True)
        with new_file(str(folder / "another")) as descriptor:
            os.write(descriptor, b"x")
        assert names_in(folder) == ["another"]
        (folder / "another").unlink()


def test_first_openings_killed_at_any_moment_leave_only_their_file_once_opened_again(tmp_path):
    program = """
        import sys
        from mnemic.memory import Memory

        print("begun", flush=True)
        for number in range(1000):
            with Memory(f"{sys.argv[1]}/{number}.db", embedder=None) as memory:
                memory.add(sys.argv[2])
    """
    choose = random.Random(6)  # noqa: S311 - not a secret
    for round_ in range(6):
        folder = tmp_path / str(round_)
        folder.mkdir()
        process = begun(program, folder, SECRET.decode())
        process.stdout.readline()
        time.sleep(choose.uniform(0, 0.1))
        killed(process)
        made = sorted(folder.glob("*.db"))
        for path in made:
            Memory(path, embedder=None).close()
        assert sorted(folder.iterdir()) == made


LIMITED = """
    import resource, signal, sys
    from mnemic.errors import StoreError, StoreFullError
    from mnemic.memory import Memory

    with Memory(sys.argv[1], embedder=None) as memory:
        memory.count()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(getattr(resource, sys.argv[4]), (int(sys.argv[5]), 4096))
        try:
            getattr(memory, sys.argv[2])(sys.argv[3])
        except StoreError as error:
            print(type(error).__name__, flush=True)
        resource.setrlimit(getattr(resource, sys.argv[4]), (4096, 4096))
"""


@pytest.mark.parametrize("way", ["backup", "export"])
def test_a_full_disk_and_a_lack_of_descriptors_are_typed_errors_and_leave_nothing(
    tmp_path, source, way
):
    folder = tmp_path / "copies"
    folder.mkdir()
    for limit, amount, expected in (
        ("RLIMIT_FSIZE", 100, ["StoreFullError"]),
        ("RLIMIT_NOFILE", 3, ["StoreError", "StoreFileError"]),
    ):
        process = begun(LIMITED, source, way, folder / "copy", limit, amount)
        printed, _ = process.communicate(timeout=60)
        assert printed.decode().strip() in expected, limit
        assert names_in(folder) == []


def test_a_new_file_that_fails_leaves_nothing_and_says_what_to_do(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fail_while_writing(str(tmp_path / "a"))
    assert names_in(tmp_path) == []
    for make in (new_file, new_part):
        refused = pytest.raises(StoreError, match="its directory does not exist; create it first")
        with refused, make(str(tmp_path / "missing" / "a")):
            pass


def fail_while_writing(target):
    with new_file(target) as descriptor:
        os.write(descriptor, SECRET)
        raise KeyboardInterrupt


def test_a_new_file_goes_to_the_folder_that_it_was_begun_in(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with new_file("a") as descriptor:
        os.write(descriptor, b"x")
        monkeypatch.chdir(tmp_path / "other")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert names_in(tmp_path / "other") == []


def test_a_file_is_committed_once(tmp_path):
    file = NewFile(tmp_path / "a", named=True)
    assert file.part == str(next(tmp_path.iterdir()))
    os.write(file.fileno(), b"content")
    file.commit()
    file.discard()
    assert file.part is None
    for use in (file.fileno, file.commit):
        with pytest.raises(ValueError, match="committed or discarded"):
            use()
    assert (tmp_path / "a").read_bytes() == b"content"


def test_a_file_that_is_discarded_or_forgotten_is_gone(tmp_path):
    file = NewFile(tmp_path / "a", named=True)
    NewFile(tmp_path / "b", named=True)
    assert len(names_in(tmp_path)) == 1
    file.discard()
    assert names_in(tmp_path) == []


def test_errors_have_the_class_the_number_and_the_path_that_python_gives_them(tmp_path):
    missing = tmp_path / "missing" / "a"
    (tmp_path / "file").touch()
    for call, error, number, path in (
        (lambda: NewFile(missing), FileNotFoundError, errno.ENOENT, missing),
        (lambda: NewFile(tmp_path / "file" / "a"), NotADirectoryError, errno.ENOTDIR, None),
        (NewFile(tmp_path / "file").commit, FileExistsError, errno.EEXIST, tmp_path / "file"),
        (lambda: sync_folder(missing), FileNotFoundError, errno.ENOENT, missing),
    ):
        with pytest.raises(error) as raised:
            call()
        assert raised.value.errno == number
        assert raised.value.strerror == os.strerror(number)
        assert path is None or raised.value.filename == str(path)


def test_a_path_that_cannot_be_one_is_a_value_error():
    for path in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match=r"NUL|surrogate"):
            NewFile(path).commit()


def test_only_one_file_that_replaces_none_has_the_part_of_a_place(tmp_path):
    first = NewFile(tmp_path / "a", named=True)
    with pytest.raises(BlockingIOError):
        NewFile(tmp_path / "a", named=True)
    remove_part(tmp_path / "a")
    remove_parts(tmp_path)
    first.commit()
    assert names_in(tmp_path) == ["a"]
