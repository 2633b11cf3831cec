import os
import sqlite3
import stat
import subprocess
import sys
import threading
from functools import partial

import apsw
import pytest

from mnemic.errors import (
    SchemaVersionError,
    StoreBusyError,
    StoreFileError,
)
from mnemic.memory import Memory
from mnemic.store.sqlite import opening
from mnemic.store.sqlite.store import SqliteStore
from tests.support.paths import names_in
from tests.support.threads import run_together


def opened_and_closed(path):
    SqliteStore(path).close()


def test_a_new_file_is_readable_by_its_owner_alone_and_so_is_its_log(tmp_path):
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    store.close()
    assert names_in(tmp_path) == ["a.db"]


def test_the_file_is_written_through_a_full_sync_log_and_deleted_bytes_are_overwritten(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    with store._connections._held() as connection:
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("secure_delete") == 1
        assert connection.pragma("foreign_keys") == 1
        assert connection.pragma("temp_store") == 2
    store.close()


def test_sqlite_is_free_of_the_log_reset_corruption():
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"These are my notes, not a database. " * 40, "not a mnemic file; choose another path"),
        (b"short", "not a mnemic file; choose another path"),
    ],
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content, message):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreFileError, match=message):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE t (x)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(StoreFileError, match="another program's database; choose another path"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    opened_and_closed(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        SchemaVersionError, match=r"version 99 is newer than this mnemic's .* upgrade"
    ):
        SqliteStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/a.db", "its directory does not exist; create it first"),
        (".", "it is not a regular file"),
        ("postgresql://host/db", "only file paths, sqlite:.* are supported"),
    ],
)
def test_a_path_that_cannot_be_used_says_why(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreFileError, match=message):
        SqliteStore(path)
    assert names_in(tmp_path) == []


def test_a_relative_path_stays_the_same_file_when_the_directory_changes(tmp_path, monkeypatch):
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("a.db")
    monkeypatch.chdir(tmp_path / "else")
    assert store.position("a").seq == 0
    store.close()
    assert names_in(tmp_path / "else") == []


def test_a_lock_held_too_long_is_a_busy_error_and_the_store_works_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BUSY_MILLISECONDS", 50)
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match=r"other writers keep it locked; .*try again"):
        store._submit(None, lambda connection: connection.changes()).result()
    assert store.position("a").seq == 0
    other.execute("ROLLBACK")
    other.close()
    store._submit(None, lambda connection: connection.changes()).result()
    store.close()


def test_a_store_collected_in_its_own_writing_thread_does_not_hang(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    store._submit(None, lambda _connection: store._close()).result()
    store._writer._thread.join(10)
    assert not store._writer._thread.is_alive()
    opened_and_closed(tmp_path / "a.db")


def test_a_file_that_is_being_made_by_another_is_not_taken_for_a_strangers(tmp_path, monkeypatch):
    path, made, others = tmp_path / "a.db", apsw.Connection, []

    class Interrupted(apsw.Connection):
        def pragma(self, name, *values, **named):
            answer = super().pragma(name, *values, **named)
            if not others:
                monkeypatch.setattr(apsw, "Connection", made)
                others.append(threading.Thread(target=opened_and_closed, args=(path,)))
                others[0].start()
                others[0].join(0.3)
            return answer

    monkeypatch.setattr(apsw, "Connection", Interrupted)
    opened_and_closed(path)
    others[0].join()


def test_many_threads_may_open_one_new_file_at_once(tmp_path):
    for number in range(10):
        run_together(*[partial(opened_and_closed, tmp_path / f"{number}.db")] * 8)


def test_many_processes_may_open_new_files_at_once(tmp_path):
    code = (
        "import sys\n"
        "from mnemic.store.sqlite.store import SqliteStore\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(20):\n"
        "    SqliteStore(f'{sys.argv[1]}/{number}.db').close()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(8)]
    for process in started:
        assert process.stdout.readline() == b"ready\n"
    for process in started:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in started:
        process.communicate(timeout=120)
    assert [process.returncode for process in started] == [0] * 8
    # SQLite leaves the log where two connections close at once, to whoever is next.
    files = [name for name in names_in(tmp_path) if name.endswith(".db")]
    assert files == sorted(f"{number}.db" for number in range(20))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_off_during_a_write_ends_and_leaves_the_file_alone(tmp_path):
    code = (
        "import os, sys, threading, time\n"
        "from mnemic.store.sqlite.store import SqliteStore\n"
        "store, started, ended = SqliteStore(sys.argv[1]), threading.Event(), threading.Event()\n"
        "job = lambda connection: started.set() or ended.wait(60)\n"
        "threading.Thread(target=lambda: store._submit(None, job).result()).start()\n"
        "started.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    store.close()\n"
        "    sys.exit(7)\n"
        "ended_by = time.monotonic() + 20\n"
        "while not (waited := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ended_by:\n"
        "    time.sleep(0.01)\n"
        "if not waited[0]:\n"
        "    os.kill(child, 9)\n"
        "ended.set()\n"
        "store._submit(None, lambda connection: None).result()\n"
        "store.close()\n"
        "sys.exit(os.waitstatus_to_exitcode(waited[1]))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "a.db")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 7
    assert names_in(tmp_path) == ["a.db"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_opening_a_file_twice_keeps_the_locks_of_the_first(tmp_path):
    path = str(tmp_path / "a.db")
    first, second = SqliteStore(path), SqliteStore(path)
    # Bytes 2**30 + 2 and the 509 after it are where SQLite's file format puts the shared lock.
    code = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    try:\n"
        "        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 2**30 + 2)\n"
        "    except OSError:\n"
        "        sys.exit(7)\n"
    )
    command = [sys.executable, "-c", code, path]
    assert subprocess.run(command, timeout=60, check=False).returncode == 7
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["Zürich 東京 🙂.db", "a b?c#d%41.db", "file:x.db", "it's"])
def test_any_name_in_utf_8_is_a_name_for_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for path in (name, tmp_path / name, os.fsencode(name)):
        store = SqliteStore(path)
        store.position("a")
        store.close()
    assert names_in(tmp_path) == [name]


@pytest.mark.parametrize("name", ["\udcff.db", chr(0xD800), "a\0b"])
def test_a_name_that_is_not_utf_8_is_refused(tmp_path, name):
    with pytest.raises(StoreFileError, match="not a path in UTF-8"):
        SqliteStore(f"{tmp_path}/{name}")
    assert names_in(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are no text")
def test_a_folder_or_a_file_whose_name_is_not_utf_8_is_refused_by_whatever_way(
    tmp_path, monkeypatch
):
    os.mkdir(os.fsencode(tmp_path) + b"/no\xff")  # noqa: PTH102 - no text
    (tmp_path / "folder").symlink_to("no\udcff")
    (tmp_path / "file.db").symlink_to("no\udcff.db")
    for path in (tmp_path / "folder" / "a.db", tmp_path / "file.db"):
        for read_only in (False, True):
            with pytest.raises(StoreFileError, match="not a path in UTF-8"):
                Memory(path, embedder=None, read_only=read_only)
    monkeypatch.chdir(tmp_path / "folder")
    with pytest.raises(StoreFileError, match="not a path in UTF-8"):
        Memory("a.db", embedder=None)
    with (
        Memory(":memory:", embedder=None) as memory,
        pytest.raises(StoreFileError, match="not a path in UTF-8"),
    ):
        memory.backup("a.db")
    assert not os.listdir(tmp_path / "folder")  # noqa: PTH208 - names alone


def test_a_file_or_directory_that_cannot_be_written_is_refused(tmp_path):
    opened_and_closed(tmp_path / "a.db")
    for mode_of_file, mode_of_directory, name in ((0o400, 0o700, "a.db"), (0o600, 0o500, "b.db")):
        (tmp_path / "a.db").chmod(mode_of_file)
        tmp_path.chmod(mode_of_directory)
        if os.access(tmp_path / "a.db", os.W_OK) and os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write whatever the mode says")
        with pytest.raises(StoreFileError, match=r"be written|be opened"):
            SqliteStore(tmp_path / name)
    tmp_path.chmod(0o700)


def test_two_memories_without_a_file_are_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two = SqliteStore(":memory:"), SqliteStore(":memory:")
    insert = "INSERT INTO agent_memory_agents (agent_id, seq) VALUES ('a', 5)"
    one._submit(None, lambda connection: connection.execute(insert)).result()
    assert (one.position("a").seq, two.position("a").seq) == (5, 0)
    one.close()
    two.close()
    assert names_in(tmp_path) == []
