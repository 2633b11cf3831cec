"""Bytes and entries of each user: kept by every write, limited by quotas, listed for operators."""

import asyncio

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import MemoryEntryUpdate, MemoryFilter, MemoryStatus, Scope, UserUsage
from mnemic.model.filter import EVERY_ENTRY, Criteria, parse_filter
from mnemic.store import open_store
from mnemic.store.operations import (
    Delete,
    Purge,
    Restore,
    SoftDelete,
    Update,
    Users,
)
from mnemic.store.values import Quotas
from tests.store.conftest import Places
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    added,
    adding,
    counted,
    entries_by_id,
    exported,
    gathered,
    matching,
    paged,
    seq_of,
    settled,
    used_by_user,
    used_bytes,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid
from tests.support.tiers import examples

USERS = (None, "alice", "bob")


def used(store, agent="a"):
    return {user_id: used_by_user(store, agent, user_id) for user_id in USERS}


def listed(store, agent="a", prefix=None, *, limit=1000, offset=0, now=NOON):
    found = store.read(Users(agent, now=now, limit=limit, offset=offset, prefix=prefix))
    assert all(isinstance(user, UserUsage) for user in found)
    return [(user.user_id, user.active_entries, user.storage_bytes_used) for user in found]


def of_size(number, size, user_id="alice", **fields):
    return numbered(number, user_id=user_id, content="x" * size, **fields)


def grown_to(size):
    update = MemoryEntryUpdate(content="y" * size)
    return lambda old: update.applied_to(old, NOON)


@pytest.mark.plain_text("counts bytes of contents")
def test_the_quota_of_a_user_is_no_others(store):
    added(store, "a", [of_size(1, 60)], user_quota=100)
    added(
        store, "a", [of_size(2, 100, "bob"), of_size(3, 100, None), of_size(4, 40)], user_quota=100
    )
    for user_id, number, current in (("alice", 5, 100), ("bob", 6, 100), (None, 7, 100)):
        with pytest.raises(StorageQuotaExceededError) as raised:
            added(store, "a", [of_size(number, 1, user_id)], user_quota=100)
        error = raised.value
        assert (error.current_usage, error.limit, error.quota) == (current, 100, "user")
        assert (error.user_id, error.license_tier) == (user_id, None)
        assert str(current) in str(error)
    assert used(store) == {"alice": 100, "bob": 100, None: 100}
    added(store, "a", [of_size(8, 1)])  # without a quota


@pytest.mark.plain_text("counts bytes of contents")
def test_the_user_is_named_and_the_agents_sum_is_not(store):
    added(store, "a", [of_size(1, 77, "bob"), of_size(2, 3)])
    both = {"quota": Quota(81), "user_quota": 4}
    with pytest.raises(StorageQuotaExceededError) as raised:
        added(store, "a", [of_size(3, 2)], **both)
    assert str(raised.value) == (
        "Storage quota of user 'alice' exceeded. Current: 3 bytes, Limit: 4 bytes, "
        "To be added: 2 bytes"
    )
    with pytest.raises(StorageQuotaExceededError, match="memories without a user exceeded"):
        added(store, "a", [of_size(3, 5, None)], **both)
    with pytest.raises(StorageQuotaExceededError) as raised:
        added(store, "a", [of_size(3, 4, None)], **both)
    assert (raised.value.quota, raised.value.current_usage) == ("agent", 80)


@pytest.mark.plain_text("counts bytes of contents")
def test_a_change_may_grow_to_the_quota_and_always_shrink(store):
    added(store, "a", [of_size(1, 10), of_size(2, 10)])

    def write(size, limit):
        change = {"change": grown_to(size), "now": NOON, "quotas": Quotas(user=limit)}
        return store.write(Update(ALICE, only(1), **change)).result().last

    with pytest.raises(StorageQuotaExceededError):
        write(11, 20)
    assert write(11, 21) is not None
    every = {"change": grown_to(11), "now": NOON, "quotas": Quotas(user=21)}
    with pytest.raises(StorageQuotaExceededError):
        store.write(Update(ALICE, Criteria(), **every)).result()
    assert write(1, 5) is not None
    assert used(store)["alice"] == 11


@pytest.mark.plain_text("counts bytes of contents")
def test_of_writes_that_share_a_transaction_those_that_fit_are_stored(stores):
    mine, other = stores
    futures = [
        adding(store, "a", [of_size(number, 10, user)], user_quota=30)
        for number, (store, user) in enumerate(
            [
                (store, user)
                for _ in range(5)
                for store in (mine, other)
                for user in ("alice", "bob")
            ]
        )
    ]
    refused = [future.exception(60) for future in futures]
    assert sum(error is None for error in refused) == 6
    assert used(mine) == {"alice": 30, "bob": 30, None: 0}


# Users


@pytest.mark.plain_text("counts bytes of contents")
def test_users_come_in_order_with_what_is_active_and_what_is_stored(store):
    assert listed(store) == []
    added(store, "b", [of_size(1, 9, "carol", agent_id="b")])
    added(
        store,
        "a",
        [
            of_size(1, 3, "bob"),
            of_size(2, 4, "bob", expires_at=NOON + HOUR),
            of_size(3, 1, "alice", status=MemoryStatus.ARCHIVED),
            of_size(4, 1, "alice", forgotten_at=NOON),
            of_size(5, 8, None),
            of_size(6, 2, "Zoe"),
        ],
    )
    everybody = [(None, 1, 8), ("Zoe", 1, 2), ("alice", 0, 2), ("bob", 2, 7)]
    assert listed(store) == everybody
    assert listed(store, now=NOON + HOUR)[-1] == ("bob", 1, 7)
    assert listed(store, limit=2) == everybody[:2]
    assert listed(store, limit=2, offset=1) == everybody[1:3]
    assert listed(store, offset=9) == []
    store.write(SoftDelete(BOB, EVERY_ENTRY, NOON)).result()
    store.write(Delete(ALICE)).result()
    assert listed(store) == [(None, 1, 8), ("Zoe", 1, 2), ("bob", 0, 7)]


HARD = [
    "a",
    "ab",
    "ab\U0010ffff",
    "ab\U0010ffffc",
    "ab_",
    "ab%",
    "ac",
    "B",
    "b",
    "\ud7ff",
    "\ue000",
]


@pytest.mark.parametrize(
    "prefix",
    ["", "a", "ab", "ab\U0010ffff", "ab_", "%", "A", "z", "\U0010ffff", "\ud7ff", "\ue000"],
)
def test_a_prefix_is_exact(store, prefix):
    added(store, "a", [of_size(at, 1, user) for at, user in enumerate([*HARD, None])])
    wanted = sorted(user for user in HARD if user.startswith(prefix))
    found = [user for user, *_ in listed(store, prefix=prefix)]
    assert found == ([None] if not prefix else []) + wanted


@pytest.mark.plain_text("counts bytes of contents")
def test_a_quota_is_full_at_its_last_byte(store):
    entries = [numbered(at, content="12345") for at in range(3)]
    with pytest.raises(StorageQuotaExceededError):
        added(store, "a", entries, quota=Quota(14, "Tiny"))
    assert (seq_of(store), used_bytes(store, "a")) == (0, 0)
    added(store, "a", [numbered(1, content="é" * 5)], quota=Quota(10, "Tiny"))
    with pytest.raises(StorageQuotaExceededError) as caught:
        added(store, "a", [numbered(2, content="x")], quota=Quota(10, "Tiny"))
    error = caught.value
    assert (error.current_usage, error.limit, error.license_tier) == (10, 10, "Tiny")
    assert paged(store) == [1]


@pytest.mark.plain_text("counts bytes of contents")
def test_what_is_not_stored_again_needs_no_space(store):
    full = Quota(8, "Tiny")
    added(store, "a", [numbered(1)], ["k"], quota=full)
    again = [numbered(2, content="memory 1", tags=["new"])]
    assert added(store, "a", again, ["k"], quota=full).ids == [uid(1)]
    for way in ("skip", "merge"):
        assert added(store, "a", again, on_duplicate=way, quota=full).ids == [uid(1)]


@pytest.mark.plain_text("counts bytes of contents")
def test_twenty_writers_at_once_never_pass_the_quota(stores):
    quota = Quota(100, "Tiny")

    async def all_at_once():
        calls = [
            adding(stores[at % 2], "a", [numbered(at, content=f"{at:010}")], quota=quota)
            for at in range(20)
        ]
        return await gathered(calls, return_exceptions=True)

    results = asyncio.run(all_at_once())
    refused = [result for result in results if isinstance(result, StorageQuotaExceededError)]
    assert len(refused) == 10
    assert [used_bytes(store, "a") for store in stores] == [100, 100]
    assert counted(stores[0], AGENT) == 10


# Random writes


NAMES = st.sampled_from(USERS)
NUMBERS = st.integers(1, 6)
SIZES = st.integers(0, 60)
LIMITS = st.sampled_from([None, 60, 100])


class Usage(RuleBasedStateMachine):
    """Writes of several users beside a dict of what each has."""

    kind = "memory"

    @initialize()
    def open(self):
        self.places = Places(self.kind, None)
        self.store = open_store(self.places.url())
        added(self.store, "b", [of_size(1, 100, agent_id="b")])
        self.sizes = {}

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.places.drop()

    def of(self, user):
        return sum(size for (owner, _), size in self.sizes.items() if owner == user)

    def attempt(self, write, sizes, limit):
        """Run a write that leads to these sizes; it is refused if a user grows beyond the limit."""
        before, after = (
            {user: _of(given, user) for user in USERS} for given in (self.sizes, sizes)
        )
        is_refused = limit is not None and any(
            after[user] > max(limit, before[user]) for user in USERS
        )
        try:
            settled(write())
        except StorageQuotaExceededError:
            assert is_refused
        else:
            assert not is_refused
            self.sizes = sizes

    @rule(user=NAMES, number=NUMBERS, size=SIZES, limit=LIMITS)
    def add(self, user, number, size, limit):
        if (user, number) in self.sizes:
            return
        entry = of_size(number, size + 1, user)
        sizes = {**self.sizes, (user, number): size + 1}
        self.attempt(lambda: adding(self.store, "a", [entry], user_quota=limit), sizes, limit)

    @rule(user=NAMES, numbers=st.lists(NUMBERS, max_size=3), size=SIZES, limit=LIMITS)
    def put(self, user, numbers, size, limit):
        entries = [of_size(number, size + 1, user) for number in numbers]
        sizes = self.sizes | {(user, number): size + 1 for number in numbers}
        rules = {"on_conflict": "replace", "user_quota": limit}
        self.attempt(lambda: adding(self.store, "a", entries, **rules), sizes, limit)

    @rule(user=NAMES, number=NUMBERS, size=SIZES, limit=LIMITS)
    def update(self, user, number, size, limit):
        scope = Scope("a", user)
        sizes = dict(self.sizes)
        stored = entries_by_id(self.store, scope, [uid(number)], now=NOON)
        if stored:
            sizes[user, number] = size + 1
        change = grown_to(size + 1)
        wanted = Update(scope, only(number), change=change, now=NOON, quotas=Quotas(user=limit))
        self.attempt(lambda: self.store.write(wanted), sizes, limit)

    @rule(size=SIZES, limit=LIMITS, letter=st.sampled_from("xy"))
    def update_all(self, size, limit, letter):
        where = parse_filter({"content": {"contains": letter}})
        found = matching(self.store, EVERYONE, where, MemoryFilter(limit=1000), now=NOON)
        sizes = self.sizes | {(entry.user_id, entry.id.int): size + 1 for entry in found}
        change = grown_to(size + 1)
        given = {"change": change, "now": NOON, "quotas": Quotas(user=limit)}
        wanted = Update(EVERYONE, Criteria(None, where), **given)
        self.attempt(lambda: self.store.write(wanted), sizes, limit)

    @rule(user=NAMES, number=NUMBERS)
    def forget(self, user, number):
        self.store.write(SoftDelete(Scope("a", user), only(number), NOON)).result()

    @rule(user=NAMES, number=NUMBERS)
    def restore(self, user, number):
        scope = Scope("a", user)
        self.store.write(Restore(scope, only(number), oldest=NOON - HOUR, now=NOON)).result()

    @rule(user=NAMES, number=NUMBERS)
    def delete(self, user, number):
        self.store.write(Delete(Scope("a", user), only(number))).result()
        self.sizes.pop((user, number), None)

    @rule(user=NAMES, numbers=st.lists(NUMBERS, max_size=3))
    def delete_many(self, user, numbers):
        scope = Scope("a", user)
        self.store.write(Delete(scope, Criteria([uid(number) for number in numbers]))).result()
        for number in numbers:
            self.sizes.pop((user, number), None)

    @rule(user=NAMES)
    def purge(self, user):
        gone = [
            stored.entry
            for stored in exported(self.store, Scope("a", user))
            if stored.entry.forgotten_at is not None
        ]
        self.store.write(Purge(Scope("a", user), NOON + HOUR)).result()
        for entry in gone:
            del self.sizes[user, entry.id.int]

    @invariant()
    def sums_agree(self):
        if not hasattr(self, "store"):
            return
        assert used(self.store) == {user: self.of(user) for user in USERS}
        assert used_bytes(self.store, "a") == sum(self.sizes.values())
        assert used(self.store, "b") == {"alice": 100, "bob": 0, None: 0}
        owners = {owner for owner, _ in self.sizes}
        wanted = [user for user in USERS if user in owners]
        assert [user for user, *_ in listed(self.store)] == wanted
        assert self.store.verify().problems == ()


def _of(sizes, user):
    return sum(size for (owner, _), size in sizes.items() if owner == user)


class UsageInPostgres(Usage):
    kind = "postgres"


TestUsage = Usage.TestCase
TestUsage.settings = examples(40, least=30, stateful_step_count=25)
TestUsageInPostgres = UsageInPostgres.TestCase
TestUsageInPostgres.settings = examples(20, stateful_step_count=25)
