import threading
import time

import pytest

from mnemic.errors import StoreClosedError
from mnemic.store.connections import Connections
from mnemic.store.writer import Writer


@pytest.fixture
def connections(tmp_path):
    opened = Connections(str(tmp_path / "a.db"))
    opened._writer.execute("CREATE TABLE t (x INTEGER UNIQUE)")
    yield opened
    opened.close()


@pytest.fixture
def writer(connections):
    started = Writer(connections)
    yield started
    started.close()


def insert(number):
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (number,)) and number


def stored(connections):
    with connections.reading() as connection:
        return [number for (number,) in connection.execute("SELECT x FROM t ORDER BY x")]


def held(writer):
    """Keep the writer busy until the returned event is set, so that jobs gather."""
    release, started = threading.Event(), threading.Event()

    def wait(_connection):
        started.set()
        release.wait(10)

    future = writer.submit(wait)
    assert started.wait(10)
    return release, future


def test_jobs_that_wait_together_share_one_transaction(writer, connections):
    commits = []
    connections._writer.set_commit_hook(lambda: bool(commits.append(1)))
    release, first = held(writer)
    futures = [writer.submit(insert(number)) for number in range(100)]
    release.set()
    assert [future.result(10) for future in futures] == list(range(100))
    first.result(10)
    assert len(commits) <= 2
    assert stored(connections) == list(range(100))


def test_a_job_that_fails_is_undone_alone(writer, connections):
    def half(connection):
        connection.execute("INSERT INTO t VALUES (50)")
        raise ZeroDivisionError

    release, _ = held(writer)
    before, failing, after = (writer.submit(job) for job in (insert(1), half, insert(2)))
    release.set()
    with pytest.raises(ZeroDivisionError):
        failing.result(10)
    assert (before.result(10), after.result(10)) == (1, 2)
    assert stored(connections) == [1, 2]


def test_a_result_is_not_there_before_its_commit(writer, connections):
    seen = []
    future = writer.submit(insert(1))
    future.add_done_callback(lambda _: seen.append(stored(connections)))
    future.result(10)
    while not seen:
        time.sleep(0.001)
    assert seen == [[1]]


def test_a_commit_that_fails_fails_its_whole_group_and_nothing_is_kept(writer, connections):
    connections._writer.set_commit_hook(lambda: True)
    release, _ = held(writer)
    futures = [writer.submit(insert(number)) for number in range(3)]
    release.set()
    for future in futures:
        assert future.exception(10) is not None
    connections._writer.set_commit_hook(None)
    assert writer.submit(insert(9)).result(10) == 9
    assert stored(connections) == [9]


def test_a_job_that_was_cancelled_in_time_does_not_run(writer, connections):
    release, _ = held(writer)
    cancelled = writer.submit(insert(1))
    assert cancelled.cancel()
    kept = writer.submit(insert(2))
    release.set()
    kept.result(10)
    assert stored(connections) == [2]


def test_closing_finishes_what_was_handed_in(writer, connections):
    release, _ = held(writer)
    futures = [writer.submit(insert(number)) for number in range(600)]
    threading.Timer(0.05, release.set).start()
    writer.close()
    assert all(future.done() for future in futures)
    assert len(stored(connections)) == 600
    with pytest.raises(StoreClosedError):
        writer.submit(insert(1))
