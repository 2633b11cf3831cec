"""Quotas of contents: full at their last byte, and never passed."""

import asyncio
import threading

import pytest

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.store.operations import Delete, DeleteAll, Purge
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    added,
    adding,
    changed,
    counted,
    forgotten,
    gathered,
    paged,
    seq_of,
    used_bytes,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid


@pytest.mark.plain_text("counts bytes of contents")
def test_a_quota_is_full_at_its_last_byte(store):
    added(store, "a", [numbered(1, content="é" * 5)], quota=Quota(10, "Tiny"))
    with pytest.raises(StorageQuotaExceededError) as caught:
        added(store, "a", [numbered(2, content="x")], quota=Quota(10, "Tiny"))
    error = caught.value
    assert (error.current_usage, error.limit, error.license_tier) == (10, 10, "Tiny")
    assert paged(store) == [1]


@pytest.mark.plain_text("counts bytes of contents")
def test_a_call_that_would_pass_the_quota_stores_nothing(store):
    entries = [numbered(at, content="12345") for at in range(3)]
    with pytest.raises(StorageQuotaExceededError):
        added(store, "a", entries, quota=Quota(14, "Tiny"))
    assert (seq_of(store), used_bytes(store, "a")) == (0, 0)
    added(store, "a", entries, quota=Quota(15, "Tiny"))


@pytest.mark.plain_text("counts bytes of contents")
def test_a_quota_is_one_agents_alone(store):
    added(store, "b", [numbered(1, agent_id="b", content="x" * 10)])
    added(store, "a", [numbered(1, content="x" * 10)], quota=Quota(10, "Tiny"))


@pytest.mark.plain_text("counts bytes of contents")
def test_what_is_not_stored_again_needs_no_space(store):
    full = Quota(8, "Tiny")
    added(store, "a", [numbered(1)], ["k"], quota=full)
    again = [numbered(2, content="memory 1", tags=["new"])]
    assert added(store, "a", again, ["k"], quota=full).ids == [uid(1)]
    for rule in ("skip", "merge"):
        assert added(store, "a", again, on_duplicate=rule, quota=full).ids == [uid(1)]


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


@pytest.mark.plain_text("counts bytes of contents")
def test_twenty_threads_at_once_never_pass_the_quota(store):
    refused = []

    def work(at):
        try:
            added(store, "a", [numbered(at, content=f"{at:010}")], quota=Quota(100, "Tiny"))
        except StorageQuotaExceededError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 10
    assert used_bytes(store, "a") == 100


@pytest.mark.plain_text("counts bytes of contents")
def test_used_bytes_are_those_of_all_contents_that_are_stored(store):
    assert used_bytes(store, "a") == 0
    added(store, "a", [numbered(1, content="é🙂", user_id="alice"), numbered(2, content="abc")])
    assert used_bytes(store, "a") == 9
    forgotten(store, 2)
    assert used_bytes(store, "a") == 9
    changed(store, 1, ALICE, content="é")
    assert used_bytes(store, "a") == 5
    store.write(Delete(AGENT, uid(2))).result()
    assert used_bytes(store, "a") == 2
    store.write(DeleteAll(ALICE)).result()
    assert used_bytes(store, "a") == 0


@pytest.mark.plain_text("counts bytes of contents")
def test_purged_contents_take_no_bytes(store):
    added(store, "a", [numbered(1), numbered(2, forgotten_at=NOON - HOUR)])
    store.write(Purge(EVERYONE, NOON)).result()
    assert used_bytes(store, "a") == len("memory 1")
