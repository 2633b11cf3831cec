"""Memories are chosen and ordered by score and time at once."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemic._core import interleaved
from mnemic.context.budget import enforce_budget, interleave
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


def test_naive_times_are_taken_as_utc():
    naive = PayloadMemory(id="1", content="a", timestamp=datetime(2026, 5, 1, 12), score=0.5)  # noqa: DTZ001 - the point
    older = PayloadMemory(
        id="2", content="b", timestamp=datetime(2026, 5, 1, 11, tzinfo=UTC), score=0.5
    )
    assert [one.id for one in interleave([older, naive], 2)] == ["1", "2"]
    assert [one.id for one in deduplicate([older, naive])] == ["2", "1"]
    assert len(enforce_budget([older, naive], 500)) == 2
