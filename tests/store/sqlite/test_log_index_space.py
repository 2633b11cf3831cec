"""Full disks whose blocks are smaller than the pages of the log's index."""

import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from errno import EBADF, ENOSPC, EOPNOTSUPP

import pytest

from mnemic._core import allocate, lock_calls
from mnemic.errors import StoreFullError
from mnemic.store.sqlite import log_index_space
from tests.support.doors import opened
from tests.support.processes import ENVIRONMENT

KILO = 1024

pytestmark = pytest.mark.skipif(not lock_calls(), reason="needs Linux")


def fill(path):
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(KILO))


def bytes_on_disk(path):
    return path.stat().st_blocks * 512


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(log_index_space, "_has_small_blocks", lambda _: True)


@pytest.fixture
def disk(tmp_path):
    """A file system of 2 MB in blocks of 1 KB."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(bytes(4 << 20))
    folder.mkdir()
    try:
        made = subprocess.run(["mkfs.ext4", "-q", "-b", "1024", image], check=False)  # noqa: S607
        mounted = subprocess.run(["mount", "-o", "loop", image, folder], check=False)  # noqa: S607
    except FileNotFoundError:
        pytest.skip("mkfs.ext4 and mount are not here")
    if made.returncode or mounted.returncode:
        pytest.skip("this user cannot mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)  # noqa: S607


def test_writing_and_closing_on_a_full_disk_of_small_blocks_ends_no_process(disk):
    program = """
        import os, sys
        from mnemic.errors import StoreFullError
        from mnemic.memory import Memory
        from tests.support.embedders import WordEmbedder

        memory = Memory(sys.argv[1] + "/a.db", embedder=WordEmbedder())
        memory.add("kept")
        rest = os.open(sys.argv[1] + "/rest", os.O_CREAT | os.O_WRONLY)
        try:
            while True:
                os.write(rest, bytes(1024))
        except OSError:
            pass
        refused = 0
        for number in range(200):
            try:
                memory.add(f"{number} " * 200)
            except StoreFullError:
                refused += 1
        assert refused
        assert memory.search("kept", limit=1)[0].content == "kept"
        memory.close()
        print("closed")
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(disk)]
    ended = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "closed\n"), ended.stderr
    fill(disk / "more")
    with pytest.raises(StoreFullError, match="make space, and open it again"):
        opened(disk / "a.db")
    (disk / "rest").unlink()
    with opened(disk / "a.db") as memory:
        assert memory.search("kept", limit=1)[0].content == "kept"


@pytest.mark.usefixtures("small_blocks")
def test_the_index_has_space_from_the_opening_on_and_ahead_of_its_log(tmp_path):
    index = tmp_path / "a.db-shm"
    with opened(tmp_path / "a.db") as memory:
        assert index.stat().st_size == 32 * KILO
        assert bytes_on_disk(index) >= 256 * KILO
        index_space = memory._repository._store._connections._checkpoints._index_space
        index_space.take(5 * 4096)
        assert bytes_on_disk(index) >= (5 + 8) * 32 * KILO
        memory.add("x")
        assert memory.count() == 1


def test_nothing_is_taken_where_blocks_are_as_large_as_the_index_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(log_index_space, "allocate_file", None)
    with opened(tmp_path / "a.db") as memory:
        memory.add("x")


@pytest.mark.usefixtures("small_blocks")
def test_a_write_is_refused_while_there_is_no_space_for_the_index(tmp_path, monkeypatch):
    # At the opening, and at the write, which empties the log and is tried once more.
    errors = [OSError(ENOSPC, os.strerror(ENOSPC))] * 3

    def refuse(*_):
        if errors:
            raise errors.pop()

    monkeypatch.setattr(log_index_space, "allocate_file", refuse)
    with opened(tmp_path / "a.db") as memory:
        with pytest.raises(StoreFullError, match="the disk is full"):
            memory.add("refused")
        memory.add("stored")
        assert memory.count() == 1


@pytest.mark.usefixtures("small_blocks")
def test_a_file_system_that_cannot_take_space_is_used_as_it_is(tmp_path, monkeypatch):
    calls = []

    def refuse(*_):
        calls.append(1)
        raise OSError(EOPNOTSUPP, os.strerror(EOPNOTSUPP))

    monkeypatch.setattr(log_index_space, "allocate_file", refuse)
    with opened(tmp_path / "a.db") as memory:
        memory.add("stored")
        assert memory.count() == 1
    assert calls == [1]


def test_the_core_tells_why_it_cannot_take_space():
    with pytest.raises(OSError, match="Bad file descriptor") as raised:
        allocate(-1, KILO)
    assert (raised.value.errno, raised.value.strerror) == (EBADF, os.strerror(EBADF))
