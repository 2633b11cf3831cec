"""Files that lie beside a log that is not theirs, or without their own."""

import errno
import logging
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import apsw
import pytest

from mnemic._core import lock_calls
from mnemic.errors import StoreFileError
from mnemic.store.sqlite import log_mark, wal
from mnemic.store.sqlite.log_mark import LogState, Mark, read_mark
from mnemic.store.sqlite.opening import migrate, open_writer
from mnemic.store.sqlite.schema import MIGRATIONS
from mnemic.store.sqlite.wal import Checkpoints
from tests.support.doors import opened
from tests.support.processes import ENVIRONMENT

pytestmark = pytest.mark.skipif(not lock_calls(), reason="needs locks that a check cannot drop")


def contents(path, **options):
    with opened(path, **options) as memory:
        return {entry.content for entry in memory.list().entries}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith("-shm"))


@pytest.fixture
def folder(tmp_path):
    """A folder with a file as its process left it when it was killed, and backups of before."""
    folder, left = tmp_path / "origin", tmp_path / "left"
    for new in (folder, left):
        new.mkdir()
    with opened(folder / "a.db") as memory:
        memory.add("written first")
    shutil.copy(folder / "a.db", left / "closed.db")
    with opened(folder / "a.db") as memory:
        memory.backup(left / "backup.db")
        memory.add_many([f"written afterwards {number}" for number in range(20)])
        for name in ("a.db", "a.db-wal"):
            shutil.copy(folder / name, left / name)
    return left


ALL = {"written first", *(f"written afterwards {number}" for number in range(20))}


ANOTHER_PROGRAM = """
import os, sqlite3, sys, time
file = sqlite3.connect(sys.argv[1], isolation_level=None)
for turn in range(int(sys.argv[2])):
    time.sleep(0.02)  # clocks of file systems tick some 250 times a second
    file.execute("UPDATE agent_memory_entries SET access_count = ?", (7 + turn,))
    if turn + 1 < int(sys.argv[2]):
        file.execute("PRAGMA wal_checkpoint(RESTART)")
os._exit(0)
"""


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("name", ["closed.db", "a.db"])
def test_what_another_program_wrote_and_left_in_its_log_is_kept(folder, name, turns):
    path = folder / name
    command = [sys.executable, "-c", ANOTHER_PROGRAM, str(path), str(turns)]
    subprocess.run(command, check=True)
    with opened(path) as memory:
        assert {entry.access_count for entry in memory.list().entries} == {6 + turns}
    assert not list(folder.glob("*.foreign-*"))


@pytest.mark.parametrize("backup", ["backup.db", "closed.db"])
def test_a_backup_copied_over_a_file_is_not_mixed_with_the_log_that_is_there(
    folder, caplog, backup
):
    caplog.set_level(logging.WARNING)
    log = (folder / "a.db-wal").read_bytes()
    shutil.copy(folder / backup, folder / "a.db")
    assert contents(folder / "a.db") == {"written first"}
    (foreign,) = folder.glob("a.db-wal.foreign-*")
    assert foreign.read_bytes() == log
    assert stat.S_IMODE(foreign.stat().st_mode) == 0o600
    assert foreign.name in caplog.text
    assert "written" not in caplog.text.replace("what was written after", "")
    assert contents(folder / "a.db") == {"written first"}


def test_another_memorys_file_is_not_mixed_with_the_log_that_is_there(folder, tmp_path):
    with opened(tmp_path / "other.db") as memory:
        memory.add("of another memory")
        for name in ("", "-wal"):
            shutil.copy(tmp_path / f"other.db{name}", folder / f"other.db{name}")
    shutil.copy(folder / "a.db-wal", folder / "other.db-wal")
    with pytest.raises(StoreFileError, match="it is incomplete"):
        opened(folder / "other.db")
    assert [path.name for path in folder.glob("other.db-wal*")] != ["other.db-wal"]


def test_a_file_copied_without_its_log_says_that_it_is_incomplete(folder):
    log = (folder / "a.db-wal").read_bytes()
    (folder / "a.db-wal").unlink()
    before = (folder / "a.db").read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreFileError, match=r"incomplete.*a\.db-wal.*restore a backup"):
            opened(folder / "a.db", read_only=read_only)
    assert (folder / "a.db").read_bytes() == before
    (folder / "a.db-wal").write_bytes(log)
    assert contents(folder / "a.db") == ALL


def test_whoever_has_lost_the_log_for_good_can_open_the_file_without_it(folder):
    (folder / "a.db-wal").write_bytes(b"")
    assert contents(folder / "a.db") == {"written first"}
    assert contents(folder / "a.db") == {"written first"}


def test_reading_alone_refuses_a_foreign_log_and_touches_nothing(folder):
    shutil.copy(folder / "backup.db", folder / "a.db")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreFileError, match="belongs to another file"):
        opened(folder / "a.db", read_only=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_reading_alone_opens_a_file_that_was_killed_with_its_log(folder):
    assert contents(folder / "a.db", read_only=True) == ALL


def test_a_file_without_a_mark_opens_with_the_log_that_is_there(folder):
    data = bytearray((folder / "a.db").read_bytes())
    data[log_mark.MARK_OFFSET : log_mark.MARK_OFFSET + log_mark.MARK_SIZE] = bytes(
        log_mark.MARK_SIZE
    )
    (folder / "a.db").write_bytes(data)
    assert read_mark(str(folder / "a.db")) is None
    assert contents(folder / "a.db") == ALL


@pytest.mark.parametrize("kept", [0, 31, 50])
def test_a_log_of_which_nothing_can_be_read_is_taken_for_empty(folder, kept):
    log = (folder / "a.db-wal").read_bytes()
    (folder / "a.db-wal").write_bytes(log[:kept])
    assert contents(folder / "a.db") == {"written first"}
    assert names_in(folder) == ["a.db", "backup.db", "closed.db"]


def test_the_mark_is_written_for_each_log_and_not_for_each_commit(tmp_path, monkeypatch):
    marks, path = [], tmp_path / "a.db"
    write = wal._File.write_mark
    monkeypatch.setattr(
        wal._File, "write_mark", lambda file, mark: marks.append(mark) or write(file, mark)
    )
    with opened(path) as memory:
        assert marks == []
        for number in range(5):
            memory.add(str(number))
        assert [mark.state for mark in marks] == [LogState.USED]
    ended = [LogState.BEGINNING, LogState.ENDED]  # before the log is emptied, and after
    assert [mark.state for mark in marks] == [LogState.USED, *ended]
    marks.clear()
    with opened(path) as memory, opened(path) as second:
        for number in range(5):
            memory.add(str(number))
            second.add(str(number))
        assert [mark.state for mark in marks] == [LogState.BEGINNING, LogState.USED]


def _copy_at_first_mark(monkeypatch, folder, left):
    """Copy a file and its log as a kill between a commit and its mark would leave them."""
    mark = Checkpoints._mark

    def copied(self):
        if not left.exists():
            left.mkdir()
            for name in ("a.db", "a.db-wal"):
                shutil.copy(folder / name, left / name)
        mark(self)

    monkeypatch.setattr(Checkpoints, "_mark", copied)


ADD_LATE = """
import sys
from mnemic import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    memory.add("written as the erasure begins")
"""


def test_a_kill_after_others_wrote_during_an_erasure_leaves_no_log_that_seems_foreign(
    tmp_path, monkeypatch
):
    path, left = tmp_path / "a.db", tmp_path / "left"
    copy = Checkpoints._copy
    with opened(path) as eraser, opened(path) as third:
        erased = eraser.add("erased")

        def late(self, how):
            if how == "TRUNCATE":  # in another process, for memories of one share their turn
                subprocess.run([sys.executable, "-c", ADD_LATE, path], env=ENVIRONMENT, check=True)
            return copy(self, how)

        monkeypatch.setattr(Checkpoints, "_copy", late)
        eraser.delete(erased.id, permanent=True)
        assert (tmp_path / "a.db-wal").stat().st_size == 0
        monkeypatch.setattr(Checkpoints, "_copy", copy)
        _copy_at_first_mark(monkeypatch, tmp_path, left)
        third.add("first of the next log")
        monkeypatch.undo()
    expected = {"written as the erasure begins", "first of the next log"}
    assert contents(left / "a.db") == expected
    assert names_in(left) == ["a.db"]


def test_a_mark_is_not_written_after_the_log_that_it_names_was_truncated(tmp_path, monkeypatch):
    path, begun = str(tmp_path / "a.db"), []
    name = wal._Vfs._mark
    with opened(path) as eraser, opened(path) as writer:
        erased = eraser.add("erased").id

        def late(self, wanted):
            if wanted.state is LogState.USED and not begun:
                begun.append(threading.Thread(target=eraser.delete, args=(erased,), kwargs=gone))
                begun[0].start()
                begun[0].join(0.3)  # which it outlives: it waits until the log is named
            name(self, wanted)

        gone = {"permanent": True}
        monkeypatch.setattr(wal._Vfs, "_mark", late)
        writer.add("written meanwhile")
        begun[0].join()
        assert (tmp_path / "a.db-wal").read_bytes() == b""
        assert read_mark(path) == Mark(LogState.BEGINNING)


def test_a_log_is_synced_before_a_mark_names_it(tmp_path, monkeypatch):
    calls = []
    sync, mark = wal._Log.xSync, wal._File.write_mark
    with opened(tmp_path / "a.db") as memory:
        monkeypatch.setattr(wal._Log, "xSync", lambda *a: calls.append("sync") or sync(*a))
        monkeypatch.setattr(wal._File, "write_mark", lambda *a: calls.append("mark") or mark(*a))
        memory.add("first of a log")
        monkeypatch.undo()
    assert calls == ["sync", "mark"]


def test_a_mark_is_changed_even_where_no_lock_is_to_be_had(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    monkeypatch.setattr(log_mark, "_MAX_TRIES", 3)
    with opened(path) as memory, log_mark.mark_locked(str(path)):
        memory.add("kept")
        assert read_mark(str(path)).state is LogState.USED
    with opened(path) as memory:
        monkeypatch.setattr(log_mark, "opened", _no_descriptor)
        memory.add("kept too")
        monkeypatch.undo()
    assert contents(path) == {"kept", "kept too"}


def _no_descriptor(*_):
    raise OSError(errno.EMFILE, "too many open files")


def test_waiting_for_readers_leaves_other_threads_the_interpreter(tmp_path, monkeypatch):
    path, waits = tmp_path / "a.db", []
    sleep = time.sleep
    with opened(path) as memory:
        memory.add("kept")
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
        erased = memory.add("erased")
        monkeypatch.setattr(time, "sleep", lambda seconds: waits.append(seconds) or sleep(seconds))
        memory.delete(erased.id, permanent=True)
        monkeypatch.undo()
        reader.close()
    assert sum(waits) > wal.ERASE_MILLISECONDS / 2000


def test_a_migration_that_was_killed_leaves_no_log_that_seems_to_be_another_files(tmp_path):
    path, left = tmp_path / "a.db", tmp_path / "left"
    left.mkdir()
    with opened(path) as memory:
        memory.add("kept")
    migrate(str(path), len(MIGRATIONS) - 1)
    assert read_mark(str(path)) == Mark(LogState.ENDED)
    connection = open_writer(str(path))
    for name in ("a.db", "a.db-wal"):
        shutil.copy(tmp_path / name, left / name)
    connection.close()
    assert (left / "a.db-wal").stat().st_size > 0
    assert contents(left / "a.db") == {"kept"}
    assert names_in(left) == ["a.db"]


def test_a_mark_survives_checkpoints_and_an_integrity_check(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.add_many([f"{number} " * 500 for number in range(300)])
        memory.add("another log begins")
        mark = read_mark(str(path))
        salts = (tmp_path / "a.db-wal").read_bytes()[16:24]
        assert mark == Mark(LogState.USED, salts)
    assert read_mark(str(path)) == Mark(LogState.ENDED)
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_a_mark_is_what_was_written_and_nothing_else():
    mark, counter = Mark(LogState.USED, b"12345678"), b"\0\0\0\7"
    stored = mark.encoded(counter)
    assert Mark.decoded(stored, counter) == mark
    assert len(stored) == log_mark.MARK_SIZE
    for at in range(log_mark.MARK_SIZE):
        damaged = bytearray(stored)
        damaged[at] ^= 1
        assert Mark.decoded(bytes(damaged), counter) is None
    assert Mark.decoded(stored, b"\0\0\0\10") is None
    assert Mark.decoded(b"", counter) is None


WRITES = {
    "add": "memory.add('last')",
    "update": "memory.update(kept, content='last')",
    "importance": "[memory.update(kept, importance=n / 30) for n in range(30)]",
    "forget": "memory.delete(kept)",
    "erase": "memory.delete(kept, permanent=True); memory.add('last')",
    "many": "memory.add_many([str(n) * 3000 for n in range(400)]); memory.add('last')",
    "second log": "memory.add('x'); memory.erase_pending(); memory.add('last')",
    "third log": "memory.erase_pending(); memory.add('x'); memory.erase_pending();"
    "memory.update(kept, importance=0.1)",
    "two writers": "other = Memory(path, embedder=None); memory.add('x'); other.add('y');"
    "memory.update(kept, importance=0.1); other.update(kept, importance=0.2)",
    "copied log": "memory.add('x'); reader(path, 'PRAGMA wal_checkpoint'); memory.add('last')",
    "copied and restarted": "memory.add('x'); reader(path, 'PRAGMA wal_checkpoint');"
    "memory.add('y'); reader(path, 'PRAGMA wal_checkpoint(RESTART)'); memory.add('last')",
}
KILLED = """
import os, shutil, sqlite3, sys
from mnemic.memory import Memory

path, write = sys.argv[1:]

def reader(path, statement):
    file = sqlite3.connect(path)
    file.execute(statement).fetchall()
    file.close()

memory = Memory(path, embedder=None)
kept = memory.list()[0].id
exec(write)
os._exit(0)
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_file_whose_log_another_program_has_copied_is_complete_and_else_it_is_not(
    tmp_path, write, times
):
    path, lost = tmp_path / "a.db", tmp_path / "lost" / "a.db"
    lost.parent.mkdir()
    with opened(path) as memory:
        memory.add_many([f"written first {number}" for number in range(5)])
    for _ in range(times):
        command = [sys.executable, "-c", KILLED, str(path), write]
        subprocess.run(command, check=True, env=ENVIRONMENT)
        shutil.copy(path, lost)
        with pytest.raises(StoreFileError, match="it is incomplete"):
            opened(lost)
        file = sqlite3.connect(path)  # closing it copies the log, and deletes it
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (rows,) = file.execute("SELECT count(*) FROM agent_memory_entries").fetchone()
        file.close()
        assert names_in(tmp_path) == ["a.db", "lost"]
        with opened(path, read_only=True) as memory:
            assert len(memory.list(include_deleted=True, limit=1000).entries) == rows
    with opened(path) as memory:
        memory.add("afterwards")
        assert len(memory.list(include_deleted=True, limit=1000).entries) == rows + 1
    assert read_mark(str(path)) == Mark(LogState.ENDED)
    assert names_in(tmp_path) == ["a.db", "lost"]
