"""What every store promises of the states that rows come in, and of the links between them."""

import pytest

from mnemic.model import LinkType, MemoryStatus
from mnemic.model.rows import State
from mnemic.store.operations import Delete, Restore, SoftDelete, Unlink
from tests.store.contract import (
    AGENT,
    added,
    changed,
    embedded,
    embedded_numbers,
    link_of,
    linked,
    row_of,
    rows_of,
    rows_since,
    seq_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid

MODEL = ("m", 2)


def batch_of(store, state, seq=None, agent="a"):
    return store.rows_since(agent, MODEL, seq, state=state)


def numbers_of(store, batch, agent="a"):
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    return sorted(number_of[record[0]] for record in batch.records)


def links_of(store, batch, agent="a"):
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    return sorted((number_of[one], number_of[other], kind) for one, other, kind, _ in batch.links)


def filled(store):
    """Store a living, an archived, a superseded and a forgotten entry, all with vectors."""
    added(store, "a", [embedded(number) for number in (1, 3, 4)])
    added(store, "a", [embedded(2, status=MemoryStatus.ARCHIVED)])
    added(store, "a", [embedded(5, supersedes=uid(3))])
    store.write(SoftDelete(AGENT, uid(4), NOON)).result()


def test_each_state_has_its_own_rows_and_their_vectors(store):
    filled(store)
    for state, numbers in (
        (State.ACTIVE, [1, 5]),
        (State.INACTIVE, [2, 3]),
        (State.DELETED, [4]),
    ):
        batch = batch_of(store, state)
        assert (numbers_of(store, batch), batch.seq) == (numbers, seq_of(store))
        assert len(batch.embedded) == len(numbers)
    assert embedded_numbers(rows_since(store, None)) == {1, 5}


def test_a_row_that_changes_its_state_goes_from_one_and_comes_to_the_other(store):
    filled(store)
    before, rows = seq_of(store), rows_of(store)
    store.write(SoftDelete(AGENT, uid(1), NOON)).result()
    store.write(Restore(AGENT, uid(4), oldest=NOON - HOUR, now=NOON)).result()
    living, forgotten = (batch_of(store, state, before) for state in (State.ACTIVE, State.DELETED))
    assert (numbers_of(store, living), living.removed) == ([4], [rows[1]])
    assert (numbers_of(store, forgotten), forgotten.removed) == ([1], [rows[4]])
    outdated = batch_of(store, State.INACTIVE, before)
    assert (outdated.records, outdated.removed) == ([], sorted([rows[1], rows[4]]))


def test_an_entry_is_archived_and_brought_back_by_an_update(store):
    added(store, "a", [embedded(1)])
    before = seq_of(store)
    archived = changed(store, 1, status=MemoryStatus.ARCHIVED, archived=True)
    assert archived.status is MemoryStatus.ARCHIVED
    assert numbers_of(store, batch_of(store, State.INACTIVE, before)) == [1]
    assert changed(store, 1, importance=0.9) is None
    back = changed(store, 1, status=MemoryStatus.ACTIVE, archived=True)
    assert back.status is MemoryStatus.ACTIVE
    assert numbers_of(store, batch_of(store, State.ACTIVE, before)) == [1]


def test_what_superseded_another_cannot_be_undone_by_an_update(store):
    filled(store)
    assert changed(store, 3, status=MemoryStatus.ACTIVE, archived=True) is None


def test_the_links_of_living_rows_come_with_everything(store):
    added(store, "a", [numbered(number) for number in (1, 2, 3)])
    added(store, "b", [numbered(number, agent_id="b") for number in (7, 8)])
    linked(store, 1, 2)
    linked(store, 2, 3, kind=LinkType.CONTRADICTS)
    store.write(SoftDelete(AGENT, uid(2), NOON)).result()
    batch = batch_of(store, State.ACTIVE)
    assert links_of(store, batch) == [(1, 2, int(link_of(1, 2).type))]
    assert batch_of(store, State.DELETED).links == []
    assert batch_of(store, State.ACTIVE, agent="b").links == []


def test_a_touched_row_comes_with_all_its_links_and_without_those_that_went(store):
    added(store, "a", [numbered(number) for number in (1, 2, 3)])
    linked(store, 1, 2)
    linked(store, 2, 3)
    before, rows = seq_of(store), rows_of(store)
    linked(store, 1, 3)
    batch = batch_of(store, State.ACTIVE, before)
    kind = int(link_of(1, 2).type)
    assert (batch.linked, links_of(store, batch)) == ([rows[1]], [(1, 2, kind), (1, 3, kind)])
    before = seq_of(store)
    store.write(Unlink(AGENT, uid(1), uid(2), None)).result()
    store.write(Unlink(AGENT, uid(1), uid(3), None)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.linked, batch.links) == ([rows[1]], [])


def test_a_forgotten_row_brings_no_links_and_a_restored_one_brings_them_back(store):
    added(store, "a", [numbered(number) for number in (1, 2)])
    linked(store, 1, 2)
    before, rows = seq_of(store), rows_of(store)
    store.write(SoftDelete(AGENT, uid(1), NOON)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.removed, batch.linked, batch.links) == ([rows[1]], [rows[1]], [])
    before = seq_of(store)
    store.write(Restore(AGENT, uid(1), oldest=NOON - HOUR, now=NOON)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.linked, len(batch.links)) == ([rows[1]], 1)


def test_a_row_deleted_for_good_is_not_among_those_whose_links_are_replaced(store):
    added(store, "a", [numbered(number) for number in (1, 2)])
    linked(store, 1, 2)
    before, rows = seq_of(store), rows_of(store)
    store.write(Delete(AGENT, uid(2))).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.removed, batch.linked, batch.links) == ([rows[2]], [], [])


@pytest.mark.requirement("C161")
def test_supersessions_of_rows_in_another_state_come_with_the_active_ones(store):
    added(store, "a", [numbered(1), numbered(4)])
    linked(store, 4, 1)
    added(store, "a", [numbered(2, supersedes=uid(1))])
    before = seq_of(store)
    added(store, "a", [numbered(3, supersedes=uid(2))])
    kind = int(LinkType.SUPERSEDES)
    rows, changed = rows_of(store), batch_of(store, State.ACTIVE, before)
    assert (changed.removed, changed.linked) == ([rows[2]], sorted([rows[2], rows[3]]))
    assert sorted(links_of(store, changed)) == [(2, 1, kind), (3, 2, kind)]
    whole = batch_of(store, State.ACTIVE, None)
    related = int(link_of(4, 1).type)
    assert sorted(links_of(store, whole)) == [(2, 1, kind), (3, 2, kind), (4, 1, related)]
    assert batch_of(store, State.INACTIVE, None).links == []


def test_the_row_of_an_entry_is_told_to_its_scope_alone(store):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2)])
    rows = rows_of(store)
    assert row_of(store, AGENT, uid(2), now=NOON) == rows[2]
    assert row_of(store, AGENT, uid(1), now=NOON) is None
    store.write(SoftDelete(AGENT, uid(2), NOON)).result()
    assert row_of(store, AGENT, uid(2), now=NOON) is None
