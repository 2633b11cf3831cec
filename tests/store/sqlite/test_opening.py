import os
import subprocess
import sys
import textwrap

import apsw
import pytest

from mnemic.errors import ReadOnlyError, SchemaVersionError, StoreFileError
from mnemic.store.operations import RowsSince
from mnemic.store.sqlite.opening import migrate
from mnemic.store.sqlite.store import SqliteStore
from tests.support.paths import names_in
from tests.support.processes import ENVIRONMENT

is_root = hasattr(os, "geteuid") and os.geteuid() == 0


def put(store, seq):
    sql = (
        "INSERT INTO agent_memory_agents (agent_id, seq) VALUES ('a', ?) "
        "ON CONFLICT DO UPDATE SET seq = excluded.seq"
    )
    store._submit(None, lambda connection: connection.execute(sql, (seq,))).result()


def seq(store):
    with store._connections.reading() as connection:
        return connection.execute("SELECT seq FROM agent_memory_agents").get


@pytest.fixture
def path(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    put(store, 5)
    store.close()
    return tmp_path / "a.db"


def test_reading_changes_nothing_of_the_file_and_leaves_nothing_beside_it(path):
    before = path.read_bytes(), path.stat().st_mtime_ns
    store = SqliteStore(path, read_only=True)
    assert seq(store) == 5
    assert store.read(RowsSince("a", ("m", 2), None)).records == []
    store.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert names_in(path.parent) == ["a.db"]


def test_what_another_program_was_killed_in_is_read_once_it_was_opened_for_writing(path):
    program = (
        "import os, sqlite3, sys; on = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "on.execute('PRAGMA journal_mode=DELETE'); on.execute('PRAGMA cache_size=1'); "
        "on.execute('BEGIN'); on.execute('CREATE TABLE x AS SELECT zeroblob(1000000)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, path], check=True)
    with pytest.raises(StoreFileError, match="open the file once without read_only"):
        SqliteStore(path, read_only=True)
    SqliteStore(path).close()
    store = SqliteStore(path, read_only=True)
    assert seq(store) == 5
    store.close()


def test_writing_is_an_error_at_once_and_changes_nothing(path):
    store = SqliteStore(path, read_only=True)
    deletion = lambda on: on.execute("DELETE FROM agent_memory_agents")  # noqa: E731
    for call in (lambda: store._submit(None, deletion), store.erase):
        with pytest.raises(ReadOnlyError, match="opened for reading alone; open it for writing"):
            call()
    with store._connections.reading() as connection, pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM agent_memory_agents")
    assert seq(store) == 5
    store.close()


def test_what_others_write_is_seen(path):
    reader, writer = SqliteStore(path, read_only=True), SqliteStore(path)
    for number in range(10):
        put(writer, number)
        assert seq(reader) == number
    writer.close()
    assert seq(reader) == 9
    writer = SqliteStore(path)
    put(writer, 10)
    assert seq(reader) == 10
    reader.close()
    writer.close()
    assert names_in(path.parent) == ["a.db"]


def test_a_log_with_something_in_it_is_read_and_left_as_it_is(path):
    writer = SqliteStore(path)
    put(writer, 6)
    copy = path.parent / "copy"
    copy.mkdir()
    for name in ("a.db", "a.db-wal"):
        (copy / name).write_bytes((path.parent / name).read_bytes())
    writer.close()
    before = [(copy / name).read_bytes() for name in ("a.db", "a.db-wal")]
    store = SqliteStore(copy / "a.db", read_only=True)
    assert seq(store) == 6
    store.close()
    assert [(copy / name).read_bytes() for name in ("a.db", "a.db-wal")] == before
    opened = SqliteStore(copy / "a.db")
    assert seq(opened) == 6
    opened.close()


def test_a_backup_is_made_and_read_without_writing(path):
    store = SqliteStore(path, read_only=True)
    store.backup(path.parent / "b.db")
    store.close()
    copy = SqliteStore(path.parent / "b.db", read_only=True)
    assert seq(copy) == 5
    copy.close()
    assert names_in(path.parent) == ["a.db", "b.db"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.db", "it does not exist"),
        ("missing/a.db", "it does not exist"),
        (":memory:", "nothing to read"),
        ("sqlite:///:memory:", "nothing to read"),
    ],
)
def test_there_must_be_something_to_read(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreFileError, match=message):
        SqliteStore(name, read_only=True)
    assert names_in(tmp_path) == []


def test_an_older_file_is_refused_with_what_to_do_and_left_as_it_is(path):
    migrate(str(path), 1)
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match=r"version 1 is older .* open it once for writing"):
        SqliteStore(path, read_only=True)
    assert path.read_bytes() == before
    assert names_in(path.parent) == ["a.db"]


CHILD = (
    "import os, sys, urllib.parse\n"  # before the rights to read them are gone
    "from mnemic.store.sqlite.store import SqliteStore\n"
    "os.setgroups([])\n"
    "os.setgid(65534)\n"
    "os.setuid(65534)\n"
    "def seq(store):\n"
    "    with store._connections.reading() as connection:\n"
    "        return connection.execute('SELECT seq FROM agent_memory_agents').get\n"
    "store = SqliteStore(sys.argv[1], read_only=True)\n"
    "print(seq(store), flush=True)\n"
    "for line in sys.stdin:\n"
    "    print(seq(store), flush=True)\n"
    "store.close()\n"
)


@pytest.mark.skipif(not is_root, reason="only root may become another user")
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_file_that_may_not_be_written_is_read_and_writers_that_come_are_seen(path, mode):
    for folder in path.parents:
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o711)
    path.parent.chmod(mode)
    path.chmod(0o644)
    command = [sys.executable, "-c", CHILD, str(path)]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def asked():
        child.stdin.write("\n")
        child.stdin.flush()
        return child.stdout.readline()

    assert child.stdout.readline() == "5\n"
    assert asked() == "5\n"
    assert names_in(path.parent) == ["a.db"]  # a log of another user's would keep its owner out
    writer = SqliteStore(path)
    put(writer, 6)
    assert asked() == "6\n"
    put(writer, 7)
    assert asked() == "7\n"
    writer.close()
    assert asked() == "7\n"
    writer = SqliteStore(path)
    put(writer, 8)
    assert asked() == "8\n"
    child.communicate(timeout=60)
    assert child.returncode == 0
    writer.close()
    assert names_in(path.parent) == ["a.db"]


def test_a_memory_needs_no_name_that_windows_lacks(tmp_path):
    program = """
        import asyncio, concurrent.futures, os, sys
        import apsw, msgspec, numpy  # what is not mnemic's has its own ways on Windows

        sys.platform = "win32"
        sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios")))
        flags = "RDONLY WRONLY RDWR CREAT EXCL TRUNC APPEND".split()
        lacking = [name for name in dir(os) if name[:2] == "O_" and name[2:] not in flags]
        lacking += "fork register_at_fork pread pwrite preadv pwritev posix_fallocate".split()
        lacking += "fchown getuid geteuid getgid mkfifo statvfs fstatvfs".split()
        lacking += "sched_getaffinity sched_yield sysconf uname fdatasync".split()
        for name in lacking:
            delattr(os, name)
        for function in (os.open, os.unlink, os.stat):
            os.supports_dir_fd.discard(function)

        from mnemic import _core

        _core.lock_calls = list
        from mnemic import Memory

        with Memory(sys.argv[1], embedder=None) as memory:
            memory.add("Tea, never coffee")
            kept = memory.add("Trains, not planes")
            memory.update(kept.id, content="Trains, never planes")
            print(memory.search("coffee")[0].content)
        with Memory(sys.argv[1], embedder=None, read_only=True) as memory:
            print(memory.search("planes")[0].content)
        with Memory(sys.argv[1], embedder=None) as memory:
            memory.delete(kept.id, permanent=True)
            print(len(memory.list().entries))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), tmp_path / "a.db"]
    shown = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert shown.stderr == ""
    assert shown.stdout.splitlines() == ["Tea, never coffee", "Trains, never planes", "1"]
