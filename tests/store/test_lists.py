"""What every store promises of numbers and distinct values, and of pages at an offset."""

import pytest

from mnemic.errors import DeadlineExceededError
from mnemic.model import MemoryStatus, MemoryType, Scope
from mnemic.model.distinct import MAX_VALUES, distinct_query
from mnemic.model.filter import parse_filter
from mnemic.model.results import PageCursor
from mnemic.store.operations import DistinctValues, EntryPage
from tests.store.contract import AGENT, ALICE, BOB, EVERYONE, added, count_of, counted, paged
from tests.support.clock import HOUR, MICROSECOND, NOON
from tests.support.distinct_twin import distinct, keys_of
from tests.support.entries import numbered
from tests.support.filter_strategies import population
from tests.support.filter_twin import matches

STATES = [
    {"forgotten_at": NOON},
    {"expires_at": NOON},
    {"status": MemoryStatus.ARCHIVED},
    {"status": MemoryStatus.SUPERSEDED},
    {},
]
FILTERS = [
    {},
    {"importance": {"gte": 0.3}},
    {"content": {"contains": "tea"}},
    {"created_at": {"lt": NOON}, "metadata": {"a": {"exists": True}}},
    {"OR": [{"tags": {"prefix": "t"}}, {"position": {"gte": 1}}]},
    {"role": "nobody's"},
]
FIELDS = ["session_id", "message_id", "type", "tags", ("metadata", "a"), ("metadata", "b", "a")]


def values(store, scope, field, where=None, *, prefix=None, limit=MAX_VALUES, offset=0, now=NOON):
    query = distinct_query(field, prefix, limit, offset)
    return store.read(DistinctValues(scope, parse_filter(where), query, now=now))


def shown(found):
    return [(one.value, one.count) for one in found]


@pytest.fixture
def full(store):
    """Return the entries of a store that are neither deleted, expired, archived nor superseded."""
    entries = list(population(120))
    added(store, "a", [replaced(entry, agent_id="a") for entry in entries], is_import=True)
    added(store, "b", [numbered(1, agent_id="b", session_id="other", tags=["other"])])
    return [
        entry
        for entry in entries
        if entry.forgotten_at is None
        and entry.status is MemoryStatus.ACTIVE
        and (entry.expires_at is None or entry.expires_at > NOON)
    ]


def replaced(entry, **fields):
    return type(entry)(**{name: getattr(entry, name) for name in entry.__struct_fields__} | fields)


def inside(scope, entries):
    return [one for one in entries if scope.all_users or one.user_id == scope.user_id]


@pytest.mark.parametrize("where", FILTERS)
def test_numbers_and_distinct_values_are_those_of_the_matches_of_a_scope(store, full, where):
    for scope in (AGENT, ALICE, BOB, EVERYONE):
        found = [one for one in inside(scope, full) if matches(where, one)]
        assert count_of(store, scope, parse_filter(where), now=NOON) == len(found)
        for field in FIELDS:
            assert keys_of(values(store, scope, field, where)) == distinct(found, field)
            if field != "type":
                keys = keys_of(values(store, scope, field, where, prefix="t"))
                assert keys == distinct(found, field, "t")
    assert counted(store, EVERYONE) == len(full)


def test_a_page_of_values_is_a_part_of_them_in_their_order(store, full):
    for field in FIELDS:
        whole = values(store, EVERYONE, field)
        for limit, offset in ((1, 0), (2, 1), (MAX_VALUES, 3), (5, 1000)):
            page = values(store, EVERYONE, field, limit=limit, offset=offset)
            assert page == whole[offset : offset + limit]
    assert len(full) > 1


def test_only_entries_that_can_be_found_are_counted_unless_the_status_is_tested(store):
    fields = [{"category": f"{at}", "metadata": {"k": at}, **one} for at, one in enumerate(STATES)]
    added(store, "a", [numbered(at, **one) for at, one in enumerate(fields)])
    archived = {"status": {"in": ["archived", "superseded"]}}
    for where, expected in (({}, [4]), (archived, [2, 3])):
        assert count_of(store, AGENT, parse_filter(where), now=NOON) == len(expected)
        by_name = shown(values(store, AGENT, "category", where))
        assert by_name == [(f"{at}", 1) for at in expected]
        assert shown(values(store, AGENT, "metadata.k", where)) == [(at, 1) for at in expected]
    assert counted(store, AGENT) == 1


def test_an_entry_counts_until_the_moment_it_expires(store):
    added(store, "a", [numbered(1, category="a", tags=["b"], expires_at=NOON)])
    for now, expected in ((NOON - MICROSECOND, 1), (NOON, 0)):
        assert count_of(store, AGENT, parse_filter({"tags": ["b"]}), now=now) == expected
        assert len(values(store, AGENT, "category", now=now)) == expected
        assert len(values(store, AGENT, "tags", now=now)) == expected


def test_projects_and_sessions_limit_what_is_counted(store):
    added(store, "a", [numbered(1, project_id="p", category="a"), numbered(2, category="b")])
    within = Scope("a", project_id="p")
    assert counted(store, within) == 1
    assert shown(values(store, within, "category")) == [("a", 1)]


def test_types_are_members_and_a_tag_counts_once_for_an_entry(store):
    added(
        store,
        "a",
        [numbered(1, type=MemoryType.EVENT, tags=["t", "s", "t"]), numbered(2, tags=["t"])],
    )
    assert shown(values(store, AGENT, "type")) == [(MemoryType.FACT, 1), (MemoryType.EVENT, 1)]
    assert shown(values(store, AGENT, "tags")) == [("s", 1), ("t", 2)]


@pytest.mark.parametrize("where", [None, {"content": {"contains": "memory"}}])
def test_a_page_at_an_offset_follows_the_entries_that_it_skips(store, where):
    added(store, "a", [numbered(at, created_at=NOON + HOUR * at) for at in range(9)])
    whole = paged(store, where=where)
    place = store.read(EntryPage(AGENT, parse_filter(where), now=NOON, limit=2))[-1]
    after = PageCursor(place.created_at, place.id)
    for offset in (0, 1, 3, 9, 2**62):
        assert paged(store, where=where, offset=offset, limit=2) == whole[offset : offset + 2]
        found = paged(store, where=where, after=after, offset=offset, limit=3)
        assert found == whole[2:][offset : offset + 3]


def test_a_deadline_that_has_passed_raises(store):
    added(store, "a", [numbered(at, category=f"{at}") for at in range(50)])
    query = distinct_query("category", None, 10, 0)
    everything = parse_filter({"content": {"contains": "x"}})
    with pytest.raises(DeadlineExceededError):
        count_of(store, AGENT, everything, now=NOON, deadline=0.0)
    with pytest.raises(DeadlineExceededError):
        store.read(DistinctValues(AGENT, everything, query, now=NOON), deadline=0.0)
