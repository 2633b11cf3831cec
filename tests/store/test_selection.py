"""Rows that a store narrowed are decided in batches, in their order, and no more than needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import StoreCorruptError
from mnemic.model import MemorySortOrder
from mnemic.store.operations import SoftDeleteAll
from mnemic.store.sql import lists
from mnemic.store.sql.lists import FIRST_BATCH, MAX_BATCH, MAX_CHARACTERS, batches, passing
from tests.store.contract import AGENT, added, entries_by_id, matched, paged
from tests.support.clock import MICROSECOND, NOON
from tests.support.entries import numbered, uid

EVEN = {"tags": {"contains": "even"}}
CONTENT = RECORD_COLUMNS.index("content")


def record(row, content=""):
    values = [None] * len(RECORD_COLUMNS)
    values[0], values[CONTENT] = row, content
    return tuple(values)


def is_even(records):
    return [row % 2 == 0 for row, *_ in records]


@given(count=st.integers(0, 700), offset=st.integers(0, 400), limit=st.integers(0, 400))
def test_offset_and_limit_apply_to_what_was_selected(count, offset, limit):
    found = passing(map(record, range(count)), is_even, offset=offset, limit=limit)
    assert [row for row, *_ in found] == list(range(0, count, 2))[offset : offset + limit]


def test_the_largest_offset_selects_nothing():
    assert passing(map(record, range(9)), is_even, offset=2**63 - 1, limit=1000) == []


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
            other.write(SoftDeleteAll(AGENT, NOON)).result()
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
