"""What stores tell those who hold what they read: of changes, and for snapshots."""

import asyncio
import gc

import pytest

from mnemic.errors import ReadOnlyError, StorageQuotaExceededError, StoreClosedError, StoreFileError
from mnemic.licensing import Quota
from mnemic.model.new_entry import NewEntry
from mnemic.store.changes import ChangeListeners
from mnemic.store.operations import Add, Delete, HasRemovedSince, NonceOfChange, Restore, SoftDelete
from tests.store.contract import AGENT, BOB, EVERYONE, added, adding, changed, one, seq_of
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid


@pytest.fixture
def keeping(opening):
    """Return what opens one place, where snapshots are kept."""
    if opening().snapshot_folder is None:
        pytest.skip("no snapshots are kept there")
    return opening


def mark(store, agent="a", seq=None):
    """Return number and nonce of a change, the last one unless given; None if it is not known."""
    seq = seq_of(store, agent) if seq is None else seq
    nonce = store.read(NonceOfChange(agent, seq))
    return None if nonce is None else (seq, nonce)


def has_change(store, agent, seq, nonce):
    return mark(store, agent, seq) == (seq, nonce)


def test_a_change_has_a_nonce_and_those_of_one_write_have_the_same(keeping):
    store = keeping()
    added(store, "a", [numbered(1), numbered(2)])
    added(store, "a", [numbered(3)])
    added(store, "b", [numbered(1, agent_id="b")])
    marks = [mark(store, "a", seq) for seq in (1, 2, 3)]
    assert [seq for seq, _ in marks] == [1, 2, 3]
    nonces = [nonce for _, nonce in [*marks, mark(store, "b")]]
    assert nonces[0] == nonces[1]
    assert len(set(nonces)) == 3
    assert all(0 <= nonce < 2**63 for nonce in nonces)
    assert mark(store, "a") == marks[2] == mark(keeping(), "a")


def test_there_is_no_mark_of_what_is_not_in_the_log(keeping):
    store = keeping()
    assert mark(store, "a") is None
    assert mark(store, "a", 0) is None
    added(store, "a", [numbered(1)])
    assert mark(store, "b") is None
    assert mark(store, "a", 2) is None
    assert not has_change(store, "a", 2, 0)
    assert not has_change(store, "b", 1, 0)


def test_a_change_is_known_by_its_number_with_its_nonce(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2)])
    (first, nonce), (last, other) = mark(store, "a", 1), mark(store, "a")
    assert has_change(store, "a", first, nonce)
    assert has_change(store, "a", last, other)
    assert not has_change(store, "a", first, other)
    assert not has_change(store, "a", last, nonce)
    assert not has_change(store, "a", last, other ^ 1)
    assert not has_change(store, "b", last, other)


@pytest.mark.usefixtures("few_changes_are_kept")
def test_a_change_that_the_log_has_dropped_is_not_known_any_more(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    first = mark(store, "a")
    for number in range(2, 12):
        added(store, "a", [numbered(number)])
    assert mark(store, "a", 1) is None
    assert not has_change(store, "a", *first)
    assert store.read(HasRemovedSince("a", 1))
    assert not store.read(HasRemovedSince("a", 10))
    assert has_change(store, "a", *mark(store, "a"))


def test_a_backup_that_goes_on_by_itself_has_another_history_from_there_on(keeping, tmp_path):
    store = keeping()
    added(store, "a", [numbered(1)])
    common = mark(store, "a")
    path = tmp_path / "copy.db"
    store.backup(path)
    added(store, "a", [numbered(2)])
    copy = keeping("copy")
    assert copy.path.endswith("copy.db")
    assert mark(copy, "a") == common
    added(copy, "a", [numbered(2)])
    own, other = mark(store, "a"), mark(copy, "a")
    assert own[0] == other[0] == 2
    assert has_change(store, "a", *common)
    assert has_change(copy, "a", *common)
    assert not has_change(store, "a", *other)
    assert not has_change(copy, "a", *own)


def test_a_write_that_was_undone_leaves_no_nonce(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    before = mark(store, "a")
    with pytest.raises(Exception, match="already"):
        added(store, "a", [numbered(1)])
    assert mark(store, "a") == before


def test_only_what_takes_content_away_is_a_removal(keeping):
    store = keeping()
    added(store, "a", [numbered(number) for number in range(1, 5)])
    harmless = {
        "add": lambda: added(store, "a", [numbered(9)]),
        "forget": lambda: store.write(SoftDelete(AGENT, only(1), NOON)).result(),
        "restore": lambda: store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result(),
        "supersede": lambda: added(store, "a", [numbered(10, supersedes=uid(4))]),
    }
    removing = {
        "update": lambda: changed(store, 1, content="other"),
        "replace": lambda: adding(store, "a", [numbered(2)], on_conflict="replace").result(),
        "delete": lambda: store.write(Delete(AGENT, only(3))).result(),
        "delete_all": lambda: store.write(Delete(EVERYONE)).result(),
    }
    for ways, expected in ((harmless, False), (removing, True)):
        for name, way in ways.items():
            seq = seq_of(store)
            way()
            assert seq_of(store) > seq
            assert store.read(HasRemovedSince("a", seq)) is expected, name
            assert not store.read(HasRemovedSince("a", seq_of(store)))
    assert store.read(HasRemovedSince("a", seq_of(store) + 1))
    assert store.read(HasRemovedSince("b", 1))


def test_a_store_without_snapshots_says_so_and_gives_no_lock(store):
    added(store, "a", [numbered(1)])
    if store.snapshot_folder is not None:
        assert store.snapshot_folder == f"{store.path}-index"
        return
    with pytest.raises(StoreFileError, match="no snapshots"), store.locked_snapshots():
        pass


def test_a_store_opened_for_reading_alone_tells_histories_and_keeps_no_snapshots(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    reader = keeping(read_only=True)
    assert reader.snapshot_folder is None
    assert mark(reader, "a") == mark(store, "a")
    assert has_change(reader, "a", *mark(store, "a"))
    with pytest.raises((ReadOnlyError, StoreFileError)), reader.locked_snapshots():
        pass


def test_a_closed_store_tells_nothing_and_gives_no_lock(keeping):
    store = keeping()
    store.close()
    for call in (
        lambda: store.read(NonceOfChange("a", 1)),
        lambda: store.read(HasRemovedSince("a", 1)),
        lambda: store.locked_snapshots().__enter__(),
    ):
        with pytest.raises(StoreClosedError):
            call()


def test_a_backup_has_no_snapshots(keeping, tmp_path):
    store = keeping()
    added(store, "a", [numbered(1)])
    with store.locked_snapshots() as folder:
        (tmp_path / folder / "saved").write_bytes(b"words")
    linked_to = tmp_path / "copy.db"
    store.backup(linked_to)
    assert linked_to.exists()
    assert not (tmp_path / "copy.db-index").exists()


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


def test_reads_accesses_and_writes_without_effect_notify_nobody(store, listener):
    (row,) = added(store, "a", [numbered(1)]).rows
    listener.take()
    store.touch("a", [row], NOON)
    store.write_accesses().result()
    store.write(Delete(BOB, only(1))).result()
    store.write(Delete(BOB)).result()
    one(store, AGENT, 1)
    assert listener.take() == []


def test_a_write_that_a_quota_refuses_notifies_nobody(store, listener):
    new = numbered(1, content="longer than that", user_id="alice")
    with pytest.raises(StorageQuotaExceededError):
        added(store, "a", [new], quota=Quota(3, None))
    with pytest.raises(StorageQuotaExceededError):
        added(store, "a", [new], user_quota=3)
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
