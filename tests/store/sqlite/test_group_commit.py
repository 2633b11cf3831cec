import asyncio
import threading
import time
from contextlib import suppress
from itertools import count

import pytest

from mnemic.errors import BusyThreadError, StoreClosedError
from mnemic.store.group_commit import Writer, _PendingWrite
from mnemic.store.sqlite.file import FileTransactions
from mnemic.threads.sync_bridge import arrived
from mnemic.threads.waited_future import WaitedFuture
from tests.support.interrupts import interrupted_at
from tests.support.waiting import until


@pytest.fixture
def connections(tmp_path):
    opened = FileTransactions(str(tmp_path / "a.db"))
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


async def run(writer, job):
    return await arrived(writer.write(job))


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


def test_a_result_is_not_there_before_its_commit(writer, connections):
    seen = []
    future = writer.submit(insert(1))
    future.add_done_callback(lambda _: seen.append(stored(connections)))
    future.result(10)
    until(lambda: seen == [[1]])


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


def test_a_caller_that_finds_nobody_writing_runs_its_job_itself(writer, connections):
    threads = []

    def job(connection):
        threads.append(threading.get_ident())
        return insert(1)(connection)

    assert writer.write(job).result() == 1
    assert threads == [threading.get_ident()]
    assert stored(connections) == [1]


def test_what_was_handed_in_before_runs_before(writer):
    ran = []
    release, _ = held(writer)
    for number in range(5):
        writer.submit(lambda _, at=number: ran.append(at))
    threading.Timer(0.05, release.set).start()
    writer.write(lambda _: ran.append("last")).result()
    assert ran == [0, 1, 2, 3, 4, "last"]


def test_an_interrupted_caller_loses_no_others_job_and_leaves_no_transaction(writer, connections):
    others = []

    def interrupted(connection):
        connection.execute("INSERT INTO t VALUES (50)")
        others.extend(writer.submit(insert(number)) for number in range(3))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer.write(interrupted).result()
    assert [future.result(10) for future in others] == [0, 1, 2]
    assert writer.write(insert(9)).result() == 9
    assert stored(connections) == [0, 1, 2, 9]


def test_a_transaction_that_an_interrupt_left_open_is_rolled_back_by_the_next_write(
    writer, connections
):
    connections.writer.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (50)")
    assert writer.write(insert(1)).result() == 1
    assert stored(connections) == [1]


def test_a_write_in_the_midst_of_a_write_of_the_same_thread_is_refused(writer, connections):
    def nested(connection):
        with pytest.raises(BusyThreadError):
            writer.write(insert(2)).result()
        return insert(1)(connection)

    assert writer.write(nested).result() == 1
    assert stored(connections) == [1]


def test_many_threads_write_everything_once_and_never_two_at_a_time(writer, connections):
    inside, most = [0], []

    def counted(number):
        def job(connection):
            inside[0] += 1
            most.append(inside[0])
            time.sleep(0.0001)
            insert(number)(connection)
            inside[0] -= 1

        return job

    def work(first):
        for number in range(first, first + 25):
            writer.write(counted(number)).result()

    workers = [threading.Thread(target=work, args=(1000 * at,)) for at in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert max(most) == 1
    assert stored(connections) == [1000 * at + number for at in range(8) for number in range(25)]


def test_a_loop_that_was_closed_meanwhile_disturbs_nobody_else(writer, connections):
    loop = asyncio.new_event_loop()
    release, _ = held(writer)
    task = loop.create_task(run(writer, insert(1)))
    loop.run_until_complete(asyncio.sleep(0.01))
    other = writer.submit(insert(2))
    task.cancel()
    loop.close()
    release.set()
    assert other.result(10) == 2
    assert writer.submit(insert(3)).result(10) == 3
    assert set(stored(connections)) >= {2, 3}


def test_a_job_nobody_waits_for_runs_with_the_next_group(writer, connections):
    release, _ = held(writer)
    writer.submit_delayed(insert(1))
    future = writer.submit(insert(2))
    release.set()
    future.result(10)
    assert stored(connections) == [1, 2]


def test_a_job_nobody_waits_for_runs_by_itself_after_a_while(writer, connections, monkeypatch):
    monkeypatch.setattr("mnemic.store.group_commit.MAX_DELAY", 0.05)
    writer.submit_delayed(insert(1))
    assert stored(connections) == []
    until(lambda: stored(connections) == [1])


def test_a_job_nobody_waits_for_is_not_held_off_by_callers_that_write_without_a_pause(
    writer, monkeypatch
):
    monkeypatch.setattr("mnemic.store.group_commit.MAX_DELAY", 0.01)
    ran = threading.Event()
    writer.submit_delayed(lambda _connection: ran.set())
    number, deadline = 0, time.monotonic() + 10
    while not ran.is_set() and time.monotonic() < deadline:
        writer.write(insert(number)).result()
        number += 1
    assert ran.is_set()


def test_closing_runs_the_jobs_that_nobody_waits_for(writer, connections):
    for number in range(600):
        writer.submit_delayed(insert(number))
    writer.close()
    assert len(stored(connections)) == 600
    with pytest.raises(StoreClosedError):
        writer.submit_delayed(insert(1))


def test_a_failing_job_that_nobody_waits_for_is_logged_and_takes_nothing_along(
    writer, connections, caplog
):
    def fail(_connection):
        raise ZeroDivisionError("nobody asked")

    release, _ = held(writer)
    writer.submit_delayed(fail)
    writer.submit_delayed(insert(1))
    future = writer.submit(insert(2))
    release.set()
    assert future.result(10) == 2
    writer.close()
    assert stored(connections) == [1, 2]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("A write that no caller waits for was dropped: ZeroDivisionError at ")
    assert "nobody asked" not in line, "what is not mnemic's own error may quote a memory"


def test_closing_while_callers_write_themselves_loses_nothing(connections):
    writer, done = Writer(connections), []

    def work(first):
        with suppress(StoreClosedError):
            done.extend(writer.write(insert(first + number)).result() for number in range(10_000))

    workers = [threading.Thread(target=work, args=(10_000 * at,)) for at in range(4)]
    for worker in workers:
        worker.start()
    time.sleep(0.1)
    assert writer.close()
    for worker in workers:
        worker.join()
    assert done
    assert stored(connections) == sorted(done)


@pytest.mark.parametrize("make", [WaitedFuture, lambda: _PendingWrite(int)])
def test_a_wait_that_is_interrupted_at_any_moment_does_not_stop_who_settles_the_future(make):
    for moment in count():
        future = make()
        has_ended = interrupted_at(moment, lambda future=future: future.result(0))

        def settle(future=future):
            future.set_running_or_notify_cancel()
            future.set_result(1)

        writer = threading.Thread(target=settle, daemon=True)
        writer.start()
        writer.join(10)
        assert not writer.is_alive()
        assert future.result(0) == 1
        if has_ended:
            break
    assert moment >= 6
