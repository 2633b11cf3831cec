"""Days that a query names are those of the memory's time zone."""

import time
from array import array
from bisect import bisect_right
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.model.time_zones import offset_changes
from mnemic.policy import RetrievalPolicy, RetrievalRequest
from tests.support.embedders import WordEmbedder

pytestmark = pytest.mark.requirement("C214")

ZONES = [
    "Asia/Tokyo",
    "America/Los_Angeles",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
]


def asked_at(local, zone, **options):
    """Return a memory whose clock stands at a local time of a zone."""
    now = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    options = {"time_zone": zone, "embedder": WordEmbedder()} | options
    return Memory(":memory:", clock=lambda: now, **options)


def named(memory, query):
    """Return the begin and the end of the time that a query names."""
    memory.add("Fixed the bicycle", user_id="ana")
    [hit] = memory.search(query, user_id="ana", explain=True)
    return hit.why.date


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hour", ["00:30", "08:00", "16:00", "23:30"])
@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("What did I fix today?", "2026-11-28", "2026-11-28"),
        ("What did I fix yesterday?", "2026-11-27", "2026-11-27"),
        ("昨天我做了什么", "2026-11-27", "2026-11-27"),
        ("昨日は何をした", "2026-11-27", "2026-11-27"),
        ("어제 뭐 했어?", "2026-11-27", "2026-11-27"),
        ("three days ago", "2026-11-25", "2026-11-25"),
        ("on Friday", "2026-11-27", "2026-11-27"),
        ("im November 2026", "2026-11-01", "2026-11-30"),
        ("en noviembre de 2026", "2026-11-01", "2026-11-30"),
        ("en novembre 2026", "2026-11-01", "2026-11-30"),
    ],
)
def test_days_begin_at_midnight_in_the_time_zone(zone, hour, query, first, last):
    with asked_at(f"2026-11-28T{hour}", zone) as memory:
        start, end = named(memory, query)
    midnight = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone))
    behind = (datetime.fromisoformat(last) + timedelta(days=1)).replace(tzinfo=ZoneInfo(zone))
    assert (start, end) == (midnight, behind)


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Europe/Berlin", "2026-03-30T09:00", 23),
        ("Europe/Berlin", "2026-10-26T09:00", 25),
        ("America/Sao_Paulo", "2018-11-05T09:00", 23),  # midnight was skipped
        ("America/Sao_Paulo", "2018-02-18T09:00", 25),  # 23:00 came twice
    ],
)
def test_a_day_of_a_change_of_clocks_is_shorter_or_longer(zone, now, hours):
    with asked_at(now, zone) as memory:
        start, end = named(memory, "yesterday")
    assert end - start == timedelta(hours=hours)


def test_hours_ago_are_counted_from_the_local_time():
    with asked_at("2026-11-28T08:00", "Asia/Tokyo") as memory:
        start, _ = named(memory, "nine hours ago")
    assert start == datetime(2026, 11, 27, tzinfo=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize(("day", "other"), [(27, 26), (26, 27)])
def test_search_context_and_policy_mean_the_same_day(day, other):
    query = "What did I note yesterday?" if day == 27 else "What did I note two days ago?"
    with asked_at("2026-11-28T08:00", "Asia/Tokyo") as memory:
        for number in (other, day):
            noted_at = datetime(2026, 11, number, 12, tzinfo=ZoneInfo("Asia/Tokyo"))
            memory.add(f"I did note number {number}", user_id="ana", created_at=noted_at)
        found = memory.search(query, user_id="ana")
        shown = memory.context(query, user_id="ana").hits
        sent = RetrievalPolicy(memory).run(RetrievalRequest(query, "ana", "monday")).memories
    assert [hits[0].content for hits in (found, shown, sent)] == [f"I did note number {day}"] * 3


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system's zone cannot be set")
def test_the_systems_time_zone_counts_unless_another_is_given(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with asked_at("2026-11-28T08:00", "Asia/Tokyo", time_zone=None) as memory:
            start, _ = named(memory, "yesterday")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert start == datetime(2026, 11, 27, tzinfo=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize("zone", [ZoneInfo("Asia/Tokyo"), timezone(timedelta(hours=9))])
def test_a_time_zone_may_be_an_object(zone):
    with asked_at("2026-11-28T08:00", "Asia/Tokyo", time_zone=zone) as memory:
        start, _ = named(memory, "yesterday")
    assert start == datetime(2026, 11, 27, tzinfo=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize(
    "zone", ["", "Mars/Phobos", "../etc", "a\0b", "\ud800", "x" * 9999, 5, b"UTC"]
)
def test_what_is_no_time_zone_is_refused(zone):
    with pytest.raises(InvalidArgumentError, match="time_zone must be the name"):
        Memory(":memory:", embedder=None, time_zone=zone)


@given(
    st.sampled_from([*ZONES, "Africa/Casablanca", "Australia/Lord_Howe"]),
    st.integers(10**6, 4 * 10**9),
)
def test_offsets_are_those_of_the_zone_at_every_second(name, second):
    numbers = array("q", offset_changes(ZoneInfo(name)))
    at = max(bisect_right(numbers[::2], second * 10**6) - 1, 0)
    moment = datetime.fromtimestamp(second, ZoneInfo(name))
    assert timedelta(microseconds=numbers[2 * at + 1]) == moment.utcoffset()
