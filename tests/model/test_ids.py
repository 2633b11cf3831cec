"""Ids of version 7: their time, their order, and threads."""

from datetime import timedelta

from mnemic.model.ids import UuidFactory
from tests.support.clock import NOON
from tests.support.threads import run_together


def test_ids_are_version_7_and_carry_the_time_of_the_clock():
    made = UuidFactory()(NOON)
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == int(NOON.timestamp() * 1000)


def test_ids_grow_within_a_millisecond_and_when_the_clock_goes_back():
    factory = UuidFactory()
    times = [NOON] * 500 + [NOON - timedelta(days=1)] * 500 + [NOON + timedelta(seconds=1)] * 500
    ids = [factory(time) for time in times]
    assert ids == sorted(set(ids))


def test_an_overflowing_counter_borrows_from_the_next_millisecond():
    factory = UuidFactory(random_bytes=lambda size: b"\xff" * size)
    first = factory(NOON)
    factory._counter = (1 << 74) - 1
    assert factory(NOON) > first
    assert factory(NOON).version == 7


def test_equal_randomness_and_clock_give_equal_ids():
    def ids():
        factory = UuidFactory(random_bytes=bytes)
        return [factory(NOON) for _ in range(3)]

    assert ids() == ids()


def test_threads_never_get_the_same_id():
    factory = UuidFactory()
    made = []

    def work():
        made.extend([factory(NOON) for _ in range(2000)])

    run_together(*[work] * 4)
    assert len(set(made)) == 8000
