"""The circuit breaker, by example and beside a naive twin."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError
from mnemic.policy.limits import CircuitBreaker
from tests.support.threads import run_together
from tests.support.tiers import examples


class Timer:
    """Seconds that stand still until they are set."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def breaker(threshold=3, seconds=30.0):
    timer = Timer()
    return CircuitBreaker(threshold, seconds, clock=timer), timer


def fail(circuit, times=1):
    for _ in range(times):
        circuit.admit().failed()


def test_a_permit_has_one_outcome():
    circuit, _ = breaker(threshold=2)
    permit = circuit.admit()
    permit.failed()
    permit.failed()
    permit.succeeded()
    fail(circuit)
    assert circuit.state == "open"


def test_of_many_threads_one_gets_the_probe():
    circuit, timer = breaker(threshold=1)
    fail(circuit)
    timer.now += 30
    permits = []
    run_together(*[lambda: permits.append(circuit.admit())] * 16)
    assert sum(permit is not None for permit in permits) == 1


def test_failures_of_many_threads_all_count():
    circuit, _ = breaker(threshold=400)

    def work():
        for _ in range(50):
            permit = circuit.admit()
            if permit is not None:
                permit.failed()

    run_together(*[work] * 8)
    assert circuit.state == "open"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"failure_threshold": 0}, "failure_threshold"),
        ({"failure_threshold": True}, "failure_threshold"),
        ({"recovery_seconds": 0}, "recovery_seconds"),
        ({"recovery_seconds": float("nan")}, "recovery_seconds"),
        ({"recovery_seconds": float("inf")}, "recovery_seconds"),
        ({"clock": 3}, "clock"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(InvalidArgumentError, match=named):
        CircuitBreaker(**arguments)


class Twin:
    """The rules said once more: each call remembers what it was let in as."""

    def __init__(self, threshold, seconds):
        self.threshold, self.seconds = threshold, seconds
        self.row, self.opened, self.probe, self.number = 0, None, None, 0

    def admit(self, now):
        if self.opened is None:
            return ("plain", self.number)
        if self.opened != "testing":
            if now < self.opened + self.seconds:
                return None
            self.opened, self.probe = "testing", None
        if self.probe is not None and now < self.probe[1] + self.seconds:
            return None
        self.number += 1
        self.probe = (self.number, now)
        return ("probe", self.number)

    def settle(self, permit, outcome, now):
        kind, number = permit
        if kind == "probe":
            if self.opened != "testing" or self.probe is None or self.probe[0] != number:
                return
            self.probe = None
            if outcome == "failed":
                self.opened, self.row = now, 0
            elif outcome == "succeeded":
                self.opened, self.row = None, 0
                self.number += 1
        elif self.opened is None and number == self.number:
            self.row = {"failed": self.row + 1, "succeeded": 0, "release": self.row}[outcome]
            if self.row >= self.threshold:
                self.opened, self.row = now, 0
                self.number += 1

    @property
    def state(self):
        return {None: "closed", "testing": "half_open"}.get(self.opened, "open")


ADMIT, FAIL = ("admit", 0), ("failed", 0)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 4.0, 5.0])),
        st.just(ADMIT),
        st.tuples(st.sampled_from(["failed", "succeeded", "release"]), st.integers(0, 5)),
    ),
    max_size=60,
)


@pytest.mark.requirement("T087")
@examples(300)
@given(st.integers(1, 3), STEPS)
@example(1, [ADMIT, ADMIT, FAIL, ("succeeded", 0), ADMIT])  # a call that began before it opened
@example(1, [ADMIT, ADMIT, FAIL, ("wait", 5.0), ADMIT, FAIL])  # and one that ends beside the probe
@example(1, [ADMIT, FAIL, ("wait", 5.0), ADMIT, ("wait", 5.0), ADMIT, ("succeeded", 0), ADMIT])
def test_it_does_as_its_naive_twin(threshold, steps):
    circuit, timer = breaker(threshold, 5.0)
    twin, permits = Twin(threshold, 5.0), []
    for step, value in steps:
        if step == "wait":
            timer.now += value
        elif step == "admit":
            pair = circuit.admit(), twin.admit(timer.now)
            assert (pair[0] is None) == (pair[1] is None)
            if pair[0] is not None:
                permits.append(pair)
        elif permits:
            permit, other = permits.pop(value % len(permits))
            getattr(permit, step)()
            twin.settle(other, step, timer.now)
        assert circuit.state == twin.state
