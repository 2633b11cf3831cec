"""A full disk of the server: of its data, which it survives, and of its log, which ends it."""

from contextlib import contextmanager
from random import Random

import pytest

from mnemic import Memory
from mnemic.errors import StoreError, StoreFullError, StoreUnavailableError
from mnemic.store.postgres import connections
from tests.support.postgres_server import Server
from tests.support.small_disks import small_disk

MEGA = 1 << 20


@pytest.fixture(autouse=True)
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
