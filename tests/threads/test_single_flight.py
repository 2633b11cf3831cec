"""The cache with bounds whose values concurrent calls compute once."""

import asyncio
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.threads.single_flight import FREED_SHARE, AbandonedError, Bounds, SingleFlightCache
from mnemic.threads.sync_bridge import run_sync
from tests.support.tiers import examples

SECONDS = 20


def cache_of(**options):
    """Return a cache of numbers, which are their own bytes, under pairs of an owner and a name."""
    bounds = Bounds(**{name: options.pop(name) for name in Bounds._fields if name in options})
    return SingleFlightCache(bounds, lambda _, size: size, owner_of=itemgetter(0), **options)


def names(cache):
    return "".join(name for (_, name), _ in cache.items())


# Bounds


def test_the_least_recently_used_makes_space_and_a_look_is_no_use():
    cache = cache_of(entries=2)
    cache.put("ua", 1)
    cache.put("ub", 1)
    assert cache.peek("ub") == 1
    assert cache.get("ua") == 1
    cache.put("uc", 1)
    assert (names(cache), cache.get("ub")) == ("ac", None)
    assert cache.peek("ua")
    cache.put("ud", 1)
    assert names(cache) == "cd"


def test_no_space_keeps_nothing():
    for bounds in ({"entries": 0}, {"entry_bytes": 0}, {"bytes": 0}):
        cache = cache_of(**bounds)
        cache.put("ua", 1)
        assert (len(cache), cache.used_bytes, cache._parts) == (0, 0, {})


def test_what_must_not_be_kept_is_not():
    cache = cache_of(is_kept=lambda size: size % 2 == 0)
    cache.put("ua", 2)
    cache.put("ua", 3)
    assert cache.get("ua") == 2


def test_owners_without_end_leave_it_bounded():
    cache = cache_of(all_entries=50, all_bytes=10_000)
    for number in range(500):
        cache.put((number, "q"), number)
        assert len(cache) <= 50
        assert cache.used_bytes <= 10_000
    assert len(cache._parts) == len(cache) > 20


@pytest.mark.parametrize("bound", ["all_entries", "all_bytes"])
@pytest.mark.parametrize("seed", range(10))
def test_an_owner_within_its_fair_share_keeps_what_it_would_keep_alone(seed, bound):
    choose = random.Random(seed)  # noqa: S311 - repeatable
    most, owners = 400, choose.randint(9, 12)
    fair = (most - most // FREED_SHARE) // owners
    shared, alone, over = cache_of(bytes=50, **{bound: most}), {}, set()
    fullest = compared = 0
    for _ in range(1200):
        owner = choose.randrange(owners)
        key = owner, choose.randrange(60 if owner < 8 else 6)  # some ask more than others
        own = alone.setdefault(owner, cache_of(bytes=50))
        expected = own.get(key)
        if owner not in over:
            assert shared.get(key) == expected
            compared += expected is not None
        size = 1 if bound == "all_entries" else 1 + key[1] % 6
        for cache in (own, shared):
            cache.put(key, size)
        if own.used_bytes > fair:
            over.add(owner)
        fullest = max(fullest, sum(each.used_bytes for each in alone.values()))
        assert shared.used_bytes <= most
    assert fullest > most  # so that space had to be made
    assert compared > 20


# Dropping


def test_a_value_is_replaced_only_by_whoever_saw_it():
    cache, before = cache_of(), 1000
    cache.put("ua", before, 3)
    cache.replace("ua", 7, 8)
    cache.replace("ub", before, 8)
    assert (cache.get("ua"), cache.peek("ub")) == (before, None)
    cache.replace("ua", before, 2000)
    cache.put("ub", 1, 2)
    assert (cache.items(), cache.used_bytes) == ([("ua", 2000)], 2000)
    cache.replace("ua", cache.get("ua"), None)
    assert (len(cache), cache.used_bytes) == (0, 0)


@pytest.mark.parametrize("drop", [lambda cache: cache.clear(), lambda cache: cache.drop(["ua"])])
def test_what_is_dropped_while_it_is_computed_is_not_kept(drop):
    cache = cache_of()
    claim = cache.claim(["ua"], blocks=False)
    drop(cache)
    again = cache.claim(["ua"], blocks=False)
    assert len(again.own) == 1
    with pytest.raises(AbandonedError):
        claim.own[0].result(0)
    cache.settle(claim.own, [1])
    assert cache.peek("ua") is None
    cache.settle(again.own, [2])
    assert (cache.get("ua"), again.own[0].result(0), cache._flights) == (2, 2, {})


# Flights


def test_a_claim_tells_kept_values_own_flights_and_those_of_others():
    cache = cache_of()
    cache.put("ua", 1)

    def other():
        return cache.claim(["ub", "uc"], blocks=True)

    with ThreadPoolExecutor(1) as thread:
        theirs = thread.submit(other).result(SECONDS)
    mine = cache.claim(["ua", "ub", "ud", "ud"], blocks=True)
    assert mine.found == {"ua": 1}
    assert [flight.key for flight in mine.own] == ["ud"]
    assert mine.awaited == theirs.own[:1]
    assert (cache.hits, cache.misses) == (3, 3)
    cache.settle(theirs.own, [2, 3])
    assert mine.awaited[0].result(0) == 2


def test_a_kept_value_that_the_call_does_not_take_is_computed():
    cache = cache_of()
    cache.put("ua", 1)
    claim = cache.claim(["ua"], blocks=True, is_valid=lambda size: size > 1)
    assert (claim.found, len(claim.own), cache.peek("ua")) == ({}, 1, 1)


def test_a_call_of_a_signal_handler_waits_for_none_of_its_own_thread():
    cache = cache_of()
    interrupted = cache.claim(["ua"], blocks=True).own
    handler = cache.claim(["ua"], blocks=True).own
    cache.settle(handler, [2])
    cache.settle(interrupted, [1])
    assert (handler[0].result(0), interrupted[0].result(0), cache._flights) == (2, 1, {})


def test_an_error_reaches_those_that_wait_and_an_interruption_does_not():
    for error, seen in [(KeyError("x"), KeyError), (KeyboardInterrupt(), AbandonedError)]:
        cache = cache_of()
        (flight,) = cache.claim(["ua"], blocks=False).own
        cache.fail([flight], error)
        cache.fail([flight], ValueError())  # it has ended
        assert type(flight.exception(0)) is seen
        assert (len(cache), cache._flights) == (0, {})


def test_a_flight_that_all_calls_left_is_given_up():
    cache = cache_of()
    (flight,) = cache.claim(["ua"], blocks=False).own
    assert cache.claim(["ua"], blocks=False).awaited == [flight]
    cache.leave(flight)
    assert not flight.done()
    cache.leave(flight)
    assert type(flight.exception(0)) is AbandonedError
    cache.settle([flight], [1])
    assert cache.peek("ua") is None


def test_what_is_computed_is_kept_and_nothing_that_failed():
    cache = cache_of()

    async def one():
        return 1

    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_sync(cache.get_or_compute("ua", fail))
    assert run_sync(cache.get_or_compute("ua", one)) == 1
    assert run_sync(cache.get_or_compute("ua", fail)) == 1
    assert asyncio.run(cache.get_or_compute("ua", fail)) == 1


def test_threads_and_event_loops_compute_a_value_once():
    cache, gate, computed = cache_of(), threading.Event(), []

    async def compute():
        computed.append(1)
        await asyncio.to_thread(gate.wait, SECONDS)
        return 7

    async def plain():
        computed.append(1)
        gate.wait(SECONDS)
        return 7

    def in_a_loop():
        return asyncio.run(asyncio.wait_for(cache.get_or_compute("ua", compute), SECONDS))

    def in_a_thread():
        return run_sync(cache.get_or_compute("ub", plain))

    def joins():
        return asyncio.run(asyncio.wait_for(cache.get_or_compute("ub", compute), SECONDS))

    with ThreadPoolExecutor(7) as threads:
        calls = [threads.submit(call) for call in (in_a_loop, in_a_loop, in_a_thread, in_a_thread)]
        while len(computed) < 2:
            threading.Event().wait(0.001)
        calls.append(threads.submit(joins))
        while sum(each.calls for flights in list(cache._flights.values()) for each in flights) < 5:
            threading.Event().wait(0.001)
        gate.set()
        assert [each.result(SECONDS) for each in calls] == [7] * 5
    assert (len(computed), cache._flights) == (2, {})


def test_where_the_computing_call_is_cancelled_one_that_waits_computes():
    async def main():
        cache, computed = cache_of(), []

        async def compute():
            computed.append(1)
            await asyncio.sleep(0 if len(computed) > 1 else 3600)
            return len(computed)

        tasks = [asyncio.ensure_future(cache.get_or_compute("ua", compute)) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert await asyncio.gather(*tasks[1:3]) == [2, 2]
        assert cache._flights == {}

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_flight_left_behind_in_a_closed_loop_is_not_waited_for():
    cache, loop = cache_of(), asyncio.new_event_loop()

    async def never():
        await asyncio.Event().wait()

    async def one():
        return 1

    left = loop.create_task(cache.get_or_compute("ua", never))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not left.done()
    assert asyncio.run(asyncio.wait_for(cache.get_or_compute("ua", one), SECONDS)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_waits_for_no_flight_of_the_first_one():
    cache = cache_of()
    cache.put("ua", 1)
    with ThreadPoolExecutor(1) as thread:
        (flight,) = thread.submit(cache.claim, ["ub"], blocks=True).result(SECONDS).own
    child = os.fork()
    if child == 0:
        claim = cache.claim(["ub", "ua"], blocks=True)
        os._exit(len(claim.own) - 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cache.claim(["ub"], blocks=True).awaited == [flight]


# A twin

KEYS = st.tuples(st.sampled_from("uv"), st.sampled_from("abcd"))
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(1, 6), st.integers(0, 1)),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("drop"), KEYS),
    st.tuples(st.just("drop_owner"), st.sampled_from("uv")),
    st.tuples(st.just("clear")),
)


@examples(200)
@given(st.lists(STEPS, max_size=40))
def test_it_keeps_what_lists_in_order_of_use_keep(steps):
    cache = cache_of(entries=3, bytes=12, entry_bytes=5)
    twin, revisions = {"u": [], "v": []}, {}
    for step, *what in steps:
        if step == "clear":
            cache.clear()
            twin = {"u": [], "v": []}
        elif step == "drop_owner":
            cache.drop_owner(*what)
            twin[what[0]] = []
        else:
            key, *rest = what
            part = twin[key[0]]
            kept = [size for name, size in part if name == key]
            if step == "put":
                size, revision = rest
                cache.put(key, size, revision)
                is_old = bool(part) and revision < revisions[key[0]]
                if size <= 5 and not is_old:
                    if part and revision > revisions[key[0]]:
                        part.clear()
                    revisions[key[0]] = revision
                    part[:] = [each for each in part if each[0] != key] + [(key, size)]
                    while len(part) > 3 or sum(size for _, size in part) > 12:
                        part.pop(0)
            elif step == "get":
                assert cache.get(key) == (kept[0] if kept else None)
                part.sort(key=lambda each: each[0] == key)
            else:
                assert cache.drop([key]) == len(kept)
                part[:] = [each for each in part if each[0] != key]
        for owner, part in twin.items():
            assert [item for item in cache.items() if item[0][0] == owner] == part
        assert cache.used_bytes == sum(size for part in twin.values() for _, size in part)


def test_threads_may_use_it_together():
    cache = cache_of(entries=5, all_bytes=20)

    def work(seed):
        choose = random.Random(seed)  # noqa: S311 - repeatable
        for _ in range(3000):
            key = choose.choice("uvw"), choose.randrange(9)
            cache.put(key, 2)
            cache.get((choose.choice("uvw"), key[1]))
            if choose.random() < 0.05:
                cache.drop_owner(key[0])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert cache.used_bytes == 2 * len(cache) <= 20
    for owner in "uvw":
        cache.drop_owner(owner)
    assert (len(cache), cache.used_bytes, cache._parts) == (0, 0, {})
