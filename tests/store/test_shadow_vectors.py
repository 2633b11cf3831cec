"""Vectors of another model than the agent's own, and making that model the agent's.

Random writes beside dicts show what plain stores do; here stands what stores that seal do too.
"""

import msgspec
import numpy as np
import pytest

from mnemic.store.operations import (
    AddShadowVectors,
    CountToEmbed,
    Delete,
    DropShadowVectors,
    Restore,
    RowsSince,
    RowsToEmbed,
    SwitchModel,
    Update,
    VectorsOfRow,
)
from tests.store.contract import (
    AGENT,
    EVERYONE,
    added,
    changed,
    embedded,
    forgotten,
    one,
    rows_of,
    vectors_in,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only

pytestmark = pytest.mark.requirement("R339", "C115", "C094", "C165", "C089")

NEW = ("new", 3)


def filled(store, *numbers, model=NEW, entry=None, parts=1):
    """Store new vectors of entries, their number in each component; return of how many."""
    rows = rows_of(store)
    found = {at: one(store, EVERYONE, at, include_deleted=True) for at in numbers}
    entries = {rows[at]: entry or stored for at, stored in found.items()}
    vectors = {rows[at]: np.full((parts, model[1]), at, np.float32) for at in numbers}
    return store.write(AddShadowVectors("a", model[0], entries, vectors)).result()


def waiting(store, model=NEW):
    """Return the numbers of the entries that lack new vectors."""
    numbers = {row: number for number, row in rows_of(store).items()}
    return [numbers[row] for row in store.read(RowsToEmbed("a", model, 0, 100))]


def switched(store, model=NEW):
    return store.write(SwitchModel("a", model, ())).result()


def own(store, model=NEW):
    """Return the own vectors by number, as an index loads them."""
    numbers = {row: number for number, row in rows_of(store).items()}
    batch = store.read(RowsSince("a", model, None))
    pairs = zip(batch.embedded, vectors_in(batch), strict=True)
    return {numbers[row]: vector for row, vector in pairs}


def dropped(store, name=None):
    """Drop the shadow vectors of a model, or of all; return of how many entries."""
    return store.write(DropShadowVectors("a", name)).result()


def test_entries_that_lack_vectors_are_listed_in_pages_and_counted(store):
    added(store, "a", [embedded(1), embedded(2), numbered(3)])
    assert waiting(store) == [1, 2, 3]
    assert store.read(CountToEmbed("a", NEW)) == (3, 3)
    filled(store, 2)
    assert waiting(store) == [1, 3]
    assert store.read(CountToEmbed("a", NEW)) == (2, 3)
    rows = rows_of(store)
    assert store.read(RowsToEmbed("a", NEW, 0, 1)) == [rows[1]]
    assert store.read(RowsToEmbed("a", NEW, rows[1], 9)) == [rows[3]]


def test_vectors_of_another_length_do_not_count(store):
    added(store, "a", [embedded(1)])
    filled(store, 1, model=("new", 5))
    assert waiting(store) == [1]


def test_vectors_of_fewer_parts_take_the_place_of_all_of_a_model(store):
    added(store, "a", [embedded(1)])
    for parts in (2, 1):
        filled(store, 1, parts=parts)
    assert switched(store)
    assert store.read(VectorsOfRow("a", rows_of(store)[1], "new")).tolist() == [[1, 1, 1]]


def test_an_entry_that_shall_have_no_vector_has_none_of_the_new_model_either(store):
    added(store, "a", [embedded(1, (0, 0)), embedded(2)])
    assert waiting(store) == [2]
    filled(store, 1, 2)  # as was done before its vector was taken away
    assert switched(store)
    assert own(store) == {1: [0, 0, 0], 2: [2, 2, 2]}
    assert dropped(store, "new") == 0
    assert dropped(store, "m") in {0, 1}  # none is kept of it, and none of sealed entries


def test_a_content_that_changes_meanwhile_lacks_its_vectors_again(store):
    added(store, "a", [embedded(1)])
    filled(store, 1)
    filled(store, 1, model=("third", 3))
    changed(store, 1, importance=0.9, add_tags=["x"])
    assert waiting(store) == waiting(store, ("third", 3)) == []
    changed(store, 1, content="another", embedded=("m", np.ones((1, 2), np.float32)))
    assert waiting(store) == waiting(store, ("third", 3)) == [1]
    assert switched(store) is False
    assert dropped(store) == 0


def test_none_are_stored_for_another_content_an_unknown_row_or_another_agent(store):
    added(store, "a", [numbered(1)])
    stored = one(store, AGENT, 1)
    stale = msgspec.structs.replace(stored, content="another")
    assert filled(store, 1, entry=stale) == 0
    vectors, row = np.ones((1, 3), np.float32), rows_of(store)[1]
    for agent, wrong in (("a", 999), ("b", row)):
        given = AddShadowVectors(agent, "new", {wrong: stored}, {wrong: vectors})
        assert store.write(given).result() == 0
    assert (waiting(store), dropped(store)) == ([1], 0)


def test_other_own_vectors_of_a_sensitive_entry_take_them_away(store):
    added(store, "a", [embedded(1, sensitive=True)])
    filled(store, 1)
    own = "m", np.array([[3, 4]], np.float32)
    store.write(
        Update(AGENT, only(1), change=store.marked, embedded=own, now=NOON, replace_vectors=True)
    ).result()
    assert waiting(store) == [1]


def test_deleted_entries_keep_them_until_they_are_deleted_permanently(store):
    added(store, "a", [numbered(1), numbered(2)])
    filled(store, 1, 2)
    forgotten(store, 1)
    assert waiting(store) == []
    store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result()
    assert waiting(store) == []
    forgotten(store, 1)
    store.write(Delete(AGENT, only(2))).result()
    assert dropped(store) == 1


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_all_chunks_of_a_long_entry_are_switched_and_those_of_other_agents_stay(store):
    added(store, "a", [embedded(1)])
    added(store, "b", [embedded(1, agent_id="b")])
    chunks, row = np.eye(2, 3, dtype=np.float32), rows_of(store)[1]
    entries = {row: one(store, EVERYONE, 1)}
    store.write(AddShadowVectors("a", "new", entries, {row: chunks})).result()
    before = store.position("b")
    assert switched(store)
    batch = store.read(RowsSince("a", NEW, None))
    assert (batch.embedded, vectors_in(batch)) == ([row, row], chunks.tolist())
    assert store.position("b") == before
    assert vectors_in(store.read(RowsSince("b", ("m", 2), None))) == [[1, 0]]
    assert store.read(RowsToEmbed("b", NEW, 0, 9)) == list(rows_of(store, "b").values())
