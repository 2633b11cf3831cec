"""Space on the disk and in the index of the log is reserved before it is written."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import suppress
from datetime import timedelta
from errno import EBADF, ENOSPC, EOPNOTSUPP

import pytest

from mnemic._core import allocate, lock_calls
from mnemic.errors import StoreFullError
from mnemic.memory import Memory
from mnemic.store.operations import Delete
from mnemic.store.sql import operations
from mnemic.store.sqlite import disk_space, wal
from tests.support.doors import opened
from tests.support.processes import ENVIRONMENT
from tests.support.small_disks import small_disk

pytestmark = pytest.mark.skipif(not lock_calls(), reason="needs a system that reserves space")

MEGABYTE = 1024 * 1024


def filled(memory, length):
    """Add memories until the disk is full; return their number."""
    before = memory.count()
    with suppress(StoreFullError):
        for number in range(100_000):
            memory.add(f"{number} " + "y" * length)
    assert number < 99_999
    assert memory.count() == before + number
    return number


def deleted_one_by_one(memory):
    for entry in memory.list(limit=20):
        memory.delete(entry.id, permanent=True)


def deleted_together(memory):
    memory.delete_all(permanent=True)


def deleted_by_a_filter(memory):
    memory.delete_many(filters={"importance": {"gte": 0.0}}, permanent=True)


@pytest.mark.parametrize("reopened", ["", "closed", "killed"])
@pytest.mark.parametrize("length", [400, 4000, 60_000])
@pytest.mark.parametrize("way", [deleted_one_by_one, deleted_together, deleted_by_a_filter])
def test_a_full_disk_is_emptied_by_permanent_deletions(way, length, reopened):
    with small_disk(6 * MEGABYTE) as disk:
        path = disk.folder / "a.db"
        if reopened == "killed":
            subprocess.run(
                [sys.executable, "-c", KILLED, path, str(length)], check=True, env=ENVIRONMENT
            )
            memory = Memory(path, embedder=None)
            number = memory.count()
        else:
            memory = Memory(path, embedder=None)
            number = filled(memory, length)
            if reopened:
                memory.close()
                memory = Memory(path, embedder=None)
        assert number > 50
        way(memory)
        if way is not deleted_one_by_one:
            assert memory.count() == 0
        assert memory.erase_pending()
        memory.add("there is room again")
        memory.close()
        with Memory(path, embedder=None, read_only=True) as again:
            assert again.verify().ok


KILLED = """
import os, sys
from mnemic.errors import StoreFullError
from mnemic.memory import Memory

memory, number = Memory(sys.argv[1], embedder=None), 0
try:
    while True:
        memory.add(f"{number} " + "y" * int(sys.argv[2]))
        number += 1
except StoreFullError:
    os._exit(0)
"""


def test_what_was_forgotten_is_purged_from_a_full_disk_and_agents_are_forgotten_on_it():
    with small_disk(8 * MEGABYTE) as disk, Memory(disk.folder / "a.db", embedder=None) as memory:
        memory.add_many([f"{number} " + "x" * 2000 for number in range(300)])
        memory.delete_all()
        filled(memory, 2000)
        assert memory.purge(older_than=timedelta(0)) == 300
        memory.add("there is room again")
        filled(memory, 2000)
        assert memory.forget_agent() > 300
        assert memory.count() == 0


def test_a_disk_that_others_fill_is_emptied_too():
    with small_disk(8 * MEGABYTE) as disk, Memory(disk.folder / "a.db", embedder=None) as memory:
        memory.add_many([f"{number} " + "x" * 2000 for number in range(800)])
        memory.add("the log has its place by now")
        disk.fill(0)
        with suppress(StoreFullError):  # until the place for the log is used up
            for number in range(2000):
                memory.add(f"{number} " + "x" * 2000)
        memory.delete_all(permanent=True)
        assert memory.count() == 0


def test_what_can_be_read_is_read_and_exported_although_accesses_cannot_be_written(tmp_path):
    with small_disk(4 * MEGABYTE) as disk, Memory(disk.folder / "a.db", embedder=None) as memory:
        first = memory.add_many([f"{number} " + "x" * 20_000 for number in range(60)])
        for length in (20_000, 200, 1):
            filled(memory, length)
        for entry in first[:20]:
            with suppress(StoreFullError):
                memory.update(entry.id, metadata={"note": "longer than before"})
        for entry in first[:3]:
            for read in (
                lambda: memory.list(limit=5),
                memory.stats,
                memory.audit,
                lambda: memory.export(tmp_path / "all.jsonl", overwrite=True),
                lambda: memory.backup(tmp_path / f"{entry.id}.db"),  # noqa: B023 - called here
            ):
                memory.get(entry.id)
                read()
        with pytest.raises(StoreFullError, match="the disk is full"):
            memory.delete_all()


def test_a_log_that_is_emptied_later_has_its_space_again(tmp_path, monkeypatch):
    monkeypatch.setattr(wal, "RETRY_SECONDS", 0)
    path = tmp_path / "a.db"
    with Memory(path, embedder=None) as memory:
        first = memory.add("one")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM agent_memory_entries").fetchone()
        assert memory.delete(first.id, permanent=True).erased is False
        reader.close()
        memory.add("two")
        log = path.with_name("a.db-wal").stat()
        assert log.st_size == 0
        assert log.st_blocks * 512 >= disk_space.LOG_BYTES


def test_a_deletion_in_parts_that_fails_says_how_many_are_deleted(monkeypatch):
    limits, own = [], operations.WRITES[Delete]

    def limited(on, codec, wanted, limit):
        limits.append(limit)
        if len(limits) not in {2, 4}:
            raise StoreFullError("the disk is full")
        return own.carry_out(on, codec, wanted, limit)

    replaced = {**operations.WRITES, Delete: own._replace(carry_out=limited)}
    monkeypatch.setattr(operations, "WRITES", replaced)
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(["note"] * 100)
        with pytest.raises(StoreFullError, match="the disk is full; 80 were deleted before"):
            memory.delete_all(permanent=True)
        assert memory.count() == 20
    assert limits == [None, 64, 64, 16, 16, 4, 1]


def test_what_does_not_fit_is_refused_whole_and_the_log_is_copied_at_the_end():
    with small_disk(8 * MEGABYTE) as disk:
        path = disk.folder / "a.db"
        with Memory(path, embedder=None) as memory:
            number = filled(memory, 4000)
            with pytest.raises(StoreFullError):
                memory.add_many(["z" * 4000 + str(at) for at in range(1000)])
            assert memory.count() == number
        assert [name.name for name in disk.folder.iterdir()] == ["a.db"]
        assert os.stat(path).st_size > 6 * MEGABYTE  # noqa: PTH116 - one call


KILO = 1024


def fill(path):
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(KILO))


def bytes_on_disk(path):
    return path.stat().st_blocks * 512


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(disk_space, "_has_small_blocks", lambda _: True)


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
    def refuse(path, _):
        assert not path.endswith("-shm")

    monkeypatch.setattr(disk_space, "allocate_file", refuse)
    with opened(tmp_path / "a.db") as memory:
        memory.add("x")


@pytest.mark.usefixtures("small_blocks")
def test_a_write_is_refused_while_there_is_no_space_for_the_index(tmp_path, monkeypatch):
    # At the opening, and at the write, which empties the log and is tried once more.
    errors = [OSError(ENOSPC, os.strerror(ENOSPC))] * 3

    def refuse(path, _):
        if path.endswith("-shm") and errors:
            raise errors.pop()

    monkeypatch.setattr(disk_space, "allocate_file", refuse)
    with opened(tmp_path / "a.db") as memory:
        with pytest.raises(StoreFullError, match="the disk is full"):
            memory.add("refused")
        memory.add("stored")
        assert memory.count() == 1


@pytest.mark.usefixtures("small_blocks")
def test_a_file_system_that_cannot_take_space_is_used_as_it_is(tmp_path, monkeypatch):
    calls = []

    def refuse(path, _):
        if path.endswith("-shm"):
            calls.append(1)
            raise OSError(EOPNOTSUPP, os.strerror(EOPNOTSUPP))

    monkeypatch.setattr(disk_space, "allocate_file", refuse)
    with opened(tmp_path / "a.db") as memory:
        memory.add("stored")
        assert memory.count() == 1
    assert calls == [1]


def test_the_core_tells_why_it_cannot_take_space():
    with pytest.raises(OSError, match="Bad file descriptor") as raised:
        allocate(-1, KILO)
    assert (raised.value.errno, raised.value.strerror) == (EBADF, os.strerror(EBADF))
