"""What every store promises of numbers, distinct values, pages, and rows that are decided."""

import sys

import pytest

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import SealBrokenError, StoreCorruptError
from mnemic.model import MemorySortOrder, MemoryStatus
from mnemic.model.distinct import MAX_VALUES, distinct_query
from mnemic.model.filter import EVERY_ENTRY, parse_filter
from mnemic.store.operations import DistinctValues, SoftDelete
from mnemic.store.sql import lists
from mnemic.store.sql.conditions import NarrowingCondition
from mnemic.store.sql.lists import (
    FIRST_BATCH,
    MAX_BATCH,
    MAX_CHARACTERS,
    EntryList,
    batches,
    first_readable,
    passing,
)
from mnemic.store.sql.reads import readable
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    added,
    count_of,
    counted,
    entries_by_id,
    matched,
    paged,
)
from tests.support.clock import MICROSECOND, NOON
from tests.support.distinct_twin import distinct, keys_of
from tests.support.entries import numbered, uid
from tests.support.filter_strategies import population
from tests.support.filter_twin import matches

FILTERS = [
    {},
    {"importance": {"gte": 0.3}},
    {"content": {"contains": "tea"}},
    {"created_at": {"lt": NOON}, "metadata": {"a": {"exists": True}}},
    {"OR": [{"tags": {"prefix": "t"}}, {"position": {"gte": 1}}]},
    {"role": "nobody's"},
    {"OR": []},
]
FIELDS = ["session_id", "message_id", "type", "tags", ("metadata", "a"), ("metadata", "b", "a")]


def values(store, scope, field, where=None, *, prefix=None, limit=MAX_VALUES, offset=0, now=NOON):
    query = distinct_query(field, prefix, limit, offset)
    return store.read(DistinctValues(scope, parse_filter(where), query, now=now))


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


EVEN = {"tags": {"contains": "even"}}
CONTENT = RECORD_COLUMNS.index("content")


def record(row, content=""):
    values = [None] * len(RECORD_COLUMNS)
    values[0], values[CONTENT] = row, content
    return tuple(values)


def is_even(records):
    return [row % 2 == 0 for row, *_ in records]


def test_nothing_is_read_after_the_batch_of_the_last_record_needed():
    read = []

    def rows():
        for row in range(10_000):
            read.append(row)
            yield record(row)

    assert len(passing(rows(), is_even, limit=10)) == 10
    assert len(read) == FIRST_BATCH


def test_batches_grow_to_a_bound():
    sizes = list(map(len, batches(map(record, range(3 * MAX_BATCH)))))
    assert sizes[:4] == [FIRST_BATCH, 2 * FIRST_BATCH, 4 * FIRST_BATCH, MAX_BATCH]
    assert max(sizes) == MAX_BATCH
    assert sum(sizes) == 3 * MAX_BATCH


def test_long_texts_make_small_batches():
    half = "x" * (MAX_CHARACTERS // 2)
    rows = [record(row, half) for row in range(5)]
    assert [len(batch) for batch in batches(rows)] == [2, 2, 1]
    assert list(batches([])) == []


# On every store


@pytest.fixture
def many(store):
    """Return a store of 1,500 entries, each newer than the one before."""
    added(store, "a", [
        numbered(at, created_at=NOON + at * MICROSECOND, tags=() if at % 2 else ("even",))
        for at in range(1500)
    ])  # fmt: skip
    return store


def test_a_list_of_many_batches_has_its_order_limit_and_offset(many):
    newest_first = list(range(1498, -1, -2))
    assert matched(many, where=EVEN, limit=1000) == newest_first
    assert matched(many, where=EVEN, limit=7, offset=600) == newest_first[600:607]
    oldest_first = MemorySortOrder.CREATED_ASCENDING
    found = matched(many, where=EVEN, limit=700, sort_by=oldest_first)
    assert found == newest_first[::-1][:700]
    assert paged(many, AGENT, where=EVEN, limit=1000) == newest_first


def test_a_list_is_of_one_moment_whatever_is_written_meanwhile(stores, monkeypatch):
    store, other = stores
    added(store, "a", [numbered(at, tags=["even"]) for at in range(600)])
    calls, decide = [], lists.matches

    def deciding_late(expression, records):
        if not calls:
            other.write(SoftDelete(AGENT, EVERY_ENTRY, NOON)).result()
        calls.append(len(records))
        return decide(expression, records)

    monkeypatch.setattr(lists, "matches", deciding_late)
    assert len(matched(store, AGENT, where=EVEN, limit=1000)) == 600
    assert len(calls) > 2
    assert matched(store, AGENT, where=EVEN) == []


@pytest.mark.beyond_a_dict("nothing in it is damaged")
def test_an_error_of_the_decision_is_raised_and_the_store_goes_on(many, monkeypatch):
    def failing(_expression, _records):
        raise ValueError("a time outside the years 1 to 9999")

    with monkeypatch.context() as patch:
        patch.setattr(lists, "matches", failing)
        with pytest.raises(StoreCorruptError, match="damaged"):
            matched(many, where=EVEN)
    assert matched(many, where=EVEN, limit=1) == [1498]
    added(many, "a", [numbered(5000)])
    assert entries_by_id(many, AGENT, [uid(5000)], now=NOON)


@pytest.mark.plain_text("lists of sealed entries are always decided")
def test_a_filter_that_needs_no_decision_is_not_decided(many, monkeypatch):
    monkeypatch.delattr(lists, "matches")
    where = {"type": "fact", "created_at": {"gte": NOON + 1498 * MICROSECOND}}
    assert matched(many, where=where) == [1499, 1498]


pytestmark = pytest.mark.requirement("R097", "C105")


class Rows:
    """Rows with the numbers 1, 2, 3 …, some of them broken."""

    def __init__(self, count, broken=()):
        self.stored = [(number,) for number in range(1, count + 1)]
        self.broken = set(broken)
        self.reads = []

    def read(self, wanted):
        self.reads.append(wanted.limit)
        return self.stored[wanted.offset : wanted.offset + wanted.limit]

    def entries_of(self, rows):
        if any(row in self.broken for (row,) in rows):
            raise SealBrokenError("broken", None)
        return [numbered(row) for (row,) in rows]

    def listed(self, limit, offset=0):
        wanted = EntryList(NarrowingCondition("1", [], True), None, "row", limit, offset)  # noqa: FBT003
        entries = first_readable(wanted, self.read, lambda rows: readable(rows, self.entries_of))
        return [entry.id.int for entry in entries]


def test_broken_entries_are_left_out_and_the_list_is_as_long_as_wanted():
    rows = Rows(9, {1, 3, 4})
    assert rows.listed(3) == [2, 5, 6]
    assert rows.listed(9) == [2, 5, 6, 7, 8, 9]
    assert rows.listed(2, offset=4) == [5, 6]
    assert Rows(4, {1, 2, 3, 4}).listed(3) == []


def test_without_broken_ones_a_list_is_read_once():
    for limit in (0, 3, 9, 20, sys.maxsize):
        rows = Rows(9)
        assert rows.listed(limit) == list(range(1, 10))[:limit]
        assert rows.reads == [limit]


def test_a_list_of_many_broken_ones_is_read_a_few_times_and_each_is_logged_once(caplog):
    rows = Rows(10_005, range(1, 10_001))
    assert rows.listed(3) == [10_001, 10_002, 10_003]
    assert len(rows.reads) < 14
    assert sum(rows.reads) < 50_000
    assert len(caplog.records) == 10_000
