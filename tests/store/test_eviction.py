"""A full store deletes the least important entries for new ones, where the write asks for it."""

import asyncio
from functools import partial

import pytest

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import Scope
from mnemic.store.operations import (
    ChangedRows,
    Link,
    Links,
    Restore,
    RowsSince,
    StoredAmount,
    VectorsOfRow,
)
from mnemic.store.values import EntryLimits
from tests.store.contract import (
    ALICE,
    EVERYONE,
    added,
    adding,
    embedded,
    entries_by_id,
    exported,
    gathered,
    link_of,
    numbers,
    rows_of,
    seq_of,
    used_bytes,
)
from tests.support.clock import DAY, HOUR, NOON
from tests.support.entries import numbered, only, uid
from tests.support.threads import run_together

EVICTS = EntryLimits(evicts=True)


def sized(number, size, importance=0.5, user_id="alice", **fields):
    return numbered(number, content="x" * size, importance=importance, user_id=user_id, **fields)


def small(number, importance=0.5, user_id="alice", **fields):
    return numbered(number, importance=importance, user_id=user_id, **fields)


def put(store, *entries, now=NOON, **rules):
    """Add entries, with eviction; return the numbers of what went."""
    rules = {"entry_limits": EVICTS, **rules}
    return numbers(added(store, "a", entries, now=now, **rules).evicted)


def left(store, user_id="alice"):
    found = exported(store, Scope("a", user_id))
    return sorted(stored.entry.id.int for stored in found)


def test_accesses_that_are_not_written_yet_count(store):
    put(store, small(1), small(2))
    store.touch("a", [rows_of(store)[1]], NOON)
    assert put(store, small(3), entry_limits=EntryLimits(user_entries=2, evicts=True)) == [2]


def test_of_equal_importance_the_least_used_go_first_then_the_longest_unused(store):
    uses = [(1, NOON), (0, NOON + 2 * HOUR), (0, NOON + HOUR), (0, None), (2, NOON)]
    fields = [{"access_count": count, "last_accessed_at": at} for count, at in uses]
    put(store, *[small(number, **each) for number, each in enumerate(fields, 1)])
    limits = EntryLimits(user_entries=5, evicts=True)
    assert put(store, *map(small, range(6, 11)), entry_limits=limits) == [4, 3, 2, 1, 5]


# What stays


@pytest.mark.beyond_a_dict("its errors tell no figures")
def test_what_is_more_important_stays_and_the_write_is_refused(store):
    put(store, small(1, 0.5), small(2, 0.6))
    entry_limits = EntryLimits(user_entries=2, evicts=True)
    with pytest.raises(StorageQuotaExceededError, match="no more important") as raised:
        put(store, small(3, 0.4), entry_limits=entry_limits)
    error = raised.value
    assert (error.current_usage, error.limit, error.unit) == (2, 2, "entries")
    assert (error.quota, error.user_id, error.when_full) == ("user", "alice", "evict")
    assert left(store) == [1, 2]
    assert put(store, small(3, 0.5), entry_limits=entry_limits) == [1]


def test_an_entry_that_the_call_answers_with_stays(store):
    added(store, "a", [small(1, 0.1), small(2, 0.3)], ["k", None])
    entry_limits = EntryLimits(user_entries=2, evicts=True)
    again = added(
        store, "a", [small(8, content="memory 1"), small(3)], ["k", None], entry_limits=entry_limits
    )
    assert (again.ids, numbers(again.evicted)) == ([uid(1), uid(3)], [2])


def test_an_entry_that_the_new_one_supersedes_stays(store):
    put(store, small(1, 0.1), small(2, 0.3))
    entry_limits = EntryLimits(user_entries=2, evicts=True)
    assert put(store, small(3, supersedes=uid(1)), entry_limits=entry_limits) == [2]
    assert left(store) == [1, 3]


# Budgets of entries without eviction


@pytest.mark.beyond_a_dict("its errors tell no figures")
def test_without_eviction_a_full_store_refuses(store):
    entry_limits = EntryLimits(entries=3, user_entries=2)
    put(store, small(1), small(2), entry_limits=entry_limits)
    with pytest.raises(StorageQuotaExceededError) as raised:
        put(store, small(3), entry_limits=entry_limits)
    error = raised.value
    assert (
        str(error) == "Storage quota of user 'alice' exceeded. Current: 2 entries, "
        "Limit: 2 entries, To be added: 1 entries"
    )
    assert (error.unit, error.when_full) == ("entries", "refuse")
    put(store, small(3, user_id=None), entry_limits=entry_limits)
    with pytest.raises(StorageQuotaExceededError, match=r"quota exceeded\. Current: 3 entries"):
        put(store, small(4, user_id="bob"), entry_limits=entry_limits)
    assert store.read(StoredAmount(EVERYONE, "entries")) == 3


# How it goes


def test_what_goes_is_deleted_permanently_in_the_same_transaction(store):
    put(store, embedded(1, user_id="alice", importance=0.1), small(2, 0.9))
    store.write(Link(ALICE, link_of(1, 2), now=NOON)).result()
    store.write(Link(ALICE, link_of(2, 1), now=NOON)).result()
    before = seq_of(store)
    assert put(store, small(3), entry_limits=EntryLimits(user_entries=2, evicts=True)) == [1]
    batch = store.read(RowsSince("a", ("m", 2), before))
    assert batch.seq == before + 2
    assert batch.removed == [1]
    assert sorted(record[0] for record in batch.records) == [3]
    assert entries_by_id(store, ALICE, [uid(1)], now=NOON, include_deleted=True) == {}
    assert store.read(VectorsOfRow("a", 1, "m")).shape == (0, 0)
    assert store.read(Links(ALICE, NOON, uid(2))) == []
    assert not store.write(Restore(ALICE, only(1), oldest=NOON - DAY, now=NOON)).result()


@pytest.mark.plain_text("counts bytes of plain contents")
def test_many_small_ones_go_for_a_large_one(store):
    put(store, *(sized(number, 1, 0.1) for number in range(1, 201)))
    gone = put(store, sized(999, 150), user_quota=200)
    assert gone == list(range(1, 151))


def test_another_opening_hears_of_it(stores):
    mine, other = stores
    put(mine, small(1, 0.1), small(2, 0.9))
    before = seq_of(other)
    assert put(mine, small(3), entry_limits=EntryLimits(user_entries=2, evicts=True)) == [1]
    assert sorted(other.read(ChangedRows("a", before))) == [1, 3]
    assert numbers(entries_by_id(other, ALICE, [uid(1), uid(2), uid(3)], now=NOON).values()) == [
        2,
        3,
    ]


# Many writers


def check_books(store, quota):
    stored = exported(store)
    total = sum(len(one.entry.content.encode()) for one in stored)
    assert used_bytes(store, "a") == total <= quota


@pytest.mark.plain_text("counts bytes of plain contents")
@pytest.mark.requirement("C082", "C201")
def test_twenty_writers_at_once_never_pass_the_limits(stores):
    quota = Quota(100, "Tiny")

    async def all_at_once():
        calls = [
            adding(stores[at % 2], "a", [sized(at, 10, 0.5)], quota=quota, entry_limits=EVICTS)
            for at in range(1, 21)
        ]
        return await gathered(calls)

    results = asyncio.run(all_at_once())
    gone = [number for result in results for number in numbers(result.evicted)]
    assert len(gone) == len(set(gone)) == 10
    assert sorted([*gone, *left(stores[0])]) == list(range(1, 21))
    check_books(stores[0], 100)


@pytest.mark.requirement("C082", "C201")
@pytest.mark.parametrize("evicts", [False, True])
def test_threads_never_pass_a_budget_of_entries(store, evicts):
    entry_limits = EntryLimits(entries=5, evicts=evicts)
    gone, refused = [], []

    def work(at):
        try:
            gone.extend(put(store, small(at), entry_limits=entry_limits))
        except StorageQuotaExceededError:
            refused.append(at)

    run_together(*[partial(work, at) for at in range(1, 21)])
    assert len(gone) + len(refused) == 15
    assert (len(gone) == 15) is evicts
    assert store.read(StoredAmount(EVERYONE, "entries")) == 5


def test_writes_of_one_group_each_name_what_went_for_them(store):
    put(store, *(small(number, number / 100) for number in range(1, 6)))
    entry_limits = EntryLimits(user_entries=5, evicts=True)

    async def together():
        return await gathered(
            [adding(store, "a", [small(at)], entry_limits=entry_limits) for at in range(10, 15)]
        )

    results = asyncio.run(together())
    assert [numbers(result.evicted) for result in results] == [[1], [2], [3], [4], [5]]
