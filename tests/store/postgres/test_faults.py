"""What a PostgreSQL store keeps when its server, its disk, its connections or its calls end."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from itertools import count
from random import Random

import psycopg
import pytest

from mnemic import Encryption, Memory
from mnemic.errors import (
    BusyThreadError,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from mnemic.store import open_store
from mnemic.store.postgres import connections, positions
from mnemic.store.postgres.positions import Positions
from mnemic.store.postgres.target import target_of
from mnemic.store.sql import sealing
from mnemic.store.values import LogPosition
from mnemic.threads.locks import OF_THREAD
from tests.store.contract import AGENT, added, counted, exported
from tests.support.entries import numbered
from tests.support.interrupts import interrupted_at
from tests.support.keys import KEY, OTHER_KEY
from tests.support.postgres_server import Server
from tests.support.processes import ENVIRONMENT
from tests.support.small_disks import small_disk


def test_every_acknowledged_write_is_there_after_the_server_was_killed(server):
    store = open_store(server.new_database())
    stored, unknown, failures, stopping = [], [], [], threading.Event()

    def write(first):
        number = first
        while not stopping.is_set():
            try:
                added(store, "a", [numbered(number)])
                stored.append(number)
            except OutcomeUnknownError:
                unknown.append(number)
            except StoreError:
                time.sleep(0.01)
            except BaseException as failure:
                failures.append(failure)
                raise
            number += 1

    writers = [threading.Thread(target=write, args=(1_000_000 * at,)) for at in range(1, 4)]
    for writer in writers:
        writer.start()
    for _ in range(2):
        before = len(stored)
        time.sleep(0.3)
        server.stop("immediate")
        server.start()
        patience = time.monotonic() + 30
        while len(stored) <= before + 10 and time.monotonic() < patience:
            time.sleep(0.05)
    stopping.set()
    for writer in writers:
        writer.join()
    assert not failures
    found = {one.entry.id.int for one in exported(store, AGENT, limit=1_000_000)}
    assert set(stored) <= found <= set(stored) | set(unknown)
    assert len(stored) > 20
    assert store.verify().ok
    assert store.position("a").seq == len(found)
    store.close()


def test_a_read_goes_on_after_its_connection_was_ended_by_the_server(server):
    url = server.new_database()
    store = open_store(url)
    added(store, "a", [numbered(1)])
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert counted(store, AGENT) == 1
    added(store, "a", [numbered(2)])
    assert counted(store, AGENT) == 2
    store.close()


def test_a_server_that_stays_away_is_a_typed_error(server):
    store = open_store(server.new_database())
    added(store, "a", [numbered(1)])
    server.stop("immediate")
    with pytest.raises(StoreUnavailableError):
        counted(store, AGENT)
    with pytest.raises(StoreUnavailableError):
        added(store, "a", [numbered(2)])
    server.start()
    assert counted(store, AGENT) == 1
    store.close()


MEGA = 1 << 20


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.delenv("MNEMIC_TEST_POSTGRES", raising=False)
    monkeypatch.setattr(connections, "PATIENCE", 2.0)


@contextmanager
def running(**options):
    server = Server(**options)
    try:
        yield server
    finally:
        server.close()


def written_until(memory, refusals):
    """Write until something is refused so often; return what is stored, and the errors."""
    stored, errors, randbytes = [], [], Random(1).randbytes  # noqa: S311 - no secret
    while len(errors) < refusals:
        try:
            stored.append(memory.add(randbytes(40_000).hex()).id)
        except StoreError as error:
            errors.append(error)
        assert len(stored) < 1_000
    return stored, errors


def ids(memory):
    return {entry.id for entry in memory.list(limit=1_000)}


@pytest.mark.usefixtures("short_patience")
def test_a_full_disk_is_a_typed_error_and_the_store_works_when_space_returns():
    with (
        small_disk(200 * MEGA) as disk,
        running(data=disk.folder / "data") as server,
        Memory(server.new_database(), embedder=None) as memory,
    ):
        memory.add("an apple")
        disk.fill(free=2 * MEGA)
        stored, errors = written_until(memory, refusals=5)
        assert len(stored) > 10
        assert {type(error) for error in errors} == {StoreFullError}
        assert "the disk is full; nothing of this write was kept" in str(errors[0])
        assert memory.search("apple", limit=1, search_type="keyword")[0].content == "an apple"
        assert memory.count() == 1 + len(stored)
        assert set(stored) < ids(memory)
        disk.empty()
        stored.append(memory.add("bread").id)
        assert set(stored) < ids(memory)
        assert memory.count() == 1 + len(stored)
        assert memory.verify().ok


@pytest.mark.usefixtures("short_patience")
def test_every_acknowledged_memory_is_there_after_a_server_ended_for_want_of_space_for_its_log():
    durable = {"fsync": "on", "synchronous_commit": "on", "restart_after_crash": "off"}
    with (
        small_disk(100 * MEGA) as disk,
        running(log=disk.folder / "log", **durable) as server,
    ):
        url = server.new_database()
        with Memory(url, embedder=None) as memory:
            memory.add("an apple")
            disk.fill(free=0)
            stored, errors = written_until(memory, refusals=2)
        assert len(stored) > 10
        assert isinstance(errors[-1], StoreUnavailableError)
        server.wait_until_ended()
        disk.empty()
        server.start()
        with Memory(url, embedder=None) as memory:
            found = ids(memory)
            assert set(stored) < found
            assert len(found) - len(stored) - 1 <= len(errors)
            assert memory.search("apple", limit=1, search_type="keyword")[0].content == "an apple"
            memory.add("bread")
            assert memory.verify().ok


PROGRAM = """
import faulthandler, sys
from mnemic import Memory
from tests.support.interrupts import PACKAGE, interrupted_at

# Whatever hangs, all threads are shown and this process ends: a timeout in Python may wait itself.
faulthandler.dump_traceback_later(200, exit=True)
sys.unraisablehook = lambda _: None  # an interrupt while a generator is closed goes no further
moment = int(sys.argv[2])
with Memory(sys.argv[1], embedder=None) as memory:
    memory.add("first")
    while True:
        before = memory.count()
        has_ended = interrupted_at(moment, lambda: memory.add("interrupted"), PACKAGE)
        memory.add("next")
        assert memory.count() - before in (1, 2)
        if has_ended:
            break
        moment += 31
    assert moment > 300
    assert memory.verify().ok
"""


@pytest.mark.parametrize("part", range(3))
def test_an_add_that_is_interrupted_at_any_moment_lets_the_next_one_through(database, part):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, database, str(10 * part)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-10_000:]


CALLS = {
    "advance": lambda asking: asking.advance({"agent": LogPosition(2, 0)}),
    "forget": lambda asking: asking.forget(["agent"]),
    "latest": lambda asking: asking.latest("agent", 60),
    "close": Positions.close,
}


@pytest.fixture
def nowhere(tmp_path):
    """Return a database whose server is unreachable."""
    return target_of(f"postgresql://mnemic@/none?host={tmp_path}")


def ends(call, asking):
    thread = threading.Thread(target=call, args=(asking,), daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_moment_of_a_call_leaves_positions_to_other_threads(name, nowhere):
    call = CALLS[name]
    for moment in count():
        asking = Positions(nowhere, lambda _: LogPosition(1, 0))
        if name != "latest":  # which starts the thread
            CALLS["latest"](asking)
        has_ended = interrupted_at(moment, lambda asking=asking: call(asking))
        if name != "close":
            assert ends(CALLS["advance"], asking)
            assert ends(CALLS["latest"], asking)
        assert ends(Positions.close, asking)
        if has_ended:
            break
    assert moment >= 4


def test_a_thread_whose_start_is_interrupted_at_any_moment_can_be_closed(nowhere):
    for moment in count():
        asking = Positions(nowhere, lambda _: LogPosition(1, 0))
        has_ended = interrupted_at(moment, lambda asking=asking: CALLS["latest"](asking))
        asking.close()
        if has_ended:
            break
    assert moment >= 30


def test_a_search_in_the_midst_of_a_question_of_its_own_thread_is_refused_at_once(
    database, monkeypatch
):
    """As that of a signal handler, which the answer would wait for."""
    await_socket, refused = positions._await_socket, []

    def interrupted(*args, **options):
        if threading.current_thread() is threading.main_thread():
            with pytest.raises(BusyThreadError):
                memory.search("first")
            refused.append(1)
        await_socket(*args, **options)

    with Memory(database, embedder=None) as memory:
        memory.add("first")
        memory.search("first")
        monkeypatch.setattr(positions, "_await_socket", interrupted)
        assert memory.search("first").stale_since is None
    assert refused


def test_a_call_in_the_midst_of_a_read_of_keys_is_refused_at_once(database, monkeypatch):
    """As that of a signal handler, which would wait for the one connection that reads them."""
    stored_keys, refused = sealing.stored_keys, []

    def interrupted(*args):
        if OF_THREAD.settling.is_held_here():  # other reads of keys leave that connection alone
            with pytest.raises(BusyThreadError):
                memory.rotate_key(OTHER_KEY)
            refused.append(1)
        return stored_keys(*args)

    with Memory(database, embedder=None, encryption=Encryption(KEY)) as memory:
        memory.add("first", sensitive=True)
        monkeypatch.setattr(sealing, "stored_keys", interrupted)
        memory.rotate_key(OTHER_KEY)
        monkeypatch.undo()
        assert refused
        assert [entry.content for entry in memory.list()] == ["first"]
