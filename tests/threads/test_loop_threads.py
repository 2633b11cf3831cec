"""Blocking work of an event loop in threads."""

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemic import AsyncMemory
from mnemic.errors import DeadlineExceededError, StoreClosedError
from mnemic.threads.calls import shared_in_turn
from mnemic.threads.loop_threads import (
    FEW_THREADS,
    RETURNED_AT_ONCE,
    TICK,
    threads_of,
)
from mnemic.threads.sync_bridge import run_blocking, run_sync
from tests.support.embedders import WordEmbedder

PATIENCE = 20
MANY = 100


class Pool:
    """Has an executor."""

    def __init__(self, size):
        self.executor = ThreadPoolExecutor(size)


@pytest.fixture
def pool():
    made = Pool(8)
    yield made
    made.executor.shutdown()


def run(main):
    return asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_each_piece_of_work_has_its_own_result_or_error(pool):
    def work(number):
        if number % 3 == 0:
            raise ZeroDivisionError(number)
        return number

    async def main():
        calls = (run_blocking(lambda at=at: work(at), pool) for at in range(MANY))
        return await asyncio.gather(*calls, return_exceptions=True)

    for number, outcome in enumerate(run(main)):
        if number % 3 == 0:
            assert isinstance(outcome, ZeroDivisionError)
            assert outcome.args == (number,)
        else:
            assert outcome == number


def test_the_work_of_one_turn_that_gets_on_is_done_by_few_threads(pool):
    threads = set()

    async def main():
        work = lambda: threads.add(threading.get_ident())  # noqa: E731
        await asyncio.gather(*(run_blocking(work, pool) for _ in range(3)))
        assert 1 <= len(threads) <= FEW_THREADS

    run(main)


def test_work_that_does_not_get_on_has_further_threads(pool):
    together = threading.Barrier(8)

    async def main():
        waiting = (run_blocking(lambda: together.wait(PATIENCE), pool) for _ in range(8))
        return await asyncio.gather(*waiting)

    assert sorted(run(main)) == list(range(8))


def test_a_result_is_returned_though_work_beside_it_waits(pool):
    seen = threading.Event()

    async def main():
        first = asyncio.ensure_future(run_blocking(lambda: "first", pool))
        others = [
            asyncio.ensure_future(run_blocking(lambda: seen.wait(PATIENCE), pool))
            for _ in range(RETURNED_AT_ONCE)
        ]
        assert await first == "first"
        assert not any(other.done() for other in others)
        seen.set()
        assert all(await asyncio.gather(*others))

    run(main)


def test_one_turn_after_another_is_worked_off_beside_work_that_waits(pool):
    go_on = threading.Event()

    async def main():
        stuck = [
            asyncio.ensure_future(run_blocking(lambda: go_on.wait(PATIENCE), pool))
            for _ in range(FEW_THREADS)
        ]
        for number in range(10):
            assert await run_blocking(lambda at=number: at, pool) == number
        go_on.set()
        assert all(await asyncio.gather(*stuck))

    run(main)


class PausedQueue(deque):
    """Pauses the thread that enters one of the results, before the entry or after it."""

    def __init__(self, at, *, is_before):
        self.left, self.is_before = at, is_before

    def append(self, waiter):
        self.left -= 1
        if self.left == 0 and self.is_before:
            time.sleep(10 * TICK)
        super().append(waiter)
        if self.left == 0 and not self.is_before:
            time.sleep(10 * TICK)


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize("at", range(1, 6))
@pytest.mark.parametrize("turns", [1, 2])
def test_no_result_is_lost_when_its_thread_is_paused(at, turns, *, is_before):
    pool = Pool(2)

    async def main():
        threads = threads_of(asyncio.get_running_loop())
        threads._due = PausedQueue(at, is_before=is_before)
        calls = []
        for _ in range(turns):
            work = (run_blocking(lambda: time.sleep(TICK), pool) for _ in range(5 // turns))
            calls += map(asyncio.ensure_future, work)
            await asyncio.sleep(0)
        await asyncio.gather(*calls)

    run(main)
    pool.executor.shutdown()


def test_a_result_is_returned_though_its_thread_takes_up_work_of_a_later_turn():
    pool = Pool(1)
    first_goes_on, second_goes_on = threading.Event(), threading.Event()

    async def main():
        first = asyncio.ensure_future(run_blocking(lambda: first_goes_on.wait(PATIENCE), pool))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # it is handed over alone
        second = asyncio.ensure_future(run_blocking(lambda: second_goes_on.wait(PATIENCE), pool))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first_goes_on.set()
        await asyncio.wait_for(first, PATIENCE / 2)
        assert not second.done()
        second_goes_on.set()
        await second

    run(main)
    pool.executor.shutdown()


def test_event_loops_with_work_without_end_leave_threads_to_another_one(pool):
    may_end = threading.Event()

    async def without_end():
        async def series():
            while not may_end.is_set():
                await run_blocking(lambda: time.sleep(TICK), pool)

        await asyncio.gather(*(series() for _ in range(50)))

    busy = [threading.Thread(target=run, args=(without_end,)) for _ in range(4)]
    for thread in busy:
        thread.start()
    try:
        time.sleep(100 * TICK)
        run(lambda: run_blocking(lambda: None, pool))
    finally:
        may_end.set()
        for thread in busy:
            thread.join()


def test_work_that_nobody_awaits_any_more_is_not_begun():
    began, go_on, small = [], threading.Event(), Pool(1)

    async def main():
        first = asyncio.ensure_future(run_blocking(lambda: go_on.wait(PATIENCE), small))
        others = [
            asyncio.ensure_future(run_blocking(lambda at=at: began.append(at), small))
            for at in range(4)
        ]
        await asyncio.sleep(0)
        for other in others[::2]:
            other.cancel()
        await asyncio.wait(others[::2])
        go_on.set()
        await asyncio.gather(first, *others[1::2])

    run(main)
    small.executor.shutdown()
    assert began == [1, 3]


def test_work_of_a_pool_that_was_shut_down_fails_and_never_waits():
    closed = Pool(1)
    closed.executor.shutdown()

    async def main():
        calls = (run_blocking(lambda: None, closed) for _ in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [type(outcome) for outcome in run(main)] == [StoreClosedError] * 3


def test_a_value_is_shared_by_the_work_of_one_turn_and_by_no_other():
    computed, lock = [], threading.Lock()

    def compute():
        with lock:
            computed.append(len(computed))
            return computed[-1]

    def work():
        return shared_in_turn("key", compute), shared_in_turn("key", compute)

    async def main():
        turns = [
            await asyncio.gather(*(run_blocking(work, small) for _ in range(10))) for _ in range(2)
        ]
        for turn, first in zip(turns, (0, 11), strict=True):
            assert {shared for shared, _ in turn} == {first}
            assert sorted(own for _, own in turn) == list(range(first + 1, first + 11))

    small = Pool(1)
    run(main)
    small.executor.shutdown()
    assert shared_in_turn("key", lambda: "computed") == "computed"


def test_a_synchronous_call_within_work_shares_nothing_with_the_work_beside_it(pool):
    values = iter(range(MANY))

    async def inner():
        return shared_in_turn("key", lambda: next(values))

    async def main():
        work = lambda: run_sync(inner())  # noqa: E731
        return await asyncio.gather(*(run_blocking(work, pool) for _ in range(10)))

    assert sorted(run(main)) == list(range(10))


def test_searches_of_one_turn_ask_the_store_once_and_see_what_was_written_before(tmp_path):
    asked = []

    async def main():
        async with AsyncMemory(tmp_path / "a.db", embedder=WordEmbedder()) as memory:
            store = memory.repository._store
            position = store.latest_position

            def counted(agent_id, **_):
                asked.append(agent_id)
                return position(agent_id)

            for number in range(5):
                await memory.add(f"tea {number}")
                store.latest_position = counted
                found = await asyncio.gather(*(memory.search("tea", limit=9) for _ in range(20)))
                del store.latest_position
                assert {len(hits) for hits in found} == {number + 1}

    run(main)
    assert 5 <= len(asked) <= 5 * FEW_THREADS


class HangingEmbedder(WordEmbedder):
    """Hangs on some texts until it is released; a joined call would hang with any of its texts."""

    join_calls = False

    def __init__(self):
        super().__init__()
        self.goes_on = threading.Event()

    def embed(self, texts):
        if "slow" in texts[0]:
            assert self.goes_on.wait(PATIENCE)
        return super().embed(texts)


def test_searches_that_wait_for_an_embedder_leave_threads_to_others(tmp_path):
    embedder = HangingEmbedder()

    async def main():
        async with AsyncMemory(tmp_path / "a.db", embedder=embedder) as memory:
            await memory.add("tea at noon")
            slow = [asyncio.ensure_future(memory.search(f"slow {at}")) for at in range(20)]
            await asyncio.sleep(20 * TICK)
            assert len(await asyncio.wait_for(memory.search("tea"), PATIENCE / 2)) == 1
            with pytest.raises(DeadlineExceededError):
                await asyncio.wait_for(memory.search("slow tea", timeout=0.05), PATIENCE / 2)
            assert not any(each.done() for each in slow)
            embedder.goes_on.set()
            await asyncio.gather(*slow)

    run(main)
