"""What a PostgreSQL store keeps and raises when its server, its disk or its connections end."""

import threading
import time
from contextlib import contextmanager
from random import Random

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import OutcomeUnknownError, StoreError, StoreFullError, StoreUnavailableError
from mnemic.store import open_store
from mnemic.store.postgres import connections
from tests.store.contract import AGENT, added, counted, exported
from tests.support.entries import numbered
from tests.support.postgres_server import Server
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
