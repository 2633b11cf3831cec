"""Bytes and entries of each user: kept by every write, limited by quotas, listed for operators."""

import asyncio

import pytest

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import UserUsage
from mnemic.store.operations import Users
from tests.store.contract import (
    AGENT,
    added,
    adding,
    counted,
    gathered,
    paged,
    seq_of,
    used_by_user,
    used_bytes,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, uid


def listed(store, agent="a", prefix=None, *, limit=1000, offset=0, now=NOON):
    found = store.read(Users(agent, now=now, limit=limit, offset=offset, prefix=prefix))
    assert all(isinstance(user, UserUsage) for user in found)
    return [(user.user_id, user.active_entries, user.storage_bytes_used) for user in found]


def of_size(number, size, user_id="alice", **fields):
    return numbered(number, user_id=user_id, content="x" * size, **fields)


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
    assert [used_by_user(mine, "a", user) for user in ("alice", "bob", None)] == [30, 30, 0]


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
