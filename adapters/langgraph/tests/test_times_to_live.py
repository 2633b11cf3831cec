"""Expiry, its prolongation by reads, and sweeping."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from langgraph.store.base import GetOp
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore

HERE = ("cache",)


class Clock:
    """A time that tests move; the adapter takes the expiry from it too."""

    def __init__(self):
        self.now = datetime(2026, 11, 29, tzinfo=UTC)

    def __call__(self):
        return self.now

    def pass_minutes(self, minutes):
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()

    class Moved(datetime):
        @classmethod
        def now(cls, zone=None):
            return clock.now.astimezone(zone)

    monkeypatch.setattr("langgraph.store.mnemic.store.datetime", Moved)
    return clock


def opened(clock, **ttl):
    return MnemicStore.from_conn_string(":memory:", ttl=ttl or None, clock=clock)


def test_reads_prolong_a_life_unless_they_say_otherwise(clock):
    with opened(clock, default_ttl=10) as store:
        for key in ("got", "found", "not found", "not prolonged"):
            store.put(HERE, key, {"k": key})
        store.put(HERE, "for ever", {"k": 0}, ttl=None)
        store.put(HERE, "short", {"k": 1}, ttl=2)
        clock.pass_minutes(6)
        assert store.get(HERE, "short") is None
        store.get(HERE, "got")
        store.search(HERE, filter={"k": "found"})
        store.get(HERE, "not prolonged", refresh_ttl=False)
        clock.pass_minutes(6)
        found = {item.key for item in store.search(HERE, refresh_ttl=False)}
        assert found == {"got", "found", "for ever"}
        clock.pass_minutes(6)
        assert {item.key for item in store.search(HERE)} == {"for ever"}
        assert store.sweep_ttl() == 5
        assert store.sweep_ttl() == 0


def test_refresh_on_read_is_the_default_of_reads(clock):
    with opened(clock, default_ttl=10, refresh_on_read=False) as store:
        store.put(HERE, "a", {})
        store.put(HERE, "b", {})
        clock.pass_minutes(6)
        store.get(HERE, "a")
        store.get(HERE, "b", refresh_ttl=True)
        clock.pass_minutes(6)
        assert [item.key for item in store.search(HERE)] == ["b"]


def test_an_expired_item_is_in_no_answer_before_it_is_swept(clock):
    with opened(clock) as store:
        store.put(HERE, "a", {"n": 1}, ttl=1)
        created = store.get(HERE, "a").created_at
        clock.pass_minutes(1)
        assert store.get(HERE, "a") is None
        assert store.search(HERE) == store.list_namespaces() == []
        store.put(HERE, "a", {"n": 2})
        assert store.get(HERE, "a").value == {"n": 2}
        assert store.get(HERE, "a").created_at >= created
        assert store.sweep_ttl() == 0


def test_a_prolonged_item_was_not_updated(clock):
    with opened(clock) as store:
        store.put(HERE, "a", {}, ttl=5)
        before = store.get(HERE, "a")
        clock.pass_minutes(1)
        store.batch([GetOp(HERE, "a"), GetOp(HERE, "a", refresh_ttl=False)])
        assert store.get(HERE, "a") == before


def test_lives_of_any_length_are_taken(clock):
    with opened(clock) as store:
        store.put(HERE, "a", {}, ttl=1e15)
        store.put(HERE, "b", {}, ttl=-1)
        assert [item.key for item in store.search(HERE)] == ["a"]
        for bad in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match=r"."):
                store.put(HERE, "c", {}, ttl=bad)


def test_a_sweeper_starts_once_and_stops():
    with MnemicStore.from_conn_string(
        ":memory:", ttl={"default_ttl": 0.001, "sweep_interval_minutes": 0.001}
    ) as store:
        first = store.start_ttl_sweeper()
        assert store.start_ttl_sweeper() is first
        store.put(HERE, "a", {})
        ends = time.monotonic() + 30
        while store.memory.list(include_deleted=True, all_users=True):
            assert time.monotonic() < ends, "it is not swept"
            time.sleep(0.01)
        assert store.stop_ttl_sweeper(30)
        assert first.result(0) is None
        again = store.start_ttl_sweeper(60)
        assert again is not first
        assert again.cancel()
        assert store.stop_ttl_sweeper(30)
    with MnemicStore.from_conn_string(":memory:") as store:
        assert store.start_ttl_sweeper().done()
        assert store.stop_ttl_sweeper()


def test_a_sweep_that_fails_is_followed_by_others(caplog):
    with MnemicStore.from_conn_string(":memory:", ttl={"sweep_interval_minutes": 0.0001}) as store:
        swept = []

        def fail():
            swept.append(1)
            raise OSError("no disk")

        store.sweep_ttl = fail
        store.start_ttl_sweeper()
        ends = time.monotonic() + 30
        while len(swept) < 3:
            assert time.monotonic() < ends, "the sweeper has ended"
            time.sleep(0.01)
        assert store.stop_ttl_sweeper(30)
    assert "no disk" in caplog.text


def test_the_awaited_store_sweeps_too():
    async def run():
        ttl = {"default_ttl": 0.0005, "sweep_interval_minutes": 0.001}
        async with AsyncMnemicStore.from_conn_string(":memory:", ttl=ttl) as store:
            await store.aput(HERE, "a", {})
            sweeper = await store.start_ttl_sweeper()
            while store.store.memory.list(include_deleted=True, all_users=True):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert await store.stop_ttl_sweeper(30)
            await sweeper
            assert await store.sweep_ttl() == 0

    asyncio.run(asyncio.wait_for(run(), 60))
