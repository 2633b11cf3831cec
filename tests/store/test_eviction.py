"""A full store deletes the least important entries for new ones, where the write asks for it."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.store import open_store
from mnemic.store.operations import (
    ChangedRows,
    Link,
    Links,
    Restore,
    RowsSince,
    SoftDelete,
    StoredAmount,
    Update,
    VectorsOfRow,
)
from mnemic.store.values import EntryLimits
from tests.store.conftest import Places
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
    quotas_of,
    rows_of,
    seq_of,
    settled,
    used_bytes,
)
from tests.support.clock import DAY, NOON
from tests.support.entries import numbered, only, uid
from tests.support.threads import run_together
from tests.support.tiers import examples

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


def updating(store, number, content, scope=ALICE, now=NOON, **rules):
    update = MemoryEntryUpdate(content=content)
    quotas = quotas_of({"entry_limits": EVICTS, **rules})
    wanted = Update(
        scope, only(number), change=lambda old: update.applied_to(old, now), now=now, quotas=quotas
    )
    return store.write(wanted)


def test_accesses_that_are_not_written_yet_count(store):
    put(store, small(1), small(2))
    store.touch("a", [rows_of(store)[1]], NOON)
    assert put(store, small(3), entry_limits=EntryLimits(user_entries=2, evicts=True)) == [2]


# What stays


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


# Random writes


class Kept(NamedTuple):
    """An entry of the naive twin; its times are seconds since noon."""

    user: str | None
    number: int
    size: int
    importance: float
    access_count: int = 0
    created_at: int = 0
    used_at: int | None = None
    expires_at: int | None = None
    forgotten_at: int | None = None

    def ended_at(self, now):
        is_expired = self.expires_at is not None and self.expires_at <= now
        return self.forgotten_at or (self.expires_at if is_expired else None)

    def order(self, now):
        """Return a key of what goes first."""
        ended_at = self.ended_at(now)
        used_at = self.created_at if self.used_at is None else self.used_at
        last = (self.importance, self.access_count, used_at, self.created_at, self.number)
        return ended_at is None, ended_at or 0, *last

    def entry(self):
        times = {
            name: seconds if seconds is None else NOON + timedelta(seconds=seconds)
            for name, seconds in (
                ("created_at", self.created_at),
                ("last_accessed_at", self.used_at),
                ("expires_at", self.expires_at),
            )
        }
        given = {"access_count": self.access_count, "metadata": {"kind": "marker"}, **times}
        return sized(self.number, self.size, self.importance, self.user, **given)


USERS = st.sampled_from(["alice", "bob", None])
IMPORTANCES = st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])
LIMITS = st.sampled_from([None, 40, 80])
BUDGETS = st.sampled_from([None, 2, 4])
NEW = st.builds(
    Kept,
    *(USERS, st.just(0), st.integers(0, 30), IMPORTANCES),
    access_count=st.integers(0, 1),
    created_at=st.sampled_from([-2, -1, 0]),
    used_at=st.sampled_from([None, -1, 0]),
    expires_at=st.sampled_from([None, None, 1, 3, 5]),
    forgotten_at=st.none(),
)
EVERYBODY = object()


def _total(grown, user, column):
    return sum(row[column] for row in grown if row[0].user == user)


class Evictions(RuleBasedStateMachine):
    """Additions, changes and deletions beside a list of entries."""

    kind = "memory"

    @initialize()
    def open(self):
        self.places = Places(self.kind, None)
        self.store = open_store(self.places.url())
        self.kept = []
        self.last = self.now = 0

    def teardown(self):
        if hasattr(self, "store"):
            assert self.store.verify().ok
            self.store.close()
            self.places.drop()

    @property
    def time(self):
        return NOON + timedelta(seconds=self.now)

    def present(self, at):
        """Return one of the entries that have not ended, None if all have."""
        found = [one for one in self.kept if one.ended_at(self.now) is None]
        return found[at % len(found)] if found else None

    def missing(self, limits, added, user=EVERYBODY):
        """Return by how much additions exceed the limits, of bytes and of entries."""
        own = [each for each in self.kept if user in (EVERYBODY, each.user)]
        stored = sum(each.size for each in own), len(own)
        return [
            0 if limit is None else max(0, min(before + more - limit, more))
            for before, more, limit in zip(stored, added, limits, strict=True)
        ]

    def expected(self, grown, limits):
        """Return what goes for entries that grow; None if the write is refused."""
        user_quota, quota, entries, user_entries = limits
        users = list(dict.fromkeys(new.user for new, *_ in grown))
        added = {user: [_total(grown, user, 1), _total(grown, user, 2)] for user in users}
        whole = [sum(column) for column in zip(*added.values(), strict=True)]
        short, gone = self.missing((quota, entries), whole), []
        for user in users:
            own = self.missing((user_quota, user_entries), added[user], user)
            shares = [max(0, min(pair)) for pair in zip(short, added[user], strict=True)]
            needed = [max(pair) for pair in zip(own, shares, strict=True)]
            freed = [0, 0]
            for each in self.candidates(grown, user):
                if freed[1] < needed[1] or (freed[0] < needed[0] and each.size):
                    gone.append(each)
                    freed = [freed[0] + each.size, freed[1] + 1]
            if freed[0] < own[0] or freed[1] < own[1]:
                return None
            short = [max(0, lack - free) for lack, free in zip(short, freed, strict=True)]
        return None if any(short) else gone

    def candidates(self, grown, user):
        """Return the entries of a user that may go, the first to go first."""
        bars = [
            new.importance for new, size, number in grown if new.user == user and size + number > 0
        ]
        touched = {new.number for new, *_ in grown}
        return [
            each
            for each in sorted(self.kept, key=lambda kept: kept.order(self.now))
            if each.user == user
            and each.number not in touched
            and (each.ended_at(self.now) is not None or each.importance <= min([0.99, *bars]))
        ]

    def attempt(self, write, grown, limits, after):
        wanted, before = self.expected(grown, limits), seq_of(self.store)
        try:
            result = settled(write())
        except StorageQuotaExceededError:
            assert wanted is None
            assert seq_of(self.store) == before
            return
        assert wanted is not None
        assert numbers(result.evicted) == [each.number for each in wanted]
        self.kept = [each for each in after if each not in wanted]

    @rule(
        made=st.lists(NEW, min_size=1, max_size=4),
        user_quota=LIMITS,
        quota=LIMITS,
        entries=BUDGETS,
        user_entries=BUDGETS,
    )
    def add(self, made, user_quota, quota, entries, user_entries):
        new = [one._replace(number=self.last + at) for at, one in enumerate(made, start=1)]
        self.last += len(new)
        rules = {
            "user_quota": user_quota,
            "quota": None if quota is None else Quota(quota),
            "entry_limits": EntryLimits(entries, user_entries, evicts=True),
        }
        given = [one.entry() for one in new]
        self.attempt(
            lambda: adding(self.store, "a", given, now=self.time, **rules),
            [(each, each.size, 1) for each in new],
            (user_quota, quota, entries, user_entries),
            [*self.kept, *new],
        )

    @rule(at=st.integers(0, 20), size=st.integers(1, 30), user_quota=LIMITS)
    def update(self, at, size, user_quota):
        if old := self.present(at):
            new, scope = old._replace(size=size), Scope("a", old.user)
            self.attempt(
                lambda: updating(
                    self.store, old.number, "y" * size, scope, self.time, user_quota=user_quota
                ),
                [(new, size - old.size, 0)],
                (user_quota, None, None, None),
                [new if one is old else one for one in self.kept],
            )

    @rule(at=st.integers(0, 20))
    def forget(self, at):
        self.now += 1
        if old := self.present(at):
            self.store.write(SoftDelete(Scope("a", old.user), only(old.number), self.time)).result()
            new = old._replace(forgotten_at=self.now)
            self.kept = [new if one is old else one for one in self.kept]

    @invariant()
    def the_store_has_what_the_twin_has(self):
        if not hasattr(self, "store"):
            return
        stored = exported(self.store, limit=999)
        found = {(one.entry.user_id, one.entry.id.int, len(one.entry.content)) for one in stored}
        assert found == {(one.user, one.number, one.size) for one in self.kept}
        assert used_bytes(self.store, "a") == sum(one.size for one in self.kept)


class EvictionsInPostgres(Evictions):
    kind = "postgres"


TestEvictions = Evictions.TestCase
TestEvictions.settings = examples(60, least=40, stateful_step_count=20)
TestEvictions.pytestmark = pytest.mark.requirement("R005", "C201")
TestEvictionsInPostgres = EvictionsInPostgres.TestCase
TestEvictionsInPostgres.settings = examples(30, stateful_step_count=20)
