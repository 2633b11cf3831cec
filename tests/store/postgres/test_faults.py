"""What a PostgreSQL store keeps and raises when its server or its connections end."""

import threading
import time

import psycopg
import pytest

from mnemic.errors import OutcomeUnknownError, StoreError, StoreUnavailableError
from mnemic.store import open_store
from tests.store.contract import AGENT, added, counted, exported
from tests.support.entries import numbered


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
