"""The kept result of one turn, and the flights that calls share."""

import asyncio
import math
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic import errors
from mnemic.hyde.turn_cache import NOT_CACHED, CachedTurn, TurnCache
from tests.support.threads import run_together
from tests.support.tiers import examples

SECONDS = 20


def turn_of(text, **fields):
    return CachedTurn((text,), **fields)


def text_of(turn):
    return None if turn is None else turn.memories[0]


async def shared(turns, *given):
    return text_of(await turns.shared(*given, SECONDS))


class Source:
    """Computes results that a test ends."""

    def __init__(self):
        self.started = 0
        self.cancelled = 0
        self.gate = None

    async def compute(self):
        self.started += 1
        number = self.started
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return turn_of(f"result {number}")


async def settled(rounds=10):
    for _ in range(rounds):
        await asyncio.sleep(0)


@pytest.mark.requirement("C113", "R356")
def test_calls_of_many_event_loops_share_one_flight():
    turns, source = TurnCache(), Source()
    all_wait = threading.Barrier(8)
    found = []

    async def compute():
        await asyncio.to_thread(all_wait.wait)
        return await source.compute()

    async def call():
        made = asyncio.ensure_future(shared(turns, "1", compute))
        await settled()
        if turns._flights["1"][0]._loop is not asyncio.get_running_loop():
            await asyncio.to_thread(all_wait.wait)
        found.append(await made)

    run_together(*[lambda: asyncio.run(call())] * 8)
    assert found == ["result 1"] * 8
    assert source.started == 1


@pytest.mark.requirement("C111")
def test_a_flight_that_all_callers_left_is_cancelled_and_not_kept():
    async def run():
        turns, source = TurnCache(), Source()
        source.gate = asyncio.Event()
        calls = [asyncio.ensure_future(shared(turns, "1", source.compute)) for _ in range(3)]
        await settled()
        for call in calls:
            call.cancel()
        await settled()
        assert source.cancelled == 1
        assert turns.cached("1") is None
        source.gate.set()
        assert await shared(turns, "1", source.compute) == "result 2"

    asyncio.run(run())


def test_a_result_that_comes_after_all_callers_left_is_not_kept():
    async def run():
        turns, gate = TurnCache(), asyncio.Event()

        async def stubborn():
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
            return turn_of("late")

        call = asyncio.ensure_future(shared(turns, "1", stubborn))
        await settled()
        call.cancel()
        await settled()
        gate.set()
        await settled()
        assert turns.cached("1") is None

    asyncio.run(run())


def test_calls_go_on_where_the_event_loop_of_the_first_one_ends():
    turns, source = TurnCache(), Source()
    leads, joined = threading.Event(), threading.Event()

    async def compute():
        if not leads.is_set():
            leads.set()
            await asyncio.Event().wait()
        return await source.compute()

    async def lead():
        asyncio.ensure_future(shared(turns, "1", compute))  # noqa: RUF006 - it ends with the loop
        await asyncio.to_thread(joined.wait, SECONDS)

    async def join():
        made = asyncio.ensure_future(shared(turns, "1", compute))
        await settled()
        joined.set()
        return await made

    thread = threading.Thread(target=lambda: asyncio.run(lead()))
    thread.start()
    assert leads.wait(SECONDS)
    assert asyncio.run(join()) == "result 1"
    thread.join(SECONDS)


def test_calls_give_up_on_a_flight_whose_event_loop_stands_still():
    turns = TurnCache()
    loop = asyncio.new_event_loop()

    async def compute():
        await asyncio.Event().wait()

    lead = loop.create_task(shared(turns, "1", compute))
    loop.run_until_complete(settled())
    with pytest.raises(errors.DeadlineExceededError):
        asyncio.run(turns.shared("1", compute, 0.01))
    lead.cancel()
    loop.run_until_complete(asyncio.gather(lead, return_exceptions=True))
    loop.run_until_complete(settled())
    loop.close()


def test_closing_ends_the_calls_that_wait():
    async def run():
        turns, source = TurnCache(), Source()
        source.gate = asyncio.Event()
        call = asyncio.ensure_future(shared(turns, "1", source.compute))
        await settled()
        turns.close()
        with pytest.raises(errors.StoreClosedError):
            await call
        with pytest.raises(errors.StoreClosedError):
            await shared(turns, "2", source.compute)
        await settled()
        assert source.cancelled == 1

    asyncio.run(run())


class Twin:
    """The same by lists: flights in their order, and the kept result."""

    def __init__(self):
        self.now = 0
        self.number = 0
        self.flights = {}
        self.kept = None  # turn, number, result, until

    def get(self, turn):
        if self.kept is None or self.kept[0] != turn:
            return None
        return None if self.now >= self.kept[3] else self.kept[2]

    def call(self, turn, caller):
        """The result that is kept; None for a call that waits."""
        found = self.get(turn)
        if found is None:
            if turn not in self.flights:
                self.number += 1
                self.flights[turn] = (self.number, [])
            self.flights[turn][1].append(caller)
        return found

    def land(self, turn, *, is_cacheable, seconds):
        number, callers = self.flights.pop(turn)
        if is_cacheable and (self.kept is None or self.kept[1] < number):
            until = self.now + seconds
            self.kept = (turn, number, f"{turn} {number}", until)
        return dict.fromkeys(callers, f"{turn} {number}")

    def leave(self, caller):
        for turn, (_, callers) in list(self.flights.items()):
            if caller in callers:
                callers.remove(caller)
                if not callers:
                    del self.flights[turn]


TURNS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("call"), TURNS),
    st.tuples(st.just("call"), TURNS),
    st.tuples(st.just("land"), TURNS, st.booleans(), st.sampled_from([math.inf, 0, 1, 3])),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("wait"), st.integers(1, 2)),
)


@pytest.mark.requirement("T008")
@examples(150)
@given(st.lists(STEPS, max_size=25))
@example([("call", "a"), ("land", "a", True, 1), ("wait", 1)])
@example([("call", "a"), ("call", "b"), ("land", "b", True, 3), ("land", "a", True, 3)])
def test_turns_are_those_of_a_naive_twin(steps):
    asyncio.run(compared(steps))


async def compared(steps):
    twin = Twin()
    turns = TurnCache(timer=lambda: twin.now)
    gates, calls, expected = {}, [], {}

    def compute_of(turn):
        async def compute():
            gate = asyncio.get_running_loop().create_future()
            gates[turn] = gate
            text = f"{turn} {twin.flights[turn][0]}"
            is_cacheable, seconds = await gate
            return turn_of(text, seconds=seconds if is_cacheable else NOT_CACHED.seconds)

        return compute

    for step, *given_ in steps:
        if step == "call":
            (turn,) = given_
            found = twin.call(turn, len(calls))
            if found is not None:
                expected[len(calls)] = found
            calls.append(asyncio.ensure_future(shared(turns, turn, compute_of(turn))))
        elif step == "land" and given_[0] in twin.flights:
            turn, is_cacheable, seconds = given_
            expected |= twin.land(turn, is_cacheable=is_cacheable, seconds=seconds)
            gates[turn].set_result((is_cacheable, seconds))
        elif step == "leave" and given_[0] < len(calls) and given_[0] not in expected:
            twin.leave(given_[0])
            calls[given_[0]].cancel()
        elif step == "wait":
            twin.now += given_[0]
        await settled()
        done = {
            at: call.result()
            for at, call in enumerate(calls)
            if call.done() and not call.cancelled()
        }
        assert done == expected
        assert {turn: text_of(turns.cached(turn)) for turn in "abc"} == {
            turn: twin.get(turn) for turn in "abc"
        }
    turns.close()
    await asyncio.gather(*calls, return_exceptions=True)
