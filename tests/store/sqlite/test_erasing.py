"""Deleted bytes are erased a moment later, and the snapshots beside a file with them."""

import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from mnemic.errors import StoreBusyError, StoreFileError, StoreReplacedError
from mnemic.memory import Memory
from mnemic.model import Scope
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import Add, Delete
from mnemic.store.sqlite import snapshot_folder
from mnemic.store.sqlite.store import SqliteStore
from mnemic.store.sqlite.wal import Checkpoints
from tests.store.contract import count_of
from tests.support.entries import numbered, only
from tests.support.paths import names_in
from tests.support.waiting import until


def secret(number):
    return f"confidential~{number:04d}~"


def left(folder, numbers):
    """Return those of these secrets that are in any file of a folder."""
    data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [number for number in numbers if secret(number).encode() in data]


def filled(memory, numbers):
    memory.add_many([{"content": secret(n), "id": UUID(int=n)} for n in numbers])


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as opened:
        filled(opened, range(30))
        yield opened


@pytest.fixture
def erasures(monkeypatch):
    """Return the times of erasures."""
    times = []
    erase = Checkpoints.erase

    def noted(self):
        times.append(time.monotonic())
        return erase(self)

    monkeypatch.setattr(Checkpoints, "erase", noted)
    return times


@pytest.mark.parametrize("new", [[], ["another"]])
def test_what_others_take_the_place_of_is_in_no_file_a_moment_later(memory, tmp_path, new):
    memory.add_many(new, instead_of=[UUID(int=7)])
    assert memory.count() == 29 + len(new)
    until(lambda: left(tmp_path, [7]) == [])
    assert left(tmp_path, range(30)) == [n for n in range(30) if n != 7]


def test_many_deletions_are_erased_at_once_and_later_ones_again(memory, tmp_path, erasures):
    begun = time.monotonic()
    for n in range(20):
        memory.add_many([], instead_of=[UUID(int=n)])
    taken = time.monotonic() - begun
    until(lambda: left(tmp_path, range(20)) == [])
    assert 1 <= len(erasures) <= 2 + 2 * taken
    memory.add_many([], instead_of=[UUID(int=20)])
    until(lambda: left(tmp_path, [20]) == [])


def test_closing_does_not_leave_the_bytes_to_those_who_have_the_file_open(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as other:
        filled(other, range(3))
        with Memory(tmp_path / "a.db", embedder=None) as memory:
            snapshots = tmp_path / "a.db-index"
            snapshots.mkdir(mode=0o700)
            (snapshots / "old").write_text(secret(1))
            memory.add_many([], instead_of=[UUID(int=1)])
        assert left(tmp_path, range(3)) == [0, 2]
        assert other.count() == 2


NOW = datetime(2024, 1, 1, tzinfo=UTC)
EVERYONE = Scope("a", all_users=True)
HOLDER = """
import sys, os
from mnemic.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.locked_snapshots() as folder:
    open(f"{folder}/part", "w").close()
    print("locked", flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), 9)
    os.rename(f"{folder}/part", f"{folder}/saved")
print("released", flush=True)
sys.stdin.readline()
store.close()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def store(path):
    opened = SqliteStore(path)
    yield opened
    opened.close()


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr(snapshot_folder.SnapshotFolder.clear, "__defaults__", (0.05,))
    monkeypatch.setattr(snapshot_folder, "RETRY_SECONDS", 0.0)


def add(store, number):
    store.write(Add("a", [NewEntry(numbered(number))], now=NOW)).result()


def save(store, name="saved"):
    with store.locked_snapshots() as folder:
        Path(folder, name).write_bytes(b"words")


def saved(store):
    folder = Path(store.snapshot_folder)
    return [name for name in names_in(folder) if name != "lock"] if folder.exists() else []


@contextmanager
def holder(path, end="saved"):
    """Let another process hold the lock until it is told to go on."""
    command = [sys.executable, "-c", HOLDER, str(path), end]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as child:
        assert child.stdout.readline() == b"locked\n"

        def go_on():
            child.stdin.write(b"\n")
            child.stdin.flush()

        try:
            yield child, go_on
        finally:
            child.kill()


def test_folder_and_lock_belong_to_their_owner_alone_and_are_made_by_the_first_save(store):
    folder = Path(store.snapshot_folder)
    assert not folder.exists()
    with store.locked_snapshots() as given:
        assert given == str(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "lock").stat().st_mode) == 0o600


def test_the_folder_lies_beside_the_file_itself_wherever_a_link_is(path, tmp_path):
    SqliteStore(path).close()
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.db"
    link.symlink_to(path)
    store = SqliteStore(link)
    assert store.snapshot_folder == f"{path}-index"
    store.close()


def test_one_at_a_time_writes_and_others_wait_as_long_as_they_want(path, store):
    other = SqliteStore(path)
    with store.locked_snapshots():
        began = time.monotonic()
        with pytest.raises(StoreBusyError), other.locked_snapshots(wait=0.1):
            pass
        assert time.monotonic() - began >= 0.1
        with pytest.raises(StoreBusyError), store.locked_snapshots():
            pass
    with other.locked_snapshots():
        pass
    other.close()


def test_nothing_is_saved_beside_another_file(path, store, tmp_path):
    for part in ("", "-wal", "-shm"):
        Path(f"{path}{part}").rename(tmp_path / f"moved.db{part}")
    SqliteStore(path).close()
    with pytest.raises(StoreReplacedError), store.locked_snapshots():
        pass
    with pytest.raises(StoreReplacedError):
        store.erase().result()


def test_erasing_removes_every_file_of_all_agents_and_parts_of_killed_processes(store):
    assert store.erase().result()
    save(store, "one agent")
    save(store, "another agent")
    save(store, ".hidden.part")
    add(store, 1)
    store.write(Delete(EVERYONE, only(1))).result()
    assert len(saved(store)) == 3
    assert store.erase().result()
    assert saved(store) == []
    assert names_in(store.snapshot_folder) == ["lock"]


@pytest.mark.parametrize("way", ["delete", "delete_many", "delete_all", "purge", "erase_pending"])
def test_every_permanent_deletion_removes_snapshots(path, way):
    with Memory(path, "a", embedder=None) as memory:
        kept = memory.add("tea", user_id="u").id
        memory.delete(kept, user_id="u")
        store = SqliteStore(path)
        save(store)
        if way == "delete":
            assert memory.delete(kept, user_id="u", permanent=True).erased
        elif way == "delete_many":
            assert memory.delete_many([kept], user_id="u", permanent=True).erased
        elif way == "delete_all":
            assert memory.delete_all(user_id="u", permanent=True).erased
        elif way == "purge":
            assert memory.purge(user_id="u", older_than=timedelta()).erased
        else:
            assert memory.erase_pending()
        assert saved(store) == []
        store.close()


def test_a_deletion_that_can_be_undone_keeps_snapshots(path):
    with Memory(path, "a", embedder=None) as memory:
        kept = memory.add("tea").id
        store = SqliteStore(path)
        save(store)
        memory.delete(kept)
        memory.delete_all()
        assert saved(store) == ["saved"]
        store.close()


def test_the_deletion_is_committed_before_the_files_are_removed(path, store, monkeypatch):
    add(store, 1)
    save(store)
    other, seen = SqliteStore(path), []
    real = snapshot_folder._emptied

    def emptied(folder):
        seen.append(count_of(other, EVERYONE, now=NOW))
        return real(folder)

    monkeypatch.setattr(snapshot_folder, "_emptied", emptied)
    store.write(Delete(EVERYONE, only(1))).result()
    assert store.erase().result()
    assert seen == [0]
    other.close()


def test_erasing_waits_for_another_process_that_writes_a_snapshot(path, store):
    with holder(path) as (_, go_on):
        threading.Timer(0.3, go_on).start()
        began = time.monotonic()
        assert store.erase().result()
        assert 0.2 < time.monotonic() - began < 4
        assert saved(store) == []


def test_writers_go_on_while_erasing_waits_for_a_snapshot(store):
    add(store, 1)
    with store.locked_snapshots():
        erased = []
        thread = threading.Thread(target=lambda: erased.append(store.erase().result()))
        thread.start()
        for number in range(2, 6):
            add(store, number)
        assert erased == []
    thread.join(10)
    assert erased == [True]


@pytest.mark.usefixtures("no_wait")
def test_whoever_writes_a_snapshot_removes_it_where_erasing_gave_up(path, store):
    with holder(path) as (child, go_on):
        assert not store.erase().result()
        assert saved(store) == ["erase", "part"]
        go_on()
        assert child.stdout.readline() == b"released\n"
        assert saved(store) == []
        assert store.erase().result()


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("way", ["erase", "commit", "close", "other closes", "open", "save"])
def test_what_a_killed_process_left_is_removed_by_the_next_one(path, store, way):
    with holder(path, "killed") as (child, go_on):
        assert not store.erase().result()
        go_on()
        child.wait(10)
    assert saved(store) == ["erase", "part"]
    if way == "erase":
        assert store.erase().result()
    elif way == "commit":
        add(store, 1)
    elif way == "close":
        store.close()
    elif way == "other closes":
        other = SqliteStore(path)
        for name in ("erase", "late"):
            Path(store.snapshot_folder, name).touch()
        other.close()
    elif way == "open":
        SqliteStore(path).close()
    else:
        with store.locked_snapshots():
            assert saved(store) == []
    assert saved(store) == []


@pytest.mark.usefixtures("no_wait")
def test_a_file_that_cannot_be_removed_is_removed_later(store, monkeypatch):
    save(store)

    def failing(*_, **__):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing)
        assert not store.erase().result()
    assert saved(store) == ["erase", "saved"]
    add(store, 1)
    assert saved(store) == []
    assert store.erase().result()


@pytest.mark.usefixtures("no_wait")
def test_a_folder_that_leads_elsewhere_is_left_alone_and_not_called_erased(store, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "notes").touch()
    Path(store.snapshot_folder).symlink_to(tmp_path / "own")
    with pytest.raises(StoreFileError), store.locked_snapshots():
        pass
    assert not store.erase().result()
    assert names_in(tmp_path / "own") == ["notes"]


def test_without_locks_of_files_nothing_is_saved_and_what_is_there_is_erased(store, monkeypatch):
    save(store)

    def failing(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(snapshot_folder, "_try_to_lock", failing)
    with pytest.raises(StoreFileError), store.locked_snapshots():
        pass
    assert store.erase().result()
    assert saved(store) == []


def test_removed_names_are_on_disk_when_erasing_returns(store, monkeypatch):
    save(store)
    synced, real = [], os.fsync

    def recorded(descriptor):
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    assert store.erase().result()
    assert store.snapshot_folder in synced


def test_a_forked_process_that_lives_on_does_not_keep_the_lock(store):
    read, write = os.pipe()
    with store.locked_snapshots():
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    assert store.erase().result()
    os.close(write)
    os.close(read)
    os.waitpid(child, 0)


def test_a_moved_file_opens_without_its_folder(path, store, tmp_path):
    add(store, 1)
    save(store)
    store.close()
    path.rename(tmp_path / "b.db")
    moved = SqliteStore(tmp_path / "b.db")
    assert count_of(moved, EVERYONE, now=NOW) == 1
    assert saved(moved) == []
    moved.close()
