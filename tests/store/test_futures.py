"""What every store promises of the threads it is called in, and of the futures of its writes."""

import asyncio
import gc
import threading
import time
from concurrent.futures import CancelledError, thread
from contextlib import contextmanager

import pytest

from mnemic.errors import DeadlineExceededError, DuplicateEntryError, StoreClosedError
from mnemic.model import Scope
from mnemic.store import open_store
from mnemic.store.operations import (
    PositionAndRevision,
    RowsSince,
    SoftDelete,
    Update,
)
from mnemic.threads.sync_bridge import arrived
from tests.store.conftest import Places
from tests.store.contract import (
    AGENT,
    added,
    adding,
    counted,
    erases,
    exported,
    gathered,
    one,
    seq_of,
)
from tests.store.test_store import READS
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid
from tests.support.threads import run_together

PATIENCE = 60
"""Seconds after which a test that should have gone on fails."""

ZOE = Scope("a", "zoe")


@contextmanager
def writing(store):
    """Keep the store in the midst of a write of the agent by another thread."""
    added(store, "a", [numbered(1, user_id="zoe")])
    begun, may_end = threading.Event(), threading.Event()

    def change(entry):
        begun.set()
        assert may_end.wait(PATIENCE)
        return entry

    def write():
        store.write(Update(ZOE, only(1), change=change, now=NOON)).result(PATIENCE)

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield may_end
    finally:
        may_end.set()
        thread.join()


@pytest.mark.beyond_a_dict("its writes never wait")
def test_a_write_in_an_event_loop_is_handed_in_and_not_waited_for(store):
    async def main():
        with writing(store) as may_end:
            future = adding(store, "a", [numbered(1)])
            await asyncio.sleep(0)
            assert not future.done()
            may_end.set()
            assert (await arrived(future)).is_new == [True]

    asyncio.run(main())


def test_each_of_the_writes_of_one_turn_has_its_own_result(store):
    async def main():
        added(store, "a", [numbered(3)])
        futures = [adding(store, "a", [numbered(at)]) for at in range(6)]
        return await gathered(futures, return_exceptions=True)

    outcomes = asyncio.run(main())
    assert isinstance(outcomes.pop(3), DuplicateEntryError)
    assert [stored.ids for stored in outcomes] == [[uid(at)] for at in (0, 1, 2, 4, 5)]
    assert counted(store, AGENT) == 6


def outcomes_of(store, *calls):
    """Return the results and errors of writes that are handed in behind one of another thread."""

    async def main():
        with writing(store):
            return [call() for call in calls]

    futures = asyncio.run(main())
    return [future.exception(PATIENCE) or future.result() for future in futures]


def updating(store, scope, number, change):
    return store.write(Update(scope, only(number), change=change, now=NOON))


def failing(error):
    def change(_):
        raise error

    return change


@pytest.mark.beyond_a_dict("its writes never wait")
@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_of_writes_that_wait_together_one_that_fails_is_undone_alone(store, error):
    outcomes = outcomes_of(
        store,
        lambda: adding(store, "a", [numbered(1)]),
        lambda: adding(store, "a", [numbered(2), numbered(1)]),
        lambda: updating(store, ZOE, 1, failing(error)),
        lambda: store.write(SoftDelete(ZOE, only(1), NOON)),
        lambda: adding(store, "a", [numbered(3)]),
    )
    assert [type(outcome) for outcome in outcomes[1:3]] == [DuplicateEntryError, error]
    assert (outcomes[0].ids, outcomes[3], outcomes[4].ids) == ([uid(1)], [uid(1)], [uid(3)])
    assert [stored.entry.id for stored in exported(store, AGENT)] == [uid(1), uid(3)]
    assert counted(store, ZOE) == 0
    assert seq_of(store) == 2 + 3  # with the two of `writing`
    assert store.known_position("a") == store.position("a")  # not that of a write undone


@pytest.mark.beyond_a_dict("its writes never wait")
def test_accesses_that_are_being_written_are_waited_for(store):
    with writing(store):
        store.touch("a", [1], NOON)
        first, second = store.write_accesses(), store.write_accesses()
        time.sleep(0.05)
        assert not first.done()
        assert not second.done()
    second.result(PATIENCE)
    assert one(store, ZOE, 1).access_count == 1


def test_accesses_that_come_while_others_are_written_are_counted_once(store):
    (row,) = added(store, "a", [numbered(1)]).rows
    counts, ends = [], time.monotonic() + 0.5

    def touch():
        counts.append(0)
        while time.monotonic() < ends:
            store.touch("a", [row], NOON)
            counts[-1] += 1

    def flush():
        while time.monotonic() < ends:
            store.write_accesses().result(PATIENCE)

    run_together(touch, flush, flush)
    while store.accesses.has("a", [row]):
        store.write_accesses().result(PATIENCE)
    assert one(store, AGENT, 1).access_count == sum(counts)


@pytest.mark.beyond_a_dict("its writes never wait")
def test_a_write_is_cancelled_before_it_begins_and_the_rest_is_written(store):
    async def main():
        with writing(store):
            futures = [adding(store, "a", [numbered(at)]) for at in range(10)]
            assert all(future.cancel() for future in futures[::2])
        return await gathered(futures[1::2])

    assert all(stored.is_new == [True] for stored in asyncio.run(main()))
    assert [stored.entry.id for stored in exported(store, AGENT)] == list(map(uid, range(1, 10, 2)))
    assert seq_of(store) == 2 + 5  # with the two of `writing`


@pytest.mark.beyond_a_dict("its writes never wait")
def test_a_write_of_a_thread_is_cancelled_before_it_begins(store):
    cancelled = []

    def write():
        future = adding(store, "a", [numbered(1)])
        cancelled.append(future.cancel())
        with pytest.raises(CancelledError):
            future.result(PATIENCE)

    with writing(store):
        run_together(write)
    assert cancelled == [True]
    assert counted(store, AGENT) == 0


def test_a_finished_write_cannot_be_cancelled(store):
    future = adding(store, "a", [numbered(1)])
    future.result(PATIENCE)
    assert not future.cancel()
    assert counted(store, AGENT) == 1


@pytest.mark.beyond_a_dict("its writes never wait")
def test_a_task_that_is_cancelled_writes_nothing_if_its_write_has_not_begun(store):
    async def main():
        with writing(store):
            tasks = [
                asyncio.ensure_future(arrived(adding(store, "a", [numbered(at)])))
                for at in range(4)
            ]
            await asyncio.sleep(0)
            assert all(task.cancel() for task in tasks[:2])
            await asyncio.wait(tasks[:2])
        await asyncio.gather(*tasks[2:])

    asyncio.run(main())
    assert [stored.entry.id for stored in exported(store, AGENT)] == [uid(2), uid(3)]


def test_an_event_loop_that_is_blocked_by_a_wait_delays_no_write(store):
    async def main():
        future = adding(store, "a", [numbered(1)])
        waiting = threading.Thread(target=future.result, args=(PATIENCE,))
        waiting.start()
        waiting.join()  # blocks the loop
        assert future.done()
        assert adding(store, "a", [numbered(2)]).exception(PATIENCE) is None
        return adding(store, "a", [numbered(3)]).result(PATIENCE)

    assert asyncio.run(main()).is_new == [True]


def test_the_stores_threads_may_read_and_write(store):
    executor = store.executor
    assert store.executor is executor
    writes = [executor.submit(added, store, "a", [numbered(at)]) for at in range(20)]
    assert all(future.result(PATIENCE).is_new == [True] for future in writes)
    assert executor.submit(counted, store, AGENT).result(PATIENCE) == 20


def test_a_closed_store_has_no_threads(store):
    store.executor.submit(counted, store, AGENT).result(PATIENCE)
    store.close()
    with pytest.raises(StoreClosedError):
        _ = store.executor


def test_erasing_does_not_block_an_event_loop(store):
    async def main():
        with writing(store) as may_end:
            erasing = store.erase()
            await asyncio.sleep(0)
            may_end.set()
            return await arrived(erasing)

    assert asyncio.run(main()) is erases(store)


def test_closing_while_writes_wait_finishes_them(opening):
    store = opening()
    futures = []

    async def main():
        with writing(store) as may_end:
            futures.extend(adding(store, "a", [numbered(at)]) for at in range(10))
            closing = threading.Thread(target=store.close)
            closing.start()
            may_end.set()
            closing.join()

    asyncio.run(main())
    assert [future.result(0).is_new for future in futures] == [[True]] * 10
    assert counted(opening(), AGENT) == 10


def test_reads_of_eight_threads_during_writes_see_whole_writes(store):
    writes, many = 40, 5
    failures, finished = [], threading.Event()

    def read():
        while not finished.is_set():
            before = seq_of(store)
            found = len(exported(store, AGENT, limit=1000))
            if found % many or not before <= found <= seq_of(store):
                failures.append((before, found))

    def write():
        try:
            for at in range(0, writes * many, many):
                added(store, "a", [numbered(at + step) for step in range(many)])
        finally:
            finished.set()

    run_together(write, *[read] * 8)
    assert failures == []
    assert counted(store, AGENT) == writes * many


WITH_DEADLINE = READS | {
    "position and revision": PositionAndRevision,
    "changes": lambda scope: RowsSince(scope.agent_id, None, 0),
}


@pytest.mark.parametrize("name", WITH_DEADLINE)
def test_a_read_whose_deadline_has_passed_raises_and_another_one_answers(store, name):
    added(store, "a", [numbered(1)])
    wanted = WITH_DEADLINE[name](AGENT)
    with pytest.raises(DeadlineExceededError):
        store.read(wanted, deadline=time.monotonic() - 1)
    distant = time.monotonic() + 1000
    one, other = store.read(wanted, deadline=distant), store.read(wanted)
    assert getattr(one, "records", one) == getattr(other, "records", other)


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_a_store_that_is_collected_in_the_midst_of_a_submit_waits_for_no_lock_of_it(kind, tmp_path):
    places = Places(kind, tmp_path)

    def collect():
        store = open_store(places.url())
        executor = store.executor
        executor.submit(int).result()
        with executor._shutdown_lock, thread._global_shutdown_lock:  # as `submit` has them
            del store
            gc.collect()
        while not executor._shutdown:
            time.sleep(0.01)

    collecting = threading.Thread(target=collect, daemon=True)
    collecting.start()
    collecting.join(20)
    assert not collecting.is_alive()
    places.drop()
