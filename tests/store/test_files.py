import os
import sqlite3
import stat
import subprocess
import sys
import threading

import apsw
import pytest

from mnemic.errors import (
    SchemaVersionError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFileError,
)
from mnemic.model import Scope
from mnemic.store import SqliteStore, connections
from mnemic.waiting import drive


def opened_and_closed(path):
    drive(SqliteStore(path).close())


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_a_new_file_is_readable_by_its_owner_alone_and_so_is_its_log(tmp_path):
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    drive(store.close())
    assert names_in(tmp_path) == ["a.db"]


def test_the_file_is_written_through_a_full_sync_log_and_deleted_bytes_are_overwritten(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    with store._connections.writing() as connection:
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("secure_delete") == 1
        assert connection.pragma("foreign_keys") == 1
        assert connection.pragma("temp_store") == 2
    drive(store.close())


def test_sqlite_is_free_of_the_log_reset_corruption():
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_deleting_an_entry_takes_its_vectors_and_links_along(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    with store._connections.writing() as connection:
        connection.execute(
            "INSERT INTO agent_memory_entries VALUES (1, 'a', x'01', NULL, NULL, NULL, 0, 0, .5, 0,"
            " 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 0, 0, 'str',"
            " NULL, NULL, 'x');"
            "INSERT INTO agent_memory_embeddings VALUES (1, 'm', 0, 0, x'00000000');"
            "INSERT INTO agent_memory_links VALUES (1, 1, 0, 1.0, 0);"
            "DELETE FROM agent_memory_entries"
        )
        for table in ("agent_memory_embeddings", "agent_memory_links"):
            assert connection.execute(f"SELECT count(*) FROM {table}").get == 0  # noqa: S608
    drive(store.close())


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


def test_a_damaged_file_is_reported_with_what_to_do(tmp_path):
    path = tmp_path / "a.db"
    opened_and_closed(path)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreCorruptError, match="damaged; keep it, and restore a backup"):
        drive(SqliteStore(path).count(Scope("a")))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/a.db", "its directory does not exist; create it first"),
        (".", "cannot be opened"),
        ("postgresql://host/db", "only file paths and ':memory:' are supported"),
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
    assert drive(store.count(Scope("a"))) == 0
    drive(store.close())
    assert names_in(tmp_path / "else") == []


def test_a_lock_held_too_long_is_a_busy_error_and_the_store_works_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "BUSY_MILLISECONDS", 50)
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another process keeps it locked; try again"):
        drive(store._write(lambda connection: connection.changes()))
    assert drive(store.count(Scope("a"))) == 0
    other.execute("ROLLBACK")
    other.close()
    drive(store._write(lambda connection: connection.changes()))
    drive(store.close())


def test_a_full_disk_is_a_typed_error_and_the_store_works_when_space_returns(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    with store._connections.writing() as connection:
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages)

    def fill(connection):
        connection.execute(
            "INSERT INTO agent_memory_agents VALUES ('x', 0, 0, ?, 1)", ("m" * 10**6,)
        )

    with pytest.raises(StoreError, match="disk is full; nothing of this write was kept"):
        drive(store._write(fill))
    assert drive(store.seq("x")) == 0
    with store._connections.writing() as connection:
        connection.pragma("max_page_count", 10**6)
    drive(store._write(fill))
    assert drive(store.embedding_model("x")) == ("m" * 10**6, 1)
    drive(store.close())


def test_a_store_collected_in_its_own_writing_thread_does_not_hang(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    drive(store._write(lambda _connection: store._close()))
    store._writer._thread.join(10)
    assert not store._writer._thread.is_alive()
    opened_and_closed(tmp_path / "a.db")


def test_many_threads_may_open_one_new_file_at_once(tmp_path):
    path, errors = tmp_path / "a.db", []

    def work():
        try:
            opened_and_closed(path)
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_many_processes_may_open_one_new_file_at_once(tmp_path):
    code = "import sys; from mnemic.store import SqliteStore; SqliteStore(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "a.db")]
    started = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_reading_or_writing_after_a_fork_is_a_clear_error_and_not_a_hang(tmp_path):
    code = (
        "import os, sys\n"
        "from mnemic.store import SqliteStore\n"
        "from mnemic.waiting import drive\n"
        "store = SqliteStore(sys.argv[1])\n"
        "if os.fork():\n"
        "    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "refused = 0\n"
        "for call in (store._write(lambda connection: None), store.seq('a')):\n"
        "    try:\n"
        "        drive(call)\n"
        "    except Exception as error:\n"
        "        refused += 'before a fork' in str(error)\n"
        "os._exit(5 + refused)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "a.db")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 7
