"""How long deleted memories can be restored, by the option `retention`."""

from datetime import timedelta
from decimal import Decimal

import pytest

from mnemic.errors import InvalidArgumentError
from tests.support.clock import DAY, NOON, Clock
from tests.support.doors import opened

MOMENT = timedelta(microseconds=1)


def deleted(memory):
    kept = memory.add("a walk by the river")
    memory.delete(kept.id)
    return kept.id


@pytest.mark.requirement("R005", "R034", "R036", "C097", "C201")
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, timedelta(days=90)),
        ({"retention": timedelta(days=7)}, timedelta(days=7)),
        ({"retention": 7}, timedelta(days=7)),
        ({"retention": 0.5}, timedelta(hours=12)),
        ({"retention": timedelta(hours=1)}, timedelta(hours=1)),
    ],
)
def test_a_deleted_memory_is_kept_as_long_as_the_option_says(options, kept):
    clock = Clock()
    with opened(clock=clock, **options) as memory:
        one = deleted(memory)
        clock.now = NOON + kept
        assert memory.purge() == 0
        assert memory.restore(one)
        memory.delete(one)
        clock.now += kept + MOMENT
        assert not memory.restore(one)
        assert memory.purge() == 1
        assert list(memory.list(include_deleted=True)) == []


@pytest.mark.requirement("C201")
def test_without_an_end_it_is_kept_until_it_is_deleted_permanently():
    clock = Clock()
    with opened(clock=clock, retention=None) as memory:
        first, second = deleted(memory), deleted(memory)
        clock.now = NOON + 4000 * DAY
        assert memory.purge() == 0
        assert memory.restore(first)
        assert memory.purge(older_than=timedelta(days=1)) == 1
        assert not memory.restore(second)


def test_a_retention_of_nothing_leaves_nothing_to_restore():
    clock = Clock()
    with opened(clock=clock, retention=0) as memory:
        one = deleted(memory)
        clock.now += MOMENT
        assert not memory.restore(one)
        assert memory.purge() == 1


@pytest.mark.requirement("R035")
def test_a_permanent_deletion_does_not_wait_for_the_retention():
    with opened(retention=None) as memory:
        kept = memory.add("a walk by the river")
        assert memory.delete(kept.id, permanent=True) == 1
        assert not memory.restore(kept.id)
        assert list(memory.list(include_deleted=True)) == []


def test_the_retention_counts_from_the_deletion_whatever_it_was_then(tmp_path):
    clock = Clock()
    with opened(tmp_path / "a.db", clock=clock, retention=30) as memory:
        one = deleted(memory)
    clock.now = NOON + 8 * DAY
    with opened(tmp_path / "a.db", clock=clock, retention=7) as memory:
        assert not memory.restore(one)
    with opened(tmp_path / "a.db", clock=clock, retention=30) as memory:
        assert memory.restore(one)


@pytest.mark.parametrize(
    "wrong",
    [
        -1,
        timedelta(days=-1),
        True,
        float("nan"),
        float("inf"),
        365_001,
        timedelta.max,
        10**400,
        "90 days",
        Decimal(90),
        [90],
    ],
)
def test_a_retention_is_a_time_or_a_number_of_days(tmp_path, wrong):
    with pytest.raises(InvalidArgumentError, match="retention must be"):
        opened(tmp_path / "a.db", retention=wrong)
    assert not (tmp_path / "a.db").exists()
