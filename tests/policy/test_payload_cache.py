"""The cache of payloads, by example and beside a naive twin."""

from sys import getsizeof
from uuid import uuid4

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemic.model.payload import DroppedMemory, PayloadMemory, Provenance
from mnemic.policy import RetrievalConfig, RetrievalMetadata, RetrievalPayload
from mnemic.policy.guard import CachedPayload, PayloadCache, PayloadKey, bytes_of
from mnemic.policy.request import MET
from tests.support.clock import HOUR, MICROSECOND, NOON, SECOND
from tests.support.threads import run_together
from tests.support.tiers import examples

ALICE, BOB = ("aide", "alice"), ("aide", "bob")
MINUTE = 60 * SECOND


def made(**options):
    return PayloadCache(MINUTE, **options)


def put(cache, question="q", user=ALICE, *, revision=1, at=NOON, expires_at=None, size=100):
    key = PayloadKey(user, question)
    with cache.computing(user) as computation:
        kept = CachedPayload(f"payload of {question}", revision, at, expires_at, size)
        cache.put(computation, key, kept)
    return key


def test_a_clock_that_goes_back_returns_nothing():
    cache = made()
    key = put(cache)
    assert cache.get(key, NOON - MICROSECOND) is None


def test_what_was_computed_during_a_change_is_not_kept():
    cache = made()
    with cache.computing(ALICE) as outdated, cache.computing(BOB) as other:
        cache.drop_users([ALICE])
        for computation, user in ((outdated, ALICE), (other, BOB)):
            cache.put(computation, PayloadKey(user, "q"), CachedPayload("p", 1, NOON, None, 1))
    assert cache.get(PayloadKey(ALICE, "q"), NOON) is None
    assert cache.get(PayloadKey(BOB, "q"), NOON)


def test_a_search_that_begins_after_the_change_is_kept():
    cache = made()
    with cache.computing(ALICE):
        cache.drop_users([ALICE])
        key = put(cache)
    assert cache.get(key, NOON)


def test_nothing_is_remembered_of_searches_that_ended():
    cache = made()
    with pytest.raises(ValueError, match="failed"), cache.computing(ALICE):
        raise ValueError("failed")
    put(cache)
    assert cache._computing == {}


def test_one_user_has_an_eighth_and_all_have_a_bound():
    cache = made(size=16)
    keys = [put(cache, number) for number in range(5)]
    assert [cache.get(key, NOON) is not None for key in keys] == [False] * 3 + [True] * 2
    for number in range(40):
        put(cache, "q", ("aide", f"user {number}"))
    assert len(cache) <= 16


def test_a_payload_larger_than_a_users_part_is_not_kept():
    cache = made(max_bytes=800)
    assert cache.get(put(cache, size=101), NOON) is None
    assert cache.get(put(cache, size=100), NOON)


def test_old_payloads_are_dropped_without_being_looked_up():
    cache = made()
    put(cache, "old")
    put(cache, "new", BOB, at=NOON + HOUR)
    assert len(cache) == 1
    key = put(cache, "newer", at=NOON + HOUR + SECOND)
    assert cache.get(key, NOON + HOUR + MINUTE)
    assert len(cache) == 2
    assert cache.get(key, NOON + HOUR + MINUTE + SECOND)
    assert len(cache) == 1


def test_reprs_hide_questions_and_payloads():
    cache = made()
    key = put(cache, ("secret question",))
    shown = repr((cache, key, cache.get(key, NOON)))
    assert "secret" not in shown
    assert "payload of" not in shown


def test_threads_may_put_get_and_drop_together():
    cache = made(size=32, max_bytes=4000)

    def work(name):
        for number in range(300):
            key = put(cache, number % 5, ("aide", name))
            cache.get(key, NOON)
            if number % 7 == 0:
                cache.drop_users([("aide", name)])

    run_together(*[lambda name=name: work(name) for name in ("a", "b", "a", None)])
    cache.drop_users([("aide", name) for name in ("a", "b", None)])
    assert (len(cache), cache._payloads.used_bytes, cache._payloads._parts, cache._computing) == (
        0,
        0,
        {},
        {},
    )


def sized(*contents, **fields):
    """Return the estimate of a payload with memories of these contents, and its real bytes."""
    memories = tuple(
        PayloadMemory(id=str(uuid4()), content=content, timestamp=NOON + number * SECOND, **fields)
        for number, content in enumerate(contents)
    )
    dropped = tuple(
        DroppedMemory(id=str(uuid4()), step="budget", reason=f"It does not fit, {number}.", score=1)
        for number in range(8)
    )
    metadata = RetrievalMetadata(trigger=MET, config=RetrievalConfig(), dropped=dropped)
    payload = RetrievalPayload(memories=memories, metadata=metadata)
    return bytes_of(payload), real_bytes(payload)


def real_bytes(value):
    if isinstance(value, RetrievalConfig):  # shared by all
        return 0
    if isinstance(value, msgspec.Struct):
        fields = [getattr(value, name) for name in value.__struct_fields__]
        return getsizeof(value) + sum(map(real_bytes, fields))
    inner = sum(map(real_bytes, value)) if isinstance(value, tuple) else 0
    return 0 if value is None else getsizeof(value) + inner


@pytest.mark.parametrize(
    ("contents", "fields"),
    [
        ([], {}),
        (["short"] * 20, {}),
        (["x" * 5000, "é" * 5000, "音" * 5000], {"speaker": "s" * 900, "role": "r" * 90}),
        (["x"], {"provenance": Provenance(duplicate_ids=tuple(map(str, range(500))))}),
    ],
)
def test_the_estimate_of_a_payload_is_no_less_than_its_bytes(contents, fields):
    estimate, real = sized(*contents, **fields)
    assert real <= estimate <= 4 * real + 8192


QUESTIONS = st.tuples(st.sampled_from([ALICE, BOB, ("aide", None)]), st.integers(0, 2))
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            QUESTIONS,
            st.integers(1, 2),
            st.sampled_from([None, SECOND, 40 * SECOND]),
        ),
        st.tuples(st.just("get"), QUESTIONS, st.sampled_from([None, 1, 2]), st.none()),
        st.tuples(st.just("change"), QUESTIONS, st.none(), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 25, 60]), st.none(), st.none()),
    ),
    max_size=50,
)


OF_ALICE = (ALICE, 0)


@examples(200)
@given(STEPS)
@example([("put", OF_ALICE, 1, SECOND), ("wait", 1, None, None), ("get", OF_ALICE, 1, None)])
@example([("put", OF_ALICE, 1, None), ("wait", 60, None, None), ("get", OF_ALICE, 1, None)])
@example([("put", OF_ALICE, 1, None), ("get", OF_ALICE, 2, None), ("get", OF_ALICE, None, None)])
def test_with_space_it_does_as_its_naive_twin(steps):
    cache, twin, now = made(), {}, NOON
    for step, what, number, lasting in steps:
        if step == "wait":
            now += what * SECOND
            continue
        user, question = what
        if step == "put":
            ends = None if lasting is None else now + lasting
            put(cache, question, user, revision=number, at=now, expires_at=ends)
            twin[what] = (number, now, ends)
        elif step == "change":
            cache.drop_users([user])
            twin = {key: value for key, value in twin.items() if key[0] != user}
        else:
            cached = cache.get(PayloadKey(user, question), now, revision=number)
            revision, since, ends = twin.get(what, (None, now, None))
            is_current = number is None or number == revision
            is_valid = now - since <= MINUTE and (ends is None or now < ends)
            assert (cached is not None) == (revision is not None and is_current and is_valid)
            if revision is not None and not (is_current and is_valid):
                del twin[what]
