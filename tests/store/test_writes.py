"""What every store promises of writes, and of accesses that are not written yet."""

from functools import partial

import msgspec
import numpy as np
import pytest

from mnemic.errors import (
    EmbeddingModelMismatchError,
    StorageQuotaExceededError,
)
from mnemic.licensing import Quota
from mnemic.model import MemoryStatus, MemoryType, Scope
from mnemic.model.filter import EVERY_ENTRY
from mnemic.model.timestamps import to_microseconds
from mnemic.store.operations import (
    AccessesSince,
    ChangedRows,
    Delete,
    Purge,
    Restore,
    SoftDelete,
    Update,
)
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    added,
    changed,
    counted,
    embedded,
    exported,
    forgotten,
    linked,
    numbers,
    one,
    rows_of,
    rows_since,
    seq_of,
    state_of,
)
from tests.support.clock import HOUR, MICROSECOND, NOON
from tests.support.entries import numbered, only, uid
from tests.support.threads import run_together

NEW = np.array([[5, 6]], dtype=np.float32)


# Updates


def test_an_update_keeps_what_it_may_change_and_returns_the_entry_as_it_is_then(store):
    added(store, "a", [embedded(1, tags=["a"], metadata={"x": 1}, role="user")])
    fields = {"content": "new", "importance": 0.9, "type": MemoryType.EVENT, "add_tags": ["b"]}
    returned = changed(store, 1, now=NOON + HOUR, metadata={"y": 2}, **fields)
    read = one(store, AGENT, 1)
    assert returned == read
    assert (read.content, read.importance, read.type) == ("new", 0.9, MemoryType.EVENT)
    assert (read.tags, read.metadata) == (("a", "b"), {"x": 1, "y": 2})
    assert (read.role, read.created_at, read.updated_at) == ("user", NOON, NOON + HOUR)


def test_an_update_returns_nothing_that_it_did_not_keep(store):
    def change(old):
        return msgspec.structs.replace(old, role="user", importance=0.9)

    added(store, "a", [numbered(1)])
    updated = store.write(Update(AGENT, only(1), change=change, now=NOON)).result()
    assert updated.last == one(store, AGENT, 1)


def test_an_update_changes_no_other_field(store):
    def change(old):
        other = {"role": "user", "user_id": "bob", "created_at": NOON - HOUR, "version": 9}
        return msgspec.structs.replace(old, **other, importance=0.9)

    added(store, "a", [numbered(1)])
    store.write(Update(AGENT, only(1), change=change, now=NOON)).result()
    read = one(store, AGENT, 1)
    assert (read.role, read.created_at, read.version) == (None, NOON, 2)
    assert read.importance == 0.9


def test_updates_at_once_are_made_from_each_others_results(stores):
    added(stores[0], "a", [numbered(1)])

    def work(at):
        changed(stores[at % 2], 1, add_tags=[f"t{at}"])

    run_together(*[partial(work, at) for at in range(20)])
    assert set(one(stores[0], AGENT, 1).tags) == {f"t{at}" for at in range(20)}


@pytest.mark.parametrize(
    "state",
    [
        {"forgotten_at": NOON},
        {"expires_at": NOON},
        {"status": MemoryStatus.ARCHIVED},
        {"status": MemoryStatus.SUPERSEDED},
    ],
)
def test_only_a_living_entry_is_updated(store, state):
    added(store, "a", [numbered(1, **state)])
    before = state_of(store)
    assert changed(store, 1, importance=0.9) is None
    assert state_of(store) == before


def test_an_entry_is_updated_until_the_moment_it_expires(store):
    added(store, "a", [numbered(1, expires_at=NOON)])
    assert changed(store, 1, now=NOON - MICROSECOND, importance=0.9) is not None
    assert changed(store, 1, now=NOON, importance=0.8) is None


def test_a_new_content_takes_the_old_vector_away_and_brings_its_own(store):
    added(store, "a", [embedded(1), embedded(2)])
    rows = rows_of(store)
    changed(store, 1, content="new", embedded=("m", NEW))
    changed(store, 2, content="new")
    batch = rows_since(store, None)
    assert [record[0] for record in batch.records] == [rows[1], rows[2]]
    assert batch.embedded == [rows[1]]
    assert batch.vectors.tolist() == [[5, 6]]


def test_an_unchanged_content_keeps_its_vector(store):
    added(store, "a", [embedded(1, (1, 2))])
    changed(store, 1, importance=0.9)
    assert rows_since(store, None).vectors.tolist() == [[1, 2]]


@pytest.mark.parametrize("other", [("n", NEW), ("m", np.ones((1, 3), np.float32))])
def test_an_update_with_a_vector_of_another_model_is_refused(store, other):
    added(store, "a", [embedded(1), embedded(2)])  # an agent without any vector takes another model
    before = state_of(store)
    with pytest.raises(EmbeddingModelMismatchError):
        changed(store, 1, content="new", embedded=other)
    assert state_of(store) == before


@pytest.mark.plain_text("counts bytes of contents")
def test_a_content_that_grows_past_the_quota_is_refused(store):
    added(store, "a", [numbered(1, content="x" * 8), numbered(2, content="y" * 8)])
    before = state_of(store)
    with pytest.raises(StorageQuotaExceededError):
        changed(store, 1, content="z" * 9, quota=Quota(16, "Tiny"))
    assert state_of(store) == before
    changed(store, 1, content="z" * 9, quota=Quota(17, "Tiny"))


def test_what_does_not_grow_is_updated_past_the_quota(store):
    added(store, "a", [numbered(1, content="x" * 8)])
    assert changed(store, 1, content="y" * 7, quota=Quota(5, "Tiny")).content == "y" * 7
    assert changed(store, 1, importance=0.9, quota=Quota(5, "Tiny")).importance == 0.9


# Forgetting and deleting


def test_a_forgotten_entry_says_when_it_was_forgotten_and_keeps_all_else(store):
    stored = numbered(1, tags=["t"], metadata={"x": 1})
    added(store, "a", [stored])
    forgotten(store, 1, now=NOON + HOUR)
    read = one(store, AGENT, 1, include_deleted=True)
    assert read.forgotten_at == NOON + HOUR
    assert (read.content, read.tags, read.metadata) == (stored.content, ("t",), {"x": 1})


def test_forgetting_again_is_told_and_changes_nothing(store):
    added(store, "a", [numbered(1), numbered(2)])
    forgotten(store, 1)
    before = state_of(store)
    again = store.write(SoftDelete(AGENT, only(1), NOON + HOUR)).result()
    assert (again, again.before) == ([], [uid(1)])
    assert state_of(store) == before
    unknown = store.write(SoftDelete(AGENT, only(3), NOON)).result()
    assert (unknown, unknown.before) == ([], [])
    some = store.write(SoftDelete(AGENT, only(1, 2, 3), NOON)).result()
    assert (some, some.before) == ([uid(2)], [uid(1)])
    every = store.write(SoftDelete(AGENT, EVERY_ENTRY, NOON)).result()
    assert (every, every.before) == ([], [])


def test_restoring_brings_back_the_entry_as_it_was(store):
    added(store, "a", [embedded(1), numbered(2)])
    linked(store, 1, 2)
    before = state_of(store)[:4]
    forgotten(store, 1)
    assert store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result() == [uid(1)]
    assert state_of(store)[:4] == before


@pytest.mark.requirement("C160")
def test_restoring_brings_back_the_old_status(store):
    added(store, "a", [numbered(1, status=MemoryStatus.ARCHIVED)])
    forgotten(store, 1)
    assert store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result() == [uid(1)]
    assert counted(store, AGENT) == 0
    assert one(store, AGENT, 1, include_deleted=True).status is MemoryStatus.ARCHIVED


def test_what_was_forgotten_too_long_ago_or_never_is_not_restored(store):
    added(store, "a", [numbered(1, forgotten_at=NOON), numbered(2)])
    before = state_of(store)
    for number in (1, 2, 3):
        restoring = store.write(
            Restore(AGENT, only(number), oldest=NOON + MICROSECOND, now=NOON + HOUR)
        )
        assert restoring.result() == []
    assert state_of(store) == before


def test_what_has_expired_is_not_restored(store):
    added(store, "a", [numbered(1, forgotten_at=NOON, expires_at=NOON + HOUR)])
    assert store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON + HOUR)).result() == []
    moment_before = NOON + HOUR - MICROSECOND
    assert store.write(Restore(AGENT, only(1), oldest=NOON, now=moment_before)).result() == [uid(1)]


def test_deleting_takes_an_entry_away_with_its_vector_and_links(store):
    added(store, "a", [embedded(1), embedded(2, (3, 4)), numbered(3)])
    linked(store, 1, 2)
    linked(store, 3, 1)
    assert store.write(Delete(AGENT, only(1))).result() == [uid(1)]
    assert list(rows_of(store)) == [2, 3]
    assert rows_since(store, None).vectors.tolist() == [[3, 4]]
    assert state_of(store)[3] == []
    assert store.write(Delete(AGENT, only(1))).result() == []


def test_a_forgotten_or_expired_entry_can_be_deleted(store):
    added(store, "a", [numbered(1, forgotten_at=NOON), numbered(2, expires_at=NOON)])
    assert [store.write(Delete(AGENT, only(at))).result() for at in (1, 2)] == [[uid(1)], [uid(2)]]


def owned(store):
    """Store entries of two users and of none; one is forgotten."""
    added(store, "a", [numbered(1, user_id="alice", forgotten_at=NOON - HOUR), numbered(4)])
    made = [numbered(2, user_id="alice", project_id="p"), numbered(3, user_id="alice")]
    added(store, "a", [*made, numbered(5, user_id="bob", expires_at=NOON)])


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (ALICE, [2, 3]),
        (Scope("a", "alice", "p"), [2]),
        (AGENT, [4]),
        (BOB, [5]),
        (EVERYONE, [2, 3, 4, 5]),
        (Scope("b"), []),
    ],
)
def test_forgetting_all_returns_the_ids_of_what_was_not_forgotten(store, scope, found):
    owned(store)
    seq = seq_of(store)
    assert sorted(numbers(store.write(SoftDelete(scope, EVERY_ENTRY, NOON)).result())) == found
    times = {stored.entry.id.int: stored.entry.forgotten_at for stored in exported(store)}
    assert {at for at, time in times.items() if time == NOON} == set(found)
    assert times[1] == NOON - HOUR
    assert seq_of(store) == seq + len(found)
    assert store.write(SoftDelete(scope, EVERY_ENTRY, NOON + HOUR)).result() == []
    assert seq_of(store) == seq + len(found)


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (ALICE, [1, 2, 3]),
        (Scope("a", "alice", "p"), [2]),
        (AGENT, [4]),
        (BOB, [5]),
        (EVERYONE, [1, 2, 3, 4, 5]),
        (Scope("b"), []),
    ],
)
def test_deleting_all_returns_the_ids_of_all_forgotten_or_not(store, scope, found):
    owned(store)
    assert sorted(numbers(store.write(Delete(scope)).result())) == found
    assert set(rows_of(store)) == {1, 2, 3, 4, 5} - set(found)
    assert store.write(Delete(scope)).result() == []


def test_purging_deletes_what_was_forgotten_or_expired_before_a_moment(store):
    earlier = NOON - MICROSECOND
    states = {
        1: {"forgotten_at": earlier},
        2: {"expires_at": earlier, "user_id": "alice"},
        3: {"forgotten_at": earlier, "expires_at": earlier},
        4: {"forgotten_at": NOON, "expires_at": earlier, "user_id": "bob"},
        5: {"forgotten_at": NOON},
        6: {"expires_at": NOON},
        7: {"status": MemoryStatus.ARCHIVED},
        8: {},
    }
    added(store, "a", [numbered(at, **state) for at, state in states.items()])
    seq = seq_of(store)
    assert sorted(numbers(store.write(Purge(EVERYONE, NOON)).result())) == [1, 2, 3, 4]
    assert list(rows_of(store)) == [5, 6, 7, 8]
    assert seq_of(store) == seq + 4
    assert store.write(Purge(EVERYONE, NOON)).result() == []


# Accesses


def accesses(store, number, agent="a"):
    read = one(store, Scope(agent, all_users=True), number, include_deleted=True)
    return read.access_count, read.last_accessed_at


def touch(store, agent, numbers, now):
    """Take note of accesses of the entries of these numbers; of one that is not there, too."""
    rows = rows_of(store, agent)
    store.touch(agent, [rows.get(number, 999) for number in numbers], now)


def test_an_update_and_accesses_do_not_undo_each_other(store):
    added(store, "a", [numbered(1)])
    touch(store, "a", [1], NOON)
    store.write_accesses().result()
    changed(store, 1, importance=0.9)
    assert accesses(store, 1) == (1, NOON)
    touch(store, "a", [1], NOON)
    store.write_accesses().result()
    assert one(store, AGENT, 1).importance == 0.9


def test_touches_are_counted_and_the_latest_time_is_kept(store):
    added(store, "a", [numbered(1), numbered(2), numbered(3)])
    touch(store, "a", [1, 2, 1], NOON + HOUR)
    touch(store, "a", [1], NOON)
    store.write_accesses().result()
    touch(store, "a", [2], NOON)
    store.write_accesses().result()
    assert [accesses(store, at) for at in (1, 2, 3)] == [
        (3, NOON + HOUR),
        (2, NOON + HOUR),
        (0, None),
    ]


def test_accesses_stop_at_the_largest_count_and_others_are_written_all_the_same(store):
    added(store, "a", [numbered(1, access_count=2**63 - 2), numbered(2)])
    touch(store, "a", [1, 1, 1, 2], NOON)
    store.write_accesses().result()
    assert [accesses(store, at) for at in (1, 2)] == [(2**63 - 1, NOON), (1, NOON)]


@pytest.mark.requirement("C158")
def test_accesses_are_no_change_and_are_numbered_apart(store):
    added(store, "a", [numbered(1)])
    before = store.position("a")
    touch(store, "a", [1], NOON + HOUR)
    store.write_accesses().result()
    after = store.position("a")
    assert (after.seq, after.accesses) == (before.seq, before.accesses + 1)
    assert store.read(ChangedRows("a", before.seq)) == []
    assert one(store, AGENT, 1).updated_at == NOON
    store.write_accesses().result()
    assert store.position("a") == after


def test_accesses_of_what_is_not_there_are_passed_over(store):
    added(store, "a", [numbered(1), numbered(2)])
    touch(store, "a", [1, 2, 3], NOON)
    touch(store, "nobody", [1], NOON)
    store.write(Delete(AGENT, only(1))).result()
    added(store, "a", [numbered(1)])
    store.write_accesses().result()
    assert accesses(store, 1) == (0, None)
    assert accesses(store, 2) == (1, NOON)
    assert store.position("nobody") == (0, 0)


def test_accesses_of_two_agents_with_equal_ids_are_kept_apart(store):
    for agent in ("a", "b"):
        added(store, agent, [numbered(1, agent_id=agent)])
    touch(store, "a", [1], NOON)
    touch(store, "b", [1], NOON + HOUR)
    touch(store, "b", [1], NOON)
    store.write_accesses().result()
    assert [accesses(store, 1, agent) for agent in "ab"] == [(1, NOON), (2, NOON + HOUR)]


def written_accesses(store, accesses, agent="a"):
    """Write down an access of each number at its time; return the number of the writing."""
    for number, time in accesses.items():
        touch(store, agent, [number], time)
    store.write_accesses().result()
    return store.position(agent).accesses


def accesses_since(store, accesses, agent="a"):
    """Return the last access and the count of each number, and check what they are as of."""
    accessed = store.read(AccessesSince(agent, accesses))
    assert accessed.position == store.position(agent)
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    return {number_of[row]: (last, count) for row, last, count in accessed.rows}


def test_what_was_accessed_since_is_told_whatever_the_times(store):
    added(store, "a", [numbered(1), numbered(2), numbered(3)])
    moment = to_microseconds(NOON)
    first = written_accesses(store, {1: NOON, 2: NOON})
    assert accesses_since(store, 0) == {1: (moment, 1), 2: (moment, 1)}
    assert accesses_since(store, first) == {}
    second = written_accesses(store, {2: NOON})
    assert accesses_since(store, first) == {2: (moment, 2)}
    earlier = to_microseconds(NOON - HOUR)
    third = written_accesses(store, {3: NOON - HOUR, 1: NOON - HOUR})
    assert accesses_since(store, second) == {3: (earlier, 1), 1: (moment, 2)}
    assert accesses_since(store, third) == {}
    assert accesses_since(store, 0) == {1: (moment, 2), 2: (moment, 2), 3: (earlier, 1)}


def test_accesses_that_were_never_written_so_often_are_all_told(store):
    added(store, "a", [numbered(1)])
    reached = written_accesses(store, {1: NOON})
    assert accesses_since(store, reached + 1) == accesses_since(store, 0) != {}


def test_accesses_are_listed_for_one_agent_alone(store):
    for agent in ("a", "b"):
        added(store, agent, [numbered(1, agent_id=agent)])
    written_accesses(store, {1: NOON}, "b")
    assert accesses_since(store, 0) == {}
    assert list(accesses_since(store, 0, "b")) == [1]
    assert store.read(AccessesSince("nobody", 0)) == ((0, 0), [])


def test_accesses_are_noted_until_they_are_on_disk(store):
    added(store, "a", [numbered(1), numbered(2)])
    rows = list(rows_of(store).values())
    assert not store.accesses.has("a", rows)
    touch(store, "a", [2], NOON)
    assert store.accesses.has("a", rows)
    assert not store.accesses.has("a", rows[:1])
    assert not store.accesses.has("b", rows)
    store.write_accesses().result()
    assert not store.accesses.has("a", rows)


def test_accesses_that_no_write_has_taken_are_told_by_row(store):
    added(store, "a", [numbered(1), numbered(2)])
    first, second = rows_of(store).values()
    touch(store, "a", [1], NOON)
    touch(store, "a", [1], NOON - HOUR)
    wanted = store.accesses.of("a", [first, second])
    assert wanted == {first: (2, to_microseconds(NOON))}
    assert store.accesses.of("b", [first, second]) == {}
    store.write_accesses().result()
    assert store.accesses.of("a", [first, second]) == {}
