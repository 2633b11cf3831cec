"""Locks that another SQLite library in the same process can neither drop nor pass over."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import apsw
import pytest

from mnemic._core import lock_calls
from tests.support.doors import opened
from tests.support.paths import names_in
from tests.support.processes import ENVIRONMENT

pytestmark = [
    pytest.mark.skipif(not lock_calls(), reason="needs locks of open file descriptions (Linux)"),
    pytest.mark.skipif(
        sqlite3.sqlite_version == apsw.sqlite_lib_version(),
        reason="needs a second SQLite library in the process",
    ),
]


def run(program, *arguments, **options):
    """Run a program in a process of its own; return how it ended, and what it printed."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)]
    return subprocess.run(
        [*command, *map(str, arguments)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def read_with_another_library(path):
    other = sqlite3.connect(path)
    other.execute("SELECT count(*) FROM agent_memory_entries").fetchall()
    other.close()


def is_locked_for_others(path):
    """Return whether another process finds that somebody writes."""
    program = """
        import sqlite3, sys
        other = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            print(error)
    """
    return run(program, path).stdout.strip() == "database is locked"


def test_what_is_written_after_another_library_closed_the_file_outlives_a_kill(tmp_path):
    program = """
        import os, sqlite3, sys
        from mnemic.memory import Memory
        from tests.support.embedders import WordEmbedder

        memory = Memory(sys.argv[1], embedder=WordEmbedder())
        for number in range(3):
            memory.add(f"before {number}")
            other = sqlite3.connect(sys.argv[1])
            other.execute("SELECT count(*) FROM agent_memory_entries").fetchall()
            other.close()
            memory.add(f"after {number}")
        os._exit(1)
    """
    path = tmp_path / "a.db"
    assert run(program, path).returncode == 1
    with opened(path) as memory:
        assert memory.count() == 6


def test_another_library_in_the_process_cannot_take_the_log_away(tmp_path):
    path, log = tmp_path / "a.db", tmp_path / "a.db-wal"
    with opened(path) as memory:
        memory.add("a")
        before = log.stat().st_ino
        read_with_another_library(path)
        assert log.stat().st_ino == before
        memory.add("b")
        assert log.stat().st_ino == before
    assert names_in(tmp_path) == ["a.db"]


def test_nobody_else_can_write_while_a_write_goes_on_though_another_library_closed_the_file(
    tmp_path,
):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        with memory._repository._store._connections._held() as connection:
            connection.execute("BEGIN IMMEDIATE")
            read_with_another_library(path)
            assert is_locked_for_others(path)
            connection.execute("ROLLBACK")
        assert not is_locked_for_others(path)


def test_another_library_in_the_process_cannot_write_while_a_write_goes_on(tmp_path):
    path = tmp_path / "a.db"
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    with opened(path) as memory:
        with memory._repository._store._connections._held() as connection:
            connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        other.close()


def test_what_a_reader_sees_is_kept_though_another_library_closed_the_file(tmp_path):
    erasing = """
        import sys
        from mnemic.memory import Memory
        from tests.support.embedders import WordEmbedder

        with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
            print(memory.delete(sys.argv[2], permanent=True).erased)
    """
    path = tmp_path / "a.db"
    with opened(path) as memory:
        added = memory.add("a secret")
        with memory._repository._store._connections.reading() as connection:
            connection.execute("BEGIN")
            content = "SELECT content FROM agent_memory_entries"
            assert connection.execute(content).get == "a secret"
            read_with_another_library(path)
            assert run(erasing, path, added.id).stdout.strip() == "False"
            assert connection.execute(content).get == "a secret"
            connection.execute("COMMIT")


def test_where_locks_cannot_be_kept_a_log_that_was_taken_away_is_told_at_the_next_commit(tmp_path):
    program = """
        import sqlite3, sys
        from mnemic.errors import StoreReplacedError
        from mnemic.memory import Memory
        from mnemic.store.sqlite import file_locks
        from tests.support.embedders import WordEmbedder

        file_locks.lock_calls = lambda: []  # as on another system
        memory = Memory(sys.argv[1], embedder=WordEmbedder())
        memory.add("before")
        other = sqlite3.connect(sys.argv[1])
        other.execute("SELECT count(*) FROM agent_memory_entries").fetchall()
        other.close()
        try:
            memory.add("never acknowledged")
        except StoreReplacedError as error:
            print("a.db-wal" in str(error))
        memory.close()
    """
    path = tmp_path / "a.db"
    assert run(program, path).stdout.strip() == "True"
    with opened(path) as memory:
        assert [entry.content for entry in memory.list().entries] == ["before"]


def test_several_memories_and_readers_of_one_file_leave_neither_log_nor_descriptors(tmp_path):
    path = tmp_path / "a.db"
    opened(path).close()
    before = len(names_in("/proc/self/fd"))
    for first_is_closed_first in (False, True):
        reader = opened(path, read_only=True)
        first, second = opened(path), opened(path)
        first.add("a")
        second.add("b")
        read_with_another_library(path)
        assert reader.count() == first.count()
        for memory in (first, second) if first_is_closed_first else (second, first):
            memory.close()
        reader.close()
        assert len(names_in("/proc/self/fd")) == before
    opened(path).close()
    assert names_in(tmp_path) == ["a.db"]


def test_a_child_that_lives_on_holds_no_lock_of_a_parent_that_was_killed(tmp_path):
    program = """
        import os, sys, time
        from mnemic.memory import Memory
        from tests.support.embedders import WordEmbedder

        memory = Memory(sys.argv[1], embedder=WordEmbedder())
        memory.add("from the parent")
        with memory._repository._store._connections._held() as connection:
            connection.execute("BEGIN IMMEDIATE")
            child = os.fork()
            if child == 0:
                print(os.getpid(), flush=True)
                os.close(1)
                time.sleep(60)
                os._exit(0)
            time.sleep(60)
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)]
    path = tmp_path / "a.db"
    with subprocess.Popen([*command, str(path)], env=ENVIRONMENT, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        try:
            assert is_locked_for_others(path)
            parent.kill()
            parent.wait()
            assert not is_locked_for_others(path)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_child_that_lets_go_of_what_it_inherited_takes_nothing_from_its_parent(tmp_path):
    program = """
        import gc, os, sys
        from mnemic.memory import Memory
        from tests.support.embedders import WordEmbedder

        memory = Memory(sys.argv[1], embedder=WordEmbedder())
        memory.add("before")
        child = os.fork()
        if child == 0:
            del memory
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        memory.add("after")
        os._exit(1)
    """
    path = tmp_path / "a.db"
    assert run(program, path).returncode == 1
    with opened(path) as memory:
        assert memory.count() == 2
