"""Memories are chosen and ordered by score and time at once."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import interleaved
from mnemic.context.budget import enforce_budget
from mnemic.context.interleaving import interleave
from mnemic.context.packing import deduplicate
from mnemic.errors import CountMismatchError, InvalidArgumentError
from mnemic.model.payload import PayloadMemory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def memory(name, score, minutes):
    timestamp = NOON + timedelta(minutes=minutes)
    return PayloadMemory(id=name, content="tea", score=score, timestamp=timestamp)


def names(memories):
    return "".join(memory.id for memory in memories)


FIVE = [
    memory("a", 0.9, 1),
    memory("b", 0.8, 2),
    memory("c", 0.7, 3),
    memory("d", 0.3, 9),
    memory("e", 0.2, 8),
]


@pytest.mark.requirement("R293", "R323", "C033")
def test_places_alternate_between_the_best_and_the_newest_of_all_candidates():
    result = interleave(FIVE, 4)
    assert names(result) == "adbe"
    assert [one.provenance.position for one in result] == [0, 1, 2, 3]
    assert FIVE[0].provenance.position is None


@pytest.mark.requirement("R289", "C038")
@pytest.mark.parametrize(
    ("strategy", "ratio", "order"),
    [
        ("alternate", None, "adb"),
        ("alternate", 0.5, "adb"),
        ("score_first", None, "abc"),
        ("score_first", 0.5, "abd"),
        ("score_first", 0.34, "ade"),
        ("score_first", 0, "dec"),
        ("recency_first", None, "dec"),
        ("recency_first", 0.5, "dea"),
        ("recency_first", 0.0, "abc"),
        ("recency_first", 1, "dec"),
    ],
)
def test_the_first_list_has_its_share_of_the_places(strategy, ratio, order):
    assert names(interleave(FIVE, 3, strategy=strategy, ratio=ratio)) == order


def test_the_share_is_one_of_the_limit_even_where_there_are_fewer_memories():
    assert names(interleave(FIVE, 10, strategy="score_first", ratio=0.3)) == "abcde"
    assert names(interleave(FIVE, 10, strategy="score_first", ratio=0.1)) == "adecb"


@pytest.mark.requirement("C039")
def test_ties_of_score_go_to_the_newer_then_to_the_smaller_id_in_any_order_of_the_input():
    tied = [memory("c", 0.5, 1), memory("b", 0.5, 2), memory("a", 0.5, 2), memory("d", 0.6, 0)]
    for order in (tied, tied[::-1]):
        assert names(interleave(order, 4, strategy="score_first")) == "dabc"
        assert names(interleave(order, 4, strategy="recency_first")) == "abcd"


def test_times_a_microsecond_apart_in_far_years_are_in_order():
    late = datetime(9999, 12, 31, tzinfo=UTC)
    pair = [
        PayloadMemory(id="a", content="tea", timestamp=late),
        PayloadMemory(id="b", content="tea", timestamp=late + timedelta(microseconds=1)),
    ]
    assert names(interleave(pair, 2, strategy="recency_first")) == "ba"


def test_limits_of_nothing_and_beyond_all_memories():
    assert interleave(FIVE, 0) == []
    assert interleave([], 8) == []
    assert names(interleave(FIVE, 10**30)) == "adbec"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "newest"}, "one of alternate, score_first, recency_first, got 'newest'"),
        ({"strategy": "score_first", "ratio": 1.5}, "from 0 to 1 or None, got 1.5"),
        ({"strategy": "score_first", "ratio": float("nan")}, "from 0 to 1 or None, got nan"),
        ({"ratio": 0.7}, "0.5 or None with the strategy 'alternate'.*got 0.7"),
        ({"limit": -1}, "from 0 to inf, got -1"),
    ],
)
def test_errors_name_the_value_and_the_range(arguments, message):
    limit = arguments.pop("limit", 3)
    with pytest.raises(InvalidArgumentError, match=message):
        interleave(FIVE, limit, **arguments)


def test_a_score_without_order_is_refused_by_its_place_in_the_input():
    with pytest.raises(InvalidArgumentError, match=r"memories\[1\]\.score .* found NaN"):
        interleave([memory("b", 0.5, 0), memory("a", float("nan"), 0)], 2)
    with pytest.raises(InvalidArgumentError, match=r"scores\[1\] must be a number, found NaN"):
        interleaved([0.5, float("nan")], [0, 0], 2, "alternate", 0.5)


def test_the_core_refuses_unequal_lists_and_unknown_strategies():
    with pytest.raises(CountMismatchError, match="2 scores were given with 1 times"):
        interleaved([0.5, 0.4], [0], 2, "alternate", 0.5)
    with pytest.raises(InvalidArgumentError, match='found "newest"'):
        interleaved([0.5], [0], 2, "newest", 0.5)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12),
    st.integers(0, 14),
    st.sampled_from(["alternate", "score_first", "recency_first"]),
    st.randoms(use_true_random=False),
)
def test_the_order_depends_on_the_memories_alone_and_repeats_none(values, limit, strategy, random):
    memories = [memory(chr(97 + at), *value) for at, value in enumerate(values)]
    result = interleave(memories, limit, strategy=strategy)
    assert len(set(names(result))) == len(result) == min(limit, len(memories))
    random.shuffle(memories)
    assert interleave(memories, limit, strategy=strategy) == result


def test_naive_times_are_taken_as_utc():
    naive = PayloadMemory(id="1", content="a", timestamp=datetime(2026, 5, 1, 12), score=0.5)  # noqa: DTZ001 - the point
    older = PayloadMemory(
        id="2", content="b", timestamp=datetime(2026, 5, 1, 11, tzinfo=UTC), score=0.5
    )
    assert [one.id for one in interleave([older, naive], 2)] == ["1", "2"]
    assert [one.id for one in deduplicate([older, naive])] == ["2", "1"]
    assert len(enforce_budget([older, naive], 500)) == 2
