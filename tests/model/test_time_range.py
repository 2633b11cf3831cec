"""A range of creation times: days and texts are times too, and a range ends after it begins."""

import inspect
from datetime import UTC, date, datetime, timedelta

import pytest

from mnemic import Memory, MemoryFilter
from mnemic.errors import FilterError, InvalidEntryError
from tests.support.recall import NamedSimilarities

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
CALLS = {
    "search": lambda memory, **times: memory.search("tea", **times),
    "context": lambda memory, **times: memory.context("tea", **times),
    "similar": lambda memory, **times: memory.similar(memory.list()[-1].id, **times),
    "recent": lambda memory, **times: memory.recent(**times),
    "important": lambda memory, **times: memory.important(**times),
    "recall": lambda memory, **times: memory.recall("", mode="recent", **times),
    "retrieve": lambda memory, **times: memory.retrieve("tea", **times),
}


@pytest.fixture(scope="module")
def memory():
    with Memory(":memory:", embedder=NamedSimilarities()) as opened:
        for at in range(3):
            opened.add(f"tea {at} ~0.9", created_at=NOON + at * DAY)
        yield opened


def test_the_calls_are_all_that_have_a_range():
    verbs = inspect.getmembers(Memory, inspect.isfunction)
    ranged = {
        name
        for name, verb in verbs
        if {"since", "until"} <= inspect.signature(verb).parameters.keys()
    }
    assert ranged <= CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_a_range_that_ends_before_it_begins_is_refused(memory, name):
    for since, until in ((NOON, NOON - DAY), ("2026-05-02", date(2026, 5, 1))):
        with pytest.raises(FilterError, match=r"^the range ends before it begins: since ") as wrong:
            CALLS[name](memory, since=since, until=until)
        assert str(wrong.value).endswith("; exchange the two")
    assert "since 2026-05-02T00:00:00+00:00 until 2026-05-01T00:00:00+00:00" in str(wrong.value)
    assert not CALLS[name](memory, since=NOON, until=NOON)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("since", "until"),
    [
        (date(2026, 5, 2), date(2026, 5, 3)),
        ("2026-05-02", "2026-05-03"),
        (datetime(2026, 5, 2, tzinfo=UTC), datetime(2026, 5, 3)),  # noqa: DTZ001 - taken as UTC
    ],
)
def test_a_day_begins_at_midnight_in_utc(memory, name, since, until):
    found = CALLS[name](memory, since=since, until=until)
    assert [hit.content for hit in getattr(found, "hits", found)] == ["tea 1 ~0.9"]


def test_a_day_stands_in_filters_and_fields_too(memory):
    assert memory.count(filters={"created_at": {"gte": date(2026, 5, 2)}}) == 2
    assert memory.count(filters={"created_at": {"lt": date(2026, 5, 2)}}) == 1
    assert len(memory.list(filters=MemoryFilter(created_after=date(2026, 5, 3)))) == 1
    filtered = memory.retrieve("tea", filters={"created_at": {"gte": date(2026, 5, 3)}})
    assert [hit.content for hit in filtered] == ["tea 2 ~0.9"]
    with Memory(":memory:", embedder=None) as other:
        stored = other.add("coffee", created_at=date(2026, 5, 4))
    assert stored.created_at == datetime(2026, 5, 4, tzinfo=UTC)


def test_what_is_no_time_is_refused(memory):
    with pytest.raises(FilterError, match=r"since: found 'noon' .*allowed: a datetime, a date or"):
        memory.search("tea", since="noon")
    with pytest.raises(FilterError, match="until: found 12 "):
        memory.search("tea", until=12)
    with pytest.raises(InvalidEntryError, match="created_at is not an ISO 8601 time"):
        memory.add("x", created_at="noon")
