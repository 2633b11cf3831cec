"""Named days, naive times and dates in prompts are those of the time zone of memory or call."""

import sqlite3
import sys
import time
import zoneinfo
from array import array
from bisect import bisect_right
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory, MemoryEntry
from mnemic.compat import MemoryRetriever, RetrievalService
from mnemic.errors import FilterError, InvalidArgumentError, InvalidEntryError
from mnemic.model import MemoryQuery, time_zones
from mnemic.model.time_zones import offset_changes, zone_of
from mnemic.policy import PromptBlock, RetrievalConfig, RetrievalPolicy, RetrievalRequest
from tests.support.embedders import WordEmbedder

pytestmark = pytest.mark.requirement("C214")

naive = datetime.fromisoformat

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
        ("Was habe ich gestern repariert?", "2026-11-27", "2026-11-27"),
        ("il y a trois jours", "2026-11-25", "2026-11-25"),
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


def stored_offset(name, second):
    """The offset of a zone as the core is told it."""
    numbers = array("q", offset_changes(name))
    at = max(bisect_right(numbers[::2], second * 10**6) - 1, 0)
    return timedelta(microseconds=numbers[2 * at + 1])


@given(
    st.sampled_from([*ZONES, "Africa/Casablanca", "Australia/Lord_Howe"]),
    st.integers(10**6, 4 * 10**9),
)
def test_offsets_are_those_of_the_zone_at_every_second(name, second):
    moment = datetime.fromtimestamp(second, ZoneInfo(name))
    assert stored_offset(name, second) == moment.utcoffset()


# No zone has two changes closer together than these, from 1970 to 2100.
@pytest.mark.parametrize("name", ["America/Recife", "America/Boa_Vista", "Asia/Gaza"])
def test_changes_a_week_apart_are_found(name):
    zone, day = ZoneInfo(name), 86_400
    for second in range(10_957 * day, 27_000 * day, day):  # from the year 2000 on
        assert stored_offset(name, second) == datetime.fromtimestamp(second, zone).utcoffset()


@given(
    st.sampled_from([*ZONES, "Africa/Casablanca", "Australia/Lord_Howe", "+05:45"]),
    st.datetimes(naive("2001-01-01"), naive("2037-01-01"), timezones=st.just(UTC)),
    st.integers(0, 72 * 60),
    st.sampled_from([("What did I do today?", 0), ("What did I do yesterday?", 1)]),
)
def test_a_memory_is_of_the_named_day_if_its_local_date_is(zone, now, minutes, asked):
    query, days = asked
    at = now - timedelta(minutes=minutes)
    with Memory(":memory:", embedder=None, clock=lambda: now, time_zone=zone) as memory:
        memory.add("Bicycle fixed", created_at=at)
        found = memory.context(query)
    local = zone_of(zone)
    is_of_the_day = at.astimezone(local).date() == now.astimezone(local).date() - timedelta(days)
    assert len(found.hits) == is_of_the_day


TOKYO, NEW_YORK = "Asia/Tokyo", "America/New_York"
NOON = "2026-05-01T12:00"


def noon_in(zone):
    return naive(NOON).replace(tzinfo=zone_of(zone))


def in_calls(memory):
    """Return ways to say the same times through each call that takes them."""
    day = naive(NOON)
    later = (day + timedelta(seconds=1)).isoformat()
    return {
        "search": lambda: memory.search("tea", since=day, until=later),
        "context": lambda: memory.context("tea", since=NOON, until=later).hits,
        "recent": lambda: memory.recent(since=NOON),
        "retrieve": lambda: memory.retrieve("tea", since=day, until=later),
        "recall": lambda: memory.recall(mode="temporal", since=day, until=later),
        "a service": lambda: RetrievalService(memory).retrieve("tea", since=day, until=later),
        "a retriever": lambda: MemoryRetriever(memory).recall_temporal(day, day, user_id=None),
        "list": lambda: memory.list(filters={"created_at": day}),
        "distinct": lambda: memory.distinct("type", filters={"created_at": {"gte": NOON}}),
        "a query": lambda: memory.retrieve(MemoryQuery(filters={"created_at": {"lte": day}})),
        "a date": lambda: memory.search("tea", since=date(2026, 5, 1), until=date(2026, 5, 2)),
    }


@pytest.mark.parametrize("call", in_calls(None))
def test_a_time_without_a_zone_is_read_in_that_of_the_call(call):
    with Memory(":memory:", embedder=WordEmbedder(), time_zone=TOKYO) as memory:
        stored = memory.add("tea", created_at=naive(NOON))
        assert stored.created_at == noon_in(TOKYO)
        assert len(in_calls(memory)[call]()) == 1
        elsewhere = memory.scoped(time_zone=NEW_YORK)
        assert len(in_calls(elsewhere)[call]()) == (
            call == "a query"
        )  # it was 23:00 the day before
        elsewhere.add("tea", created_at=NOON, id=UUID(int=1))
        assert memory.get(UUID(int=1)).created_at == noon_in(NEW_YORK)


def test_an_expiry_and_deletions_without_a_zone_are_read_in_that_of_the_call():
    with Memory(":memory:", embedder=None, time_zone=TOKYO) as memory:
        first = memory.add({"content": "tea", "expires_at": "2126-05-01"})
        assert first.expires_at == datetime(2126, 4, 30, 15, tzinfo=UTC)
        changed = memory.update(first.id, expires_at=naive("2126-05-02"))
        assert changed.expires_at == datetime(2126, 5, 1, 15, tzinfo=UTC)
        memory.touch([first.id], expires_at="2126-05-03")
        assert memory.get(first.id).expires_at == datetime(2126, 5, 2, 15, tzinfo=UTC)
        memory.update_many(filters={"expires_at": "2126-05-03"}, importance=1)
        assert memory.get(first.id).importance == 1
        assert memory.delete_many(filters={"expires_at": "2126-05-03"}) == 1


@pytest.mark.parametrize(
    ("zone", "given", "utc"),
    [
        ("Europe/Berlin", naive("2026-03-29T02:30"), "2026-03-29T01:30"),  # is skipped
        ("Europe/Berlin", naive("2026-10-25T02:30"), "2026-10-25T00:30"),  # comes twice
        ("Europe/Berlin", naive("2026-10-25T02:30").replace(fold=1), "2026-10-25T01:30"),
        ("+05:45", "2026-05-01T00:00", "2026-04-30T18:15"),
        (TOKYO, "2026-05-01T00:00+02:00", "2026-04-30T22:00"),
    ],
)
def test_skipped_and_doubled_times_have_one_meaning(zone, given, utc):
    with Memory(":memory:", embedder=None, time_zone=zone) as memory:
        stored = memory.add("tea", created_at=given)
    assert stored.created_at == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "given"),
    [
        (TOKYO, "0001-01-01T08:59"),
        (TOKYO, naive("0001-01-01")),
        (NEW_YORK, naive("9999-12-31T23:59")),
        (NEW_YORK, "9999-12-31T23:59"),
    ],
)
def test_a_time_beyond_the_years_is_an_entry_error(zone, given):
    with Memory(":memory:", embedder=None, time_zone=zone) as memory:
        with pytest.raises(InvalidEntryError, match="created_at lies outside the years"):
            memory.add("tea", created_at=given)
        with pytest.raises(FilterError, match="in the years 1 to 9999"):
            memory.search("tea", since=given)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the system's zone cannot be set")
@pytest.mark.parametrize(
    ("variable", "name"),
    [
        (TOKYO, TOKYO),
        (f":{TOKYO}", TOKYO),
        (f"/usr/share/zoneinfo/{TOKYO}", TOKYO),
        ("JST-9", "local"),
        ("", "UTC"),
    ],
)
def test_a_record_is_read_in_the_systems_zone(monkeypatch, variable, name):
    monkeypatch.setenv("TZ", variable)
    time.tzset()
    try:
        with Memory(":memory:", embedder=None) as memory:
            zone, stored = memory.time_zone, memory.add("tea", created_at=NOON)
        record = MemoryEntry("tea", created_at=NOON)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert zone == name
    expected = noon_in(TOKYO if "9" in variable or TOKYO in variable else "UTC")
    assert stored.created_at == record.created_at == expected


def test_views_of_one_memory_mean_their_own_days():
    now = datetime(2026, 11, 28, 2, tzinfo=UTC)  # Saturday in Tokyo, Friday in New York
    with Memory(":memory:", embedder=WordEmbedder(), clock=lambda: now, time_zone=TOKYO) as memory:
        for day in (26, 27):
            noted_at = datetime(2026, 11, day, 12, tzinfo=UTC)
            memory.add(f"I did note number {day}", user_id="ana", created_at=noted_at)
        query, policy = "What did I note yesterday?", RetrievalPolicy(memory)
        for zone, day in [(TOKYO, 27), (NEW_YORK, 26)] * 2:  # the second time from caches
            view = memory.scoped(user_id="ana", time_zone=zone)
            request = RetrievalRequest(query, "ana", "monday", time_zone=zone)
            found = [
                view.search(query),
                view.context(query).hits,
                view.retrieve(query),
                memory.retrieve(query, user_id="ana", time_zone=zone),
                policy.run(request).memories,
                RetrievalPolicy(view).run(RetrievalRequest(query, "ana", "monday")).memories,
            ]
            assert [hits[0].content for hits in found] == [f"I did note number {day}"] * 6


@pytest.mark.requirement("C053")
@pytest.mark.parametrize(
    ("zone", "day", "time"),
    [
        (TOKYO, "2026-11-28", "2026-11-28T05:30:00+09:00"),
        (NEW_YORK, "2026-11-27", "2026-11-27T15:30:00-05:00"),
        ("Europe/London", "2026-11-27", "2026-11-27T20:30:00Z"),
        ("local", "2026-11-27", "2026-11-27T20:30:00Z"),
    ],
)
def test_prompts_have_the_dates_of_the_zone_and_times_with_their_offset(zone, day, time):
    at = datetime(2026, 11, 27, 20, 30, tzinfo=UTC)
    with Memory(":memory:", embedder=None, time_zone="Asia/Kathmandu") as memory:
        memory.add("tea", created_at=at, type="conversation", user_id="ana")
        view = memory.scoped(user_id="ana", time_zone=zone)
        assert str(view.context("tea")) == f"[1] {day} tea"
        payload = RetrievalPolicy(view).run(RetrievalRequest("tea", "ana", "monday"))
        assert f"[{time}] user: tea" in payload.prompt
        own = RetrievalRequest("tea", "ana", "monday", time_zone=zone)
        assert RetrievalPolicy(memory).run(own).prompt == payload.prompt
        config = RetrievalConfig(block=PromptBlock(time_zone="UTC"))
        utc = RetrievalPolicy(view, config).run(own).prompt
    assert "[2026-11-27T20:30:00Z] user: tea" in utc


def test_two_memories_of_one_file_have_zones_of_their_own(tmp_path):
    now = datetime(2026, 11, 28, 2, tzinfo=UTC)
    options = {"embedder": None, "clock": lambda: now}
    path = tmp_path / "memory.db"
    with (
        Memory(path, time_zone=TOKYO, **options) as here,
        Memory(path, time_zone=NEW_YORK, **options) as there,
    ):
        here.add("Bicycle fixed", created_at="2026-11-27T20:00")
        assert len(here.context("What did I do yesterday?").hits) == 1
        assert not there.context("What did I do yesterday?").hits  # it was 6:00
        there.add("Bicycle sold", created_at="2026-11-26T12:00")
        [hit] = there.search("sold")
    assert hit.created_at == datetime(2026, 11, 26, 17, tzinfo=UTC)


def test_a_memory_keeps_the_zone_that_it_began_in(tmp_path):
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with Memory(path, embedder=None) as memory:
        assert memory.time_zone == "UTC"  # nothing is stored yet
    with Memory(path, embedder=None, time_zone=TOKYO) as memory:
        memory.add("tea")
    with Memory(path, embedder=None, time_zone=NEW_YORK) as memory:  # the given one, here alone
        assert memory.time_zone == NEW_YORK
        assert memory.add("tea", created_at=NOON).created_at == noon_in(NEW_YORK)
        memory.backup(copy)
    for file in (path, copy):
        with Memory(file, embedder=None, read_only=True) as memory:
            assert memory.time_zone == TOKYO
    with Memory(path, "other", embedder=None) as memory:  # each agent has its own
        assert memory.time_zone == "UTC"


def test_a_stored_zone_that_is_not_known_here_is_named(tmp_path):
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None) as memory:
        memory.add("tea")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE agent_memory_agents SET time_zone = 'Mars/Phobos'")
    with pytest.raises(InvalidArgumentError, match=r"Mars/Phobos.* is not known here.*tzdata"):
        Memory(path, embedder=None)
    with Memory(path, embedder=None, time_zone=TOKYO) as memory:
        assert memory.count() == 1


def test_without_a_database_of_zones_names_are_refused_and_the_systems_zone_counts(monkeypatch):
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(to=[])
    clear_zones()
    try:
        with pytest.raises(InvalidArgumentError, match=f"'{TOKYO}' is not known here.*tzdata"):
            Memory(":memory:", embedder=None, time_zone=TOKYO)
        with Memory(":memory:", embedder=None) as memory:
            memory.add("Bicycle fixed", created_at=NOON)
            assert str(memory.context("bicycle")) == "[1] 2026-05-01 Bicycle fixed"
        with Memory(":memory:", embedder=None, time_zone="+09:00") as memory:
            assert memory.add("tea", created_at=NOON).created_at == noon_in("+09:00")
    finally:
        zoneinfo.reset_tzpath()
        clear_zones()


def clear_zones():
    ZoneInfo.clear_cache()
    for kept in (time_zones.zone_of, time_zones._system_time_zone, time_zones._changes):
        kept.cache_clear()
