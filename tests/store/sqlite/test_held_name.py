"""A file that others move, replace or reach by another name while it is open."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from functools import partial

import pytest

from mnemic._core import lock_calls
from mnemic.errors import MnemicError, StoreFileError, StoreReplacedError
from mnemic.memory import Memory
from mnemic.store.sqlite import file_locks
from tests.support.doors import opened
from tests.support.paths import names_in
from tests.support.processes import ENVIRONMENT
from tests.support.threads import run_together

pytestmark = pytest.mark.skipif(not lock_calls(), reason="needs locks of open file descriptions")

CHILD = """
import sys
from mnemic.errors import MnemicError
from mnemic.memory import Memory
for line in sys.stdin:
    verb, _, rest = line.strip().partition(" ")
    try:
        if verb == "open":
            memory = Memory(rest, embedder=None)
        elif verb == "add":
            memory.add(rest)
        else:
            memory.close()
        print("done", flush=True)
    except (MnemicError, NameError) as error:
        print(type(error).__name__, flush=True)
"""


class Process:
    def __init__(self, name):
        self.name = name
        command = [sys.executable, "-c", CHILD]
        self.started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )

    def run(self, verb, what=""):
        self.started.stdin.write(f"{verb} {what}\n")
        self.started.stdin.flush()
        return self.started.stdout.readline().strip()


class Thread:
    """The same calls in this process."""

    def __init__(self, name):
        self.name = name

    def run(self, verb, what=""):
        try:
            if verb == "open":
                self.memory = Memory(what, embedder=None)
            else:
                getattr(self.memory, verb)(*([what] if what else []))
        except (MnemicError, AttributeError) as error:
            return type(error).__name__
        return "done"


@pytest.fixture
def names(tmp_path):
    """Two names of one file."""
    names = {"A": tmp_path / "agent.db", "B": tmp_path / "other" / "agent.db"}
    names["B"].parent.mkdir()
    Memory(names["A"], embedder=None).close()
    os.link(names["A"], names["B"])
    return names


STEPS = [
    ["A open", "A add one", "B open", "B add two", "A add three", "A close", "B close"],
    ["A open", "B open", "A add one", "B add two", "A add three", "A close", "B close"],
    ["A open", "B open", "B add two", "A add one", "B close", "A close"],
    ["A open", "A add one", "A close", "B open", "B add two", "A open", "A add three", "B close"],
    ["A open", "A add one", "B open", "A close", "B open", "B add two", "B close"],
    ["B open", "B add two", "A open", "B close", "A open", "A add one", "A close"],
]


@pytest.mark.parametrize("kind", [Process, Thread])
@pytest.mark.parametrize("steps", STEPS)
def test_nothing_that_was_stored_under_two_names_is_lost(names, kind, steps):
    users, stored = {name: kind(name) for name in names}, []
    for step in steps:
        who, verb, *what = step.split()
        answer = users[who].run(verb, str(names[who]) if verb == "open" else "".join(what))
        if verb == "add" and answer == "done":
            stored += what
    for user in users.values():
        user.run("close")
        if kind is Process:
            user.started.communicate(timeout=60)
    assert "one" in stored or "two" in stored
    for name in names.values():
        with Memory(name, embedder=None) as memory:
            assert {entry.content for entry in memory.list()} == set(stored)


@pytest.mark.parametrize("first_only_reads", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_second_name_is_refused_while_the_first_is_open(names, first_only_reads, read_only):
    with Memory(names["A"], embedder=None, read_only=first_only_reads) as memory:
        with pytest.raises(StoreFileError, match="open under another name"):
            Memory(names["B"], embedder=None, read_only=read_only)
        Memory(names["A"], embedder=None).close()
        if not first_only_reads:
            memory.add("kept")
    assert names_in(names["A"].parent) == ["agent.db", "other"]
    with Memory(names["B"], embedder=None, read_only=read_only) as memory:
        assert memory.count() == (0 if first_only_reads else 1)


def test_of_two_names_that_are_opened_at_once_at_most_one_is_used(names):
    for _ in range(20):
        barrier, opened = threading.Barrier(2), []

        def work(path, barrier=barrier, opened=opened):
            barrier.wait(60)
            try:
                opened.append(Memory(path, embedder=None))
            except StoreFileError:
                return

        run_together(*[partial(work, path) for path in names.values()])
        assert len(opened) <= 1
        for memory in opened:
            memory.close()


def test_what_was_killed_under_one_name_is_not_opened_under_the_other(names):
    user = Process("A")
    user.run("open", str(names["A"]))
    assert user.run("add", "one") == "done"
    user.started.kill()
    user.started.communicate()
    with pytest.raises(StoreFileError, match="incomplete"):
        Memory(names["B"], embedder=None)
    with Memory(names["A"], embedder=None) as memory:
        assert memory.count() == 1


def test_an_empty_log_that_was_killed_under_one_name_does_not_stand_for_that_of_the_other(names):
    for name, verbs in (("B", ["open"]), ("A", ["open", "add"])):
        user = Process(name)
        for verb in verbs:
            assert user.run(verb, str(names[name]) if verb == "open" else "one") == "done"
        user.started.kill()
        user.started.communicate()
    left = names["B"].with_name("agent.db-wal")
    assert left.read_bytes() == b""
    for read_only in (True, False):
        with pytest.raises(StoreFileError, match="incomplete"):
            Memory(names["B"], embedder=None, read_only=read_only)
    with Memory(names["A"], embedder=None) as memory:
        assert memory.count() == 1
    with Memory(names["B"], embedder=None) as memory:
        assert memory.count() == 1


def test_a_log_that_another_program_uses_under_another_name_is_missed(names, monkeypatch):
    monkeypatch.setattr(file_locks, "_place", lambda _: file_locks._START + 1)  # it holds no name
    with Memory(names["A"], embedder=None) as memory:
        memory.add("kept")
        with pytest.raises(StoreFileError, match="the log that it needs does not lie beside it"):
            Memory(names["B"], embedder=None)
        memory.add("kept too")
    with Memory(names["B"], embedder=None) as memory:
        assert memory.count() == 2


def test_a_mounted_file_is_not_read_while_its_other_name_is_open(names, tmp_path):
    here = tmp_path / "mounted.db"
    here.touch()
    command = ["mount", "--bind", names["A"], here]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("this user may not mount a file")
    try:
        with (
            Memory(names["A"], embedder=None),
            pytest.raises(StoreFileError, match="open under another name"),
        ):
            Memory(here, embedder=None, read_only=True)
        Memory(here, embedder=None, read_only=True).close()
    finally:
        subprocess.run(["umount", here], check=True)  # noqa: S607


def test_a_link_of_a_name_and_other_ways_to_it_are_that_name(names, tmp_path, monkeypatch):
    (tmp_path / "link.db").symlink_to(names["A"])
    (tmp_path / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(names["B"].parent)
    ways = [names["A"], tmp_path / "link.db", tmp_path / "folder" / "agent.db", "../agent.db"]
    memories = [Memory(way, embedder=None) for way in ways]
    for at, memory in enumerate(memories):
        memory.add(f"note {at}")
    assert [memory.count() for memory in memories] == [4] * 4
    for memory in memories:
        memory.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_keeps_no_name(names):
    memory = Memory(names["A"], embedder=None)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        theirs.send(b".")
        theirs.recv(1)  # until the parent is done
        os._exit(0)
    theirs.close()
    ours.recv(1)  # now the child has released what it inherited
    memory.close()
    try:
        Memory(names["B"], embedder=None).close()
    finally:
        ours.close()
        os.waitpid(child, 0)


def test_a_file_that_cannot_be_used_leaves_no_descriptor(names, tmp_path):
    (tmp_path / "theirs.db").write_bytes(b"not a database " * 100)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
    with Memory(names["A"], embedder=None):
        for _ in range(3):
            for path in (names["B"], tmp_path / "theirs.db"):
                with pytest.raises(StoreFileError):
                    Memory(path, embedder=None)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_a_system_whose_locks_do_not_tell_refuses_every_second_name(names, monkeypatch):
    monkeypatch.setattr(file_locks, "lock_calls", list)
    with pytest.raises(StoreFileError, match="another name"):
        Memory(names["A"], embedder=None)
    names["B"].unlink()
    Memory(names["A"], embedder=None).close()


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_put_in_the_place_of_one_that_is_open_says_so(tmp_path, written, read_only):
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    with Memory(other, embedder=None) as memory:
        memory.add("of the other")
    first = Memory(path, embedder=None)
    if written:
        first.add("of the first")
    other.replace(path)
    log = path.with_name("a.db-wal").read_bytes()
    with pytest.raises(StoreFileError, match=r"is still open.*close that one first"):
        Memory(path, embedder=None, read_only=read_only)
    assert path.with_name("a.db-wal").read_bytes() == log
    first.close()
    with Memory(path, embedder=None) as memory:
        assert [entry.content for entry in memory.list()] == ["of the other"]


ADVICE = "put the file back together with its log"


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    other = path.with_name("other.db")
    with opened(other) as memory:
        memory.add("of another memory")
    other.replace(path)


def log_deleted(path):
    path.with_name("a.db-wal").unlink()


def log_replaced(path):
    log_deleted(path)
    path.with_name("a.db-wal").write_bytes(b"of another file")


CHANGES = [deleted, moved, replaced, log_deleted, log_replaced]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if "-shm" not in path.name}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_replaced_while_open_is_never_written(tmp_path, change):
    path = tmp_path / "a.db"
    memory = opened(path)
    kept = memory.add("written before")
    change(path)
    before = contents(tmp_path)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.add("never written")
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.delete(kept.id, permanent=True)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.erase_pending()
    memory.close()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("change", [deleted, moved, replaced])
@pytest.mark.parametrize("read_only", [False, True])
def test_who_reads_a_file_that_was_replaced_is_told(tmp_path, change, read_only):
    path = tmp_path / "a.db"
    with opened(path) as writer:
        writer.add("written before")
    memory = opened(path, read_only=read_only)
    assert memory.count() == 1
    change(path)
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.search("written")
    with pytest.raises(StoreReplacedError, match=ADVICE):
        memory.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    memory.close()


def test_what_was_written_to_a_file_that_was_moved_is_there_when_it_is_back(tmp_path):
    path = tmp_path / "a.db"
    memory = opened(path)
    memory.add("written before")
    moved(path)
    with pytest.raises(StoreReplacedError):
        memory.add("never written")
    memory.close()
    (tmp_path / "elsewhere.db").rename(path)
    with opened(path) as again:
        assert [hit.content for hit in again.search("written")] == ["written before"]
    assert names_in(tmp_path) == ["a.db"]


def test_a_memory_whose_file_is_back_goes_on(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        moved(path)
        with pytest.raises(StoreReplacedError):
            memory.add("never written")
        (tmp_path / "elsewhere.db").rename(path)
        memory.add("written")
        assert memory.count() == 1


def test_a_second_name_for_the_file_changes_nothing(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        os.link(path, tmp_path / "second.db")
        memory.add("written")
        assert memory.count() == 1
