"""The bridge between synchronous and awaited calls."""

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from mnemic.threads.sync_bridge import arrived, run_blocking, run_sync

PATIENCE = 60


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often other threads, or futures, wake it."""

    woken = 0

    def call_soon_threadsafe(self, *arguments, **named):
        self.woken += 1
        return super().call_soon_threadsafe(*arguments, **named)


def run(coroutine):
    loop = CountingLoop()
    try:
        return loop.run_until_complete(coroutine(loop))
    finally:
        loop.close()


def test_futures_that_finish_in_one_turn_of_a_loop_wake_it_once():
    async def main(loop):
        futures = [Future() for _ in range(100)]
        tasks = [asyncio.ensure_future(arrived(future)) for future in futures]
        await asyncio.sleep(0)
        for at, future in enumerate(futures):
            future.set_result(at)
        assert await asyncio.gather(*tasks) == list(range(100))
        return loop.woken

    assert run(main) == 1


def test_a_loop_is_woken_again_for_futures_that_finish_later():
    async def main(loop):
        for turn in range(3):
            future = Future()
            loop.call_soon(future.set_result, turn)
            assert await arrived(future) == turn
        return loop.woken

    assert run(main) == 3


def test_a_finished_future_wakes_nobody():
    async def main(loop):
        future = Future()
        future.set_result("done")
        assert await arrived(future) == "done"
        return loop.woken

    assert run(main) == 0


def test_a_cancelled_wait_cancels_what_has_not_begun_and_nothing_else():
    async def main(_loop):
        waiting, begun = Future(), Future()
        begun.set_running_or_notify_cancel()
        tasks = [asyncio.ensure_future(arrived(future)) for future in (waiting, begun)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert (waiting.cancelled(), begun.cancelled()) == (True, False)
        begun.set_result("late")
        await asyncio.sleep(0.01)

    run(main)


def test_an_error_is_raised_where_it_is_awaited():
    async def main(_loop):
        future = Future()
        task = asyncio.ensure_future(arrived(future))
        await asyncio.sleep(0)
        future.set_exception(ZeroDivisionError("late"))
        with pytest.raises(ZeroDivisionError, match="late"):
            await task

    run(main)


def test_a_future_that_outlives_the_loop_disturbs_nobody():
    future, loop = Future(), CountingLoop()
    task = loop.create_task(arrived(future))
    loop.run_until_complete(asyncio.sleep(0))
    loop.stop()
    loop.close()
    future.set_result("nobody waits")
    assert not task.done()
    task._log_destroy_pending = False


def test_a_synchronous_call_waits_for_a_future_without_a_loop():
    future = Future()
    threading.Timer(0.01, future.set_result, ("done",)).start()
    assert run_sync(arrived(future)) == "done"


class Threads:
    """One thread of its own, made on first use."""

    @property
    def executor(self):
        self.made = getattr(self, "made", None) or ThreadPoolExecutor(1, "own")
        return self.made


def test_blocking_work_runs_in_the_given_threads_with_the_callers_context():
    variable, threads = ContextVar("variable"), Threads()

    async def main(_loop):
        variable.set("of the caller")
        return await run_blocking(
            lambda: (variable.get(), threading.current_thread().name), threads
        )

    value, name = run(main)
    threads.made.shutdown()
    assert (value, name) == ("of the caller", "own_0")


def test_blocking_work_of_a_synchronous_call_runs_in_its_thread_and_makes_no_other():
    threads = Threads()
    assert run_sync(run_blocking(threading.get_ident, threads)) == threading.get_ident()
    assert not hasattr(threads, "made")
