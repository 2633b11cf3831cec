"""What every store promises to listeners of the changes that its process commits."""

import asyncio
import gc

import pytest

from mnemic.model.new_entry import NewEntry
from mnemic.store.changes import ChangeListeners
from mnemic.store.operations import (
    Add,
    Delete,
    DeleteAll,
    Link,
    Purge,
    Restore,
    SetExpiry,
    SoftDelete,
    SoftDeleteAll,
)
from tests.store.contract import AGENT, ALICE, BOB, EVERYONE, added, changed, link_of, one
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid


class Listener:
    def __init__(self):
        self.received = []

    def receive(self, changed_users):
        self.received.append(set(changed_users))

    def take(self):
        received, self.received = self.received, []
        return received


@pytest.fixture
def listener(store):
    listener = Listener()
    store.watch(listener.receive)
    return listener


def test_a_listener_receives_agent_and_user_of_a_change(store, listener):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="alice")])
    assert listener.take() == [{("a", "alice")}]
    added(store, "a", [numbered(3), numbered(4, user_id="bob")])
    assert listener.take() == [{("a", None), ("a", "bob")}]
    added(store, "b", [numbered(5, agent_id="b")])
    assert listener.take() == [{("b", None)}]


WRITES = {
    "update": lambda store: changed(store, 1, ALICE, importance=0.1),
    "expiry": lambda store: store.write(
        SetExpiry(ALICE, [uid(1)], NOON + 2 * HOUR, now=NOON)
    ).result(),
    "link": lambda store: store.write(Link(ALICE, link_of(1, 2), now=NOON)).result(),
    "soft delete": lambda store: store.write(SoftDelete(ALICE, uid(1), NOON)).result(),
    "delete": lambda store: store.write(Delete(ALICE, uid(1))).result(),
    "delete all softly": lambda store: store.write(SoftDeleteAll(ALICE, NOON)).result(),
    "delete all": lambda store: store.write(DeleteAll(ALICE)).result(),
    "delete all of all users": lambda store: store.write(DeleteAll(EVERYONE)).result(),
    "purge": lambda store: store.write(Purge(EVERYONE, NOON + 9 * HOUR, NOON + 9 * HOUR)).result(),
    "replace": lambda store: added(
        store, "a", [numbered(1, user_id="alice", content="new")], on_conflict="replace"
    ),
    "merge": lambda store: added(
        store, "a", [numbered(9, user_id="alice", tags=("new",))], on_duplicate="merge"
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_listeners_are_notified_of_every_kind_of_change(store, listener, write):
    same = {"content": "x", "user_id": "alice"}
    added(store, "a", [numbered(1, **same, expires_at=NOON + HOUR), numbered(2, **same)])
    listener.take()
    write(store)
    assert listener.take() == [{("a", "alice")}]


def test_listeners_are_notified_of_a_restored_memory(store, listener):
    added(store, "a", [numbered(1, user_id="alice")])
    store.write(SoftDelete(ALICE, uid(1), NOON)).result()
    listener.take()
    assert store.write(Restore(ALICE, uid(1), oldest=NOON, now=NOON)).result()
    assert listener.take() == [{("a", "alice")}]


def test_reads_accesses_and_writes_without_effect_notify_nobody(store, listener):
    (row,) = added(store, "a", [numbered(1)]).rows
    listener.take()
    store.touch("a", [row], NOON)
    store.write_accesses().result()
    store.write(Delete(BOB, uid(1))).result()
    store.write(DeleteAll(BOB)).result()
    one(store, AGENT, 1)
    assert listener.take() == []


def test_listeners_are_notified_after_the_commit_and_before_the_write_is_done(stores):
    store, other = stores
    notified = []

    class Reader:
        def receive(self, _):
            notified.append((one(other, AGENT, 1) is not None, futures[0].done()))

    reader = Reader()
    store.watch(reader.receive)

    async def write():  # in an event loop the future is there before the write
        futures.append(store.write(Add("a", [NewEntry(numbered(1))], now=NOON)))
        await asyncio.wrap_future(futures[0])

    futures = []
    asyncio.run(write())
    assert notified == [(True, False)]


def test_other_stores_of_the_process_on_the_same_place_notify_too(stores):
    first, second = stores
    listener = Listener()
    first.watch(listener.receive)
    added(second, "a", [numbered(1, user_id="alice")])
    assert listener.take() == [{("a", "alice")}]


def test_stores_on_other_places_do_not_notify(opening):
    listener = Listener()
    opening("a").watch(listener.receive)
    added(opening("b"), "a", [numbered(1)])
    assert listener.take() == []


def test_files_without_listeners_are_forgotten():
    listeners = ChangeListeners()
    for number in range(50):
        listeners.add(number, Listener().receive)
    kept = Listener()
    listeners.add("file", kept.receive)
    assert list(listeners._methods) == ["file"]
    listeners.notify("file", {("a", None)})
    listeners.notify(7, {("a", None)})
    assert kept.take() == [{("a", None)}]


def test_a_listener_is_held_weakly(store):
    listener, received = Listener(), []
    listener.received = received
    store.watch(listener.receive)
    del listener
    gc.collect()
    added(store, "a", [numbered(1)])
    assert received == []
