"""Dates in queries: of which year they are, and how memories inside them are ranked."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemic import Memory
from tests.support.embedders import WordEmbedder

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def on(text, **options):
    return {"content": "we talked about tea", "created_at": datetime.fromisoformat(text), **options}


@pytest.fixture(params=[WordEmbedder, lambda: None], ids=["hybrid", "keyword"])
def memory(request):
    with Memory(":memory:", embedder=request.param(), clock=lambda: NOW) as opened:
        yield opened


def days_of(hits):
    return [hit.entry.created_at.date().isoformat() for hit in hits]


IMPORT = [
    on("2020-05-06T12:00+00:00"),
    on("2021-05-06T12:00+00:00"),
    on("2021-06-20T12:00+00:00"),
]


@pytest.mark.parametrize(
    "query",
    ["tea on May 6th", "tea, 6 May", "tea, 5月6日", "tea, 5월 6일", "tea in May", "tea, 五月"],
)
def test_a_date_without_a_year_is_of_the_last_year_of_an_import(memory, query):
    memory.add_many(IMPORT)
    assert days_of(memory.search(query, limit=1)) == ["2021-05-06"]


def test_what_is_counted_from_today_is_not_moved_to_an_import(memory):
    memory.add_many(IMPORT)
    (hit, *_) = memory.search("tea last May", explain=True)
    assert hit.components["date"] == 0


def test_while_memories_are_current_the_clock_decides(memory):
    old, near = NOW - 366 * DAY, NOW - 2 * DAY
    memory.add_many([on(old.isoformat()), on(near.isoformat())])
    assert days_of(memory.search("tea on November 22nd", limit=1)) == ["2026-11-21"]


def test_newer_memories_of_others_and_of_other_sessions_change_no_date(memory):
    newer = on("2024-05-06T12:00+00:00")
    memory.scoped(user_id="ana", session_id="old").add_many(IMPORT)
    memory.scoped(user_id="bo").add_many([newer])
    query = {"query": "tea on May 6th", "limit": 1, "user_id": "ana"}
    assert days_of(memory.search(**query)) == ["2021-05-06"]
    memory.scoped(user_id="ana", session_id="new").add_many([newer])
    assert days_of(memory.search(**query)) == ["2024-05-06"]
    assert days_of(memory.search(**query, session_id="old")) == ["2021-05-06"]


def test_a_filter_does_not_change_the_meaning_of_a_date(memory):
    memory.add_many([*IMPORT, on("2024-05-06T12:00+00:00", tags=["new"])])
    hits = memory.search(
        "tea on May 6th", filters={"NOT": {"tags": {"contains": "new"}}}, explain=True
    )
    assert all(hit.components["date"] == 0 for hit in hits)
