"""Rate limiters, by example and beside naive twins that remember every search."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidArgumentError
from mnemic.policy.limits import FixedWindow, TokenBucket
from tests.policy.test_breaker import Timer
from tests.support.threads import run_together
from tests.support.tiers import examples


def window(limit=2, seconds=10, **options):
    timer = Timer()
    return FixedWindow(limit, seconds, clock=timer, **options), timer


def bucket(rate=1, burst=2, **options):
    timer = Timer()
    return TokenBucket(rate, burst, clock=timer, **options), timer


def taken(limiter, user="alice", times=1):
    return [bool(limiter.acquire(user)) for _ in range(times)]


@pytest.mark.parametrize("make", [window, bucket])
def test_each_user_has_an_allowance_and_so_have_those_without_a_user(make):
    limiter, _ = make()
    assert taken(limiter, "alice", 3) == [True, True, False]
    assert taken(limiter, None, 3) == [True, True, False]
    assert taken(limiter, "", 3) == [True, True, False]
    assert taken(limiter, "bob", 3) == [True, True, False]


@pytest.mark.parametrize("make", [window, bucket])
def test_checking_takes_nothing_and_answers_as_the_next_search_will(make):
    limiter, timer = make()
    for _ in range(8):
        checked = [limiter.check("alice") for _ in range(3)]
        assert checked == [limiter.acquire("alice")] * 3
        timer.now += 0.25
    assert limiter.check("bob")
    assert len(limiter) == 1


@pytest.mark.parametrize("make", [window, bucket])
def test_idle_users_are_forgotten_as_others_come(make):
    limiter, timer = make(max_users=1000)
    for number in range(5000):
        timer.now += 1
        assert limiter.acquire(f"user {number}")
    assert len(limiter) <= 20


@pytest.mark.parametrize("make", [window, bucket])
def test_no_user_gets_a_fresh_allowance_by_the_arrival_of_many_others(make):
    limiter, timer = make(max_users=10)
    assert taken(limiter, "alice", 3) == [True, True, False]
    granted = [bool(limiter.acquire(f"user {number}")) for number in range(100)]
    assert granted == [True] * 9 + [False] * 91
    assert not limiter.acquire("alice")
    assert len(limiter) == 10
    wait = limiter.acquire("late").retry_after
    assert wait > 0
    timer.now += wait
    assert limiter.acquire("late")
    assert len(limiter) <= 10


@pytest.mark.parametrize("make", [window, bucket])
def test_threads_together_get_the_limit_and_no_more(make):
    limiter, _ = make()
    answers = []
    run_together(*[lambda: answers.extend(taken(limiter, times=20))] * 8)
    assert sum(answers) == 2


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FixedWindow(0, 1), "limit"),
        (lambda: FixedWindow(1, 0), "seconds"),
        (lambda: FixedWindow(1, float("inf")), "seconds"),
        (lambda: FixedWindow(1, 1, max_users=0), "max_users"),
        (lambda: TokenBucket(0, 1), "rate"),
        (lambda: TokenBucket(-1, 1), "rate"),
        (lambda: TokenBucket(1, 0), "burst"),
        (lambda: TokenBucket(1, 1.5), "burst"),
        (lambda: TokenBucket(1, 1, clock=1), "clock"),
    ],
)
def test_wrong_arguments_are_named(make, named):
    with pytest.raises(InvalidArgumentError, match=named):
        make()


STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([0, 0, 0, 0.25, 0.5, 1, 3, 7])), max_size=60
)


@examples(200)
@given(st.integers(1, 4), st.sampled_from([0.5, 1, 3]), STEPS)
def test_a_window_does_as_its_naive_twin(limit, seconds, steps):
    limiter, timer = window(limit, seconds)
    windows = {"a": [], "b": []}  # of each user: the times of the searches in the last window
    for user, wait in steps:
        timer.now += wait
        times = windows[user]
        if times and timer.now - times[0] >= seconds:
            times.clear()
        if len(times) < limit:
            times.append(timer.now)
            assert limiter.acquire(user) == (True, 0)
        else:
            assert limiter.acquire(user) == (False, times[0] + seconds - timer.now)


@examples(200)
@given(st.integers(1, 4), st.sampled_from([0.1, 0.3, 1, 2.5]), STEPS)
def test_a_bucket_does_as_its_naive_twin(burst, rate, steps):
    limiter, timer = bucket(rate, burst)
    exact_rate = Fraction(str(rate))
    tokens = {"a": Fraction(burst), "b": Fraction(burst)}
    for user, wait in steps:
        timer.now += wait
        for each, held in tokens.items():
            tokens[each] = min(Fraction(burst), held + exact_rate * Fraction(wait))
        answer = limiter.acquire(user)
        assert answer.is_granted == (tokens[user] >= 1)
        if answer.is_granted:
            tokens[user] -= 1
        else:
            assert answer.retry_after == pytest.approx(float((1 - tokens[user]) / exact_rate))


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0, 0, 0.5, 2])), max_size=80))
def test_with_few_places_no_user_exceeds_the_limit_in_any_window(steps):
    limiter, timer = window(limit=2, seconds=3, max_users=3)
    granted = {}
    for user, wait in steps:
        timer.now += wait
        if limiter.acquire(f"{user}"):
            granted.setdefault(user, []).append(timer.now)
    for times in granted.values():
        windows = []
        for moment in times:
            if not windows or moment - windows[-1][0] >= 3:
                windows.append([])
            windows[-1].append(moment)
        assert max(map(len, windows)) <= 2
    assert len(limiter) <= 3
