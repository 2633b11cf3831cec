"""What every store promises to whoever saves and loads snapshots of indexes."""

import pytest

from mnemic.errors import ReadOnlyError, StoreClosedError, StoreFileError
from mnemic.store.operations import (
    Delete,
    DeleteAll,
    HasChange,
    HasRemovedSince,
    MarkOfChange,
    Restore,
    SoftDelete,
)
from tests.store.contract import AGENT, EVERYONE, added, adding, changed, seq_of
from tests.support.clock import NOON
from tests.support.entries import numbered, uid


@pytest.fixture
def keeping(opening):
    """Return what opens one place, where snapshots are kept."""
    if opening().snapshot_folder is None:
        pytest.skip("no snapshots are kept there")
    return opening


def test_a_change_has_a_nonce_and_those_of_one_write_have_the_same(keeping):
    store = keeping()
    added(store, "a", [numbered(1), numbered(2)])
    added(store, "a", [numbered(3)])
    added(store, "b", [numbered(1, agent_id="b")])
    marks = [store.read(MarkOfChange("a", seq)) for seq in (1, 2, 3)]
    assert [mark.seq for mark in marks] == [1, 2, 3]
    assert marks[0].nonce == marks[1].nonce
    nonces = {mark.nonce for mark in [*marks, store.read(MarkOfChange("b"))]}
    assert len(nonces) == 3
    assert all(0 <= nonce < 2**63 for nonce in nonces)
    assert store.read(MarkOfChange("a")) == marks[2] == keeping().read(MarkOfChange("a"))


def test_there_is_no_mark_of_what_is_not_in_the_log(keeping):
    store = keeping()
    assert store.read(MarkOfChange("a")) is None
    assert store.read(MarkOfChange("a", 0)) is None
    added(store, "a", [numbered(1)])
    assert store.read(MarkOfChange("b")) is None
    assert store.read(MarkOfChange("a", 2)) is None
    assert not store.read(HasChange("a", 2, 0))
    assert not store.read(HasChange("b", 1, 0))


def test_a_change_is_known_by_its_number_with_its_nonce(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2)])
    (first, nonce), (last, other) = store.read(MarkOfChange("a", 1)), store.read(MarkOfChange("a"))
    assert store.read(HasChange("a", first, nonce))
    assert store.read(HasChange("a", last, other))
    assert not store.read(HasChange("a", first, other))
    assert not store.read(HasChange("a", last, nonce))
    assert not store.read(HasChange("a", last, other ^ 1))
    assert not store.read(HasChange("b", last, other))


@pytest.mark.usefixtures("few_changes_are_kept")
def test_a_change_that_the_log_has_dropped_is_not_known_any_more(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    first = store.read(MarkOfChange("a"))
    for number in range(2, 12):
        added(store, "a", [numbered(number)])
    assert store.read(MarkOfChange("a", 1)) is None
    assert not store.read(HasChange("a", *first))
    assert store.read(HasRemovedSince("a", 1))
    assert not store.read(HasRemovedSince("a", 10))
    assert store.read(HasChange("a", *store.read(MarkOfChange("a"))))


def test_a_backup_that_goes_on_by_itself_has_another_history_from_there_on(keeping, tmp_path):
    store = keeping()
    added(store, "a", [numbered(1)])
    common = store.read(MarkOfChange("a"))
    path = tmp_path / "copy.db"
    store.backup(path)
    added(store, "a", [numbered(2)])
    copy = keeping("copy")
    assert copy.path.endswith("copy.db")
    assert copy.read(MarkOfChange("a")) == common
    added(copy, "a", [numbered(2)])
    own, other = store.read(MarkOfChange("a")), copy.read(MarkOfChange("a"))
    assert own.seq == other.seq == 2
    assert store.read(HasChange("a", *common))
    assert copy.read(HasChange("a", *common))
    assert not store.read(HasChange("a", *other))
    assert not copy.read(HasChange("a", *own))


def test_a_write_that_was_undone_leaves_no_nonce(keeping):
    store = keeping()
    added(store, "a", [numbered(1)])
    before = store.read(MarkOfChange("a"))
    with pytest.raises(Exception, match="already"):
        added(store, "a", [numbered(1)])
    assert store.read(MarkOfChange("a")) == before


def test_only_what_takes_content_away_is_a_removal(keeping):
    store = keeping()
    added(store, "a", [numbered(number) for number in range(1, 5)])
    harmless = {
        "add": lambda: added(store, "a", [numbered(9)]),
        "forget": lambda: store.write(SoftDelete(AGENT, uid(1), NOON)).result(),
        "restore": lambda: store.write(Restore(AGENT, uid(1), oldest=NOON, now=NOON)).result(),
        "supersede": lambda: added(store, "a", [numbered(10, supersedes=uid(4))]),
    }
    removing = {
        "update": lambda: changed(store, 1, content="other"),
        "replace": lambda: adding(store, "a", [numbered(2)], on_conflict="replace").result(),
        "delete": lambda: store.write(Delete(AGENT, uid(3))).result(),
        "delete_all": lambda: store.write(DeleteAll(EVERYONE)).result(),
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
    assert reader.read(MarkOfChange("a")) == store.read(MarkOfChange("a"))
    assert reader.read(HasChange("a", *store.read(MarkOfChange("a"))))
    with pytest.raises((ReadOnlyError, StoreFileError)), reader.locked_snapshots():
        pass


def test_a_closed_store_tells_nothing_and_gives_no_lock(keeping):
    store = keeping()
    store.close()
    for call in (
        lambda: store.read(MarkOfChange("a")),
        lambda: store.read(HasChange("a", 1, 0)),
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
