import asyncio
import errno
import os
import stat
import subprocess
import sys
import threading

import apsw
import pytest

from mnemic import new_files
from mnemic.errors import StoreFileError, StoreFullError
from mnemic.store.sqlite import maintenance
from mnemic.store.sqlite.store import SqliteStore
from tests.support.failing_files import fail_to_complete
from tests.support.paths import names_in


def put(store, agent, seq):
    """Write one number twice, so that half a transaction would show."""

    def job(connection):
        for name in (agent, f"{agent}-again"):
            connection.execute(
                "INSERT INTO agent_memory_agents (agent_id, seq) VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET seq = excluded.seq",
                (name, seq),
            )

    store._submit(None, job).result()


def seqs(path):
    """Return all agents' numbers as mnemic itself reads them."""
    store = SqliteStore(path)
    with store._connections.reading() as connection:
        found = dict(connection.execute("SELECT agent_id, seq FROM agent_memory_agents"))
        assert connection.pragma("integrity_check") == "ok"
    store.close()
    return found


@pytest.fixture(params=["file", ":memory:"])
def store(request, tmp_path):
    opened = SqliteStore(":memory:" if request.param == ":memory:" else tmp_path / "a.db")
    yield opened
    opened.close()


def test_a_backup_has_everything_and_is_readable_by_its_owner_alone(store, tmp_path):
    put(store, "a", 7)
    folder = tmp_path / "copies"
    folder.mkdir()
    store.backup(folder / "b.db")
    assert names_in(folder) == ["b.db"]
    assert stat.S_IMODE((folder / "b.db").stat().st_mode) == 0o600
    put(store, "a", 8)
    assert seqs(folder / "b.db") == {"a": 7, "a-again": 7}


def test_a_backup_is_of_one_moment_and_holds_nobody_up(tmp_path):
    store, ended, rounds = SqliteStore(tmp_path / "a.db"), threading.Event(), []
    rows = [(number, os.urandom(3000)) for number in range(5000)]
    much = "INSERT INTO agent_memory_changes VALUES ('much', ?, 1, ?, 'add', NULL, 0)"
    store._submit(None, lambda on: on.executemany(much, rows)).result()

    def write():
        while not ended.is_set():
            rounds.append(len(rounds))
            put(store, "a", len(rounds))

    put(store, "a", 0)
    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    for number in range(3):
        before = len(rounds)
        store.backup(tmp_path / f"{number}.db")
        counts.append(len(rounds) - before)
    ended.set()
    writer.join()
    store.close()
    assert min(counts) > 1, "nothing was written while the copies were made"
    seen = [seqs(tmp_path / f"{number}.db") for number in range(3)]
    assert all(found["a"] == found["a-again"] for found in seen)
    assert seen[0]["a"] <= seen[1]["a"] <= seen[2]["a"]


def test_an_event_loop_goes_on_while_a_backup_is_made(tmp_path, monkeypatch):
    store, reached, go_on = SqliteStore(tmp_path / "a.db"), threading.Event(), threading.Event()
    copy = maintenance._copy

    def slowly(*arguments):
        reached.set()
        assert go_on.wait(60)
        copy(*arguments)

    monkeypatch.setattr(maintenance, "_copy", slowly)

    async def main():
        made = asyncio.create_task(asyncio.to_thread(store.backup, tmp_path / "b.db"))
        await asyncio.to_thread(reached.wait, 60)
        store.position("a")
        go_on.set()
        await made
        store.close()

    asyncio.run(main())
    assert seqs(tmp_path / "b.db") == {}


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_that_is_there_is_overwritten(store, tmp_path, kind):
    target = tmp_path / "b.db"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "missing")
    before = names_in(tmp_path)
    with pytest.raises(StoreFileError, match="something is there already; choose another path"):
        store.backup(target)
    assert names_in(tmp_path) == before
    assert kind != "file" or target.read_text() == "mine"


def test_what_appears_while_the_copy_is_made_is_not_overwritten(store, tmp_path, monkeypatch):
    target, copy = tmp_path / "b.db", maintenance._copy

    def overtaken(*arguments):
        copy(*arguments)
        target.write_text("mine")

    monkeypatch.setattr(maintenance, "_copy", overtaken)
    with pytest.raises(StoreFileError, match="something is there already"):
        store.backup(target)
    assert target.read_text() == "mine"
    assert [name for name in names_in(tmp_path) if name.endswith(".part")] == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing/b.db", "its directory does not exist; create it first"),
        (":memory:", "a backup needs a file to go to"),
        ("postgresql://host/db", "are supported"),
        ("a\0b", "not a path in UTF-8"),
        ("\udcff\ud800.db", "not a path in UTF-8"),
    ],
)
def test_a_target_that_cannot_be_used_says_why(store, tmp_path, monkeypatch, target, message):
    monkeypatch.chdir(tmp_path)
    before = names_in(tmp_path)
    with pytest.raises(StoreFileError, match=message):
        store.backup(target)
    assert names_in(tmp_path) == before


@pytest.mark.skipif(sys.platform != "linux", reason="a limit stands in for a full disk")
def test_a_full_disk_is_a_typed_error_and_leaves_nothing(tmp_path):
    code = (
        "import resource, signal, sys\n"
        "from mnemic.errors import StoreFullError\n"
        "from mnemic.store.sqlite.store import SqliteStore\n"
        "store = SqliteStore(':memory:')\n"
        "much = 'CREATE TABLE much AS SELECT randomblob(3000000) AS x'\n"
        "store._submit(None, lambda on: on.execute(much)).result()\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    store.backup(sys.argv[1])\n"
        "except StoreFullError:\n"
        "    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "b.db")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 7
    assert names_in(tmp_path) == []


def test_a_flush_that_fails_is_a_typed_error_and_leaves_nothing(store, tmp_path, monkeypatch):
    before = names_in(tmp_path)
    fail_to_complete(monkeypatch, errno.EIO)
    with pytest.raises(StoreFullError, match="full or failing"):
        store.backup(tmp_path / "b.db")
    assert names_in(tmp_path) == before


def test_the_folder_is_flushed_once_the_copy_is_named(store, tmp_path, monkeypatch):
    flushed, flush = [], new_files.sync_folder

    def recorded(folder):
        flushed.append((folder, (tmp_path / "b.db").exists()))
        flush(folder)

    monkeypatch.setattr(new_files, "sync_folder", recorded)
    store.backup(tmp_path / "b.db")
    assert flushed == [(str(tmp_path), True)]


def test_a_store_closed_during_a_backup_leaves_no_log(tmp_path, monkeypatch):
    store, copy = SqliteStore(tmp_path / "a.db"), apsw.Connection.execute
    put(store, "a", 7)

    class Closing:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, *arguments):
            store.close()
            return copy(self.connection, *arguments)

    lease = store._connections.copying
    monkeypatch.setattr(store._connections, "copying", lambda: Lent(lease(), Closing))
    store.backup(tmp_path / "b.db")
    assert names_in(tmp_path) == ["a.db", "b.db"]
    assert seqs(tmp_path / "b.db") == {"a": 7, "a-again": 7}


class Lent:
    def __init__(self, context, wrapped):
        self.context, self.wrapped = context, wrapped

    def __enter__(self):
        return self.wrapped(self.context.__enter__())

    def __exit__(self, *error):
        return self.context.__exit__(*error)
