"""What every store promises of writes, and of accesses that are not written yet."""

from functools import partial

import msgspec

from mnemic.model import Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.operations import Delete, Update
from tests.store.contract import AGENT, added, changed, one, rows_of
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only
from tests.support.threads import run_together

# Updates


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


# Accesses


def accesses(store, number, agent="a"):
    read = one(store, Scope(agent, all_users=True), number, include_deleted=True)
    return read.access_count, read.last_accessed_at


def touch(store, agent, numbers, now):
    """Take note of accesses of the entries of these numbers; of one that is not there, too."""
    rows = rows_of(store, agent)
    store.touch(agent, [rows.get(number, 999) for number in numbers], now)


def test_accesses_stop_at_the_largest_count_and_others_are_written_all_the_same(store):
    added(store, "a", [numbered(1, access_count=2**63 - 2), numbered(2)])
    touch(store, "a", [1, 1, 1, 2], NOON)
    store.write_accesses().result()
    assert [accesses(store, at) for at in (1, 2)] == [(2**63 - 1, NOON), (1, NOON)]


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
