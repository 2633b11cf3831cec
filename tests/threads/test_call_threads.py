"""Threads for functions of callers: they are reused, few stay, and none after the end."""

import asyncio
import gc
import threading
import weakref

import pytest

from mnemic.threads import call_threads
from mnemic.threads.call_threads import MAX_IDLE, CallThreads
from tests.support.waiting import until

NAME = "mnemic-hyde-threads-test"


@pytest.fixture
def calls():
    made = CallThreads(NAME.removeprefix("mnemic-"), max_threads=4)
    yield made
    made.join(20)
    assert not running()


def running():
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def test_a_thread_is_used_again(calls):
    async def main():
        found = []
        for _ in range(20):
            found.append(await calls.run(threading.get_ident))
            await asyncio.to_thread(until, lambda: calls._idle)
        return found

    assert len(set(asyncio.run(main()))) == 1


def test_few_threads_stay_after_many_functions(calls):
    async def main():
        return await asyncio.gather(*(calls.run(lambda at=at: at) for at in range(200)))

    assert asyncio.run(main()) == list(range(200))
    until(lambda: len(running()) <= MAX_IDLE)


def test_a_thread_without_work_ends_by_itself(calls, monkeypatch):
    monkeypatch.setattr(call_threads, "IDLE_SECONDS", 0.001)

    async def main():
        for number in range(300):  # some while a thread is about to end
            assert await calls.run(lambda number=number: number) == number
            await asyncio.sleep(number % 3 * 0.0005)

    asyncio.run(main())
    until(lambda: not running())
    assert (calls._idle, calls._active) == (0, 0)


def test_an_error_is_the_callers_and_the_thread_stays(calls):
    async def main():
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 / 0)
        return await calls.run(lambda: 7)

    assert asyncio.run(main()) == 7


def test_no_result_is_held_by_a_thread_that_waits(calls):
    class Result:
        pass

    async def main():
        return weakref.ref(await calls.run(Result))

    found = asyncio.run(main())
    until(lambda: calls._idle)
    gc.collect()
    assert found() is None


def test_the_thread_of_a_late_function_ends_with_it_after_the_end(calls):
    begun, release = threading.Event(), threading.Event()

    def late():
        begun.set()
        release.wait(20)

    async def main():
        task = asyncio.create_task(calls.run(late))
        await asyncio.to_thread(begun.wait, 20)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.01)

    asyncio.run(main())
    calls.join(0.01)
    assert len(running()) == 1
    release.set()
    until(lambda: not running())
