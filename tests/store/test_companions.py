"""The contract of companion vectors: those of other models than the agent's own."""

import msgspec
import numpy as np
import pytest

from mnemic.errors import ReadOnlyError
from mnemic.model import NewEntry
from tests.store.contract import (
    AGENT,
    EVERYONE,
    added,
    changed,
    embedded,
    exported,
    forgotten,
    one,
    rows_of,
    rows_since,
    seq_of,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, uid

pytestmark = pytest.mark.requirement("R339", "C115")

PLAIN_TEXT = pytest.mark.plain_text("sealed entries have none")
FIRST = np.array([[1, 2, 3]], np.float32)
CHUNKS = np.array([[1, 0, 0], [0, 1, 0]], np.float32)


def kept(store, number, vectors=FIRST, *, model="other", agent="a", entry=None):
    """Store companion vectors of an entry; return of how many entries they were stored."""
    row = rows_of(store, agent)[number]
    entry = one(store, EVERYONE, number, include_deleted=True) if entry is None else entry
    return store.add_companions(agent, model, {row: entry}, {row: vectors}).result()


def held(store, model="other", agent="a", **options):
    """Return the companion vectors by the number of their entry."""
    numbers = {row: number for number, row in rows_of(store, agent).items()}
    found = store.companions(agent, model, **options)
    return {numbers[row]: vectors.tolist() for row, vectors in found.items()}


@PLAIN_TEXT
def test_they_are_read_by_row_with_all_chunks_in_order(store):
    added(store, "a", [numbered(1), numbered(2), numbered(3)])
    assert kept(store, 2, CHUNKS) == 1
    assert kept(store, 1) == 1
    assert held(store) == {1: FIRST.tolist(), 2: CHUNKS.tolist()}
    rows = rows_of(store)
    assert held(store, rows=[rows[2], rows[3], 999]) == {2: CHUNKS.tolist()}
    assert held(store, rows=[]) == held(store, model="unknown") == {}


@PLAIN_TEXT
def test_vectors_take_the_place_of_earlier_ones_of_the_model_alone(store):
    added(store, "a", [numbered(1)])
    kept(store, 1, CHUNKS)
    kept(store, 1, FIRST, model="third")
    kept(store, 1, 2 * FIRST)
    assert held(store) == {1: (2 * FIRST).tolist()}
    assert held(store, model="third") == {1: FIRST.tolist()}
    assert store.companion_models("a") == {"other": 1, "third": 1}


def test_they_are_no_changes_and_the_agents_own_vectors_stay_as_they_are(store):
    added(store, "a", [embedded(1), embedded(2, (0, 1))])
    before = seq_of(store), store.revision(AGENT), store.stats(EVERYONE, now=NOON)
    kept(store, 1)
    kept(store, 2, CHUNKS)
    assert (seq_of(store), store.revision(AGENT), store.stats(EVERYONE, now=NOON)) == before
    assert store.embedding_model("a") == ("m", 2)
    assert rows_since(store, None).vectors.tolist() == [[1, 0], [0, 1]]
    assert store.vectors("a", rows_of(store)[1], "m").tolist() == [[1, 0]]


def test_they_are_in_no_export(store):
    added(store, "a", [numbered(1)])
    kept(store, 1)
    assert exported(store, model="other")[0].entry.embedding is None
    assert store.vectors("a", rows_of(store)[1], "other").size == 0
    wanted = (None, uid(1))
    assert store.vectors_of("a", [wanted], "other")[wanted].vectors is None


@PLAIN_TEXT
def test_the_vectors_of_a_model_that_becomes_the_agents_own_are_kept_apart(store):
    added(store, "a", [numbered(1), numbered(2)])
    kept(store, 1, np.array([[7, 7]], np.float32), model="m")
    rows = rows_of(store)
    assert rows_since(store, None).embedded.tolist() == []  # the index still embeds both
    contents = store.contents("a", list(rows.values()))
    store.add_embeddings("a", "m", contents, [np.ones((1, 2), np.float32)] * 2).result()
    assert rows_since(store, None).vectors.tolist() == [[1, 1], [1, 1]]
    assert held(store, "m") == {1: [[7, 7]]}
    assert store.drop_companions("a", "m").result() == 1
    assert rows_since(store, None).vectors.tolist() == [[1, 1], [1, 1]]


@PLAIN_TEXT
def test_vectors_of_another_length_are_left_out(store):
    added(store, "a", [numbered(1), numbered(2)])
    kept(store, 1)
    kept(store, 2, np.ones((1, 5), np.float32))
    assert held(store) == {1: FIRST.tolist()}
    assert held(store, dimensions=5) == {2: [[1] * 5]}
    assert held(store, dimensions=4) == {}


def test_none_are_stored_for_another_content_a_sensitive_entry_or_an_unknown_row(store):
    added(store, "a", [numbered(1), numbered(2, sensitive=True)])
    stale = msgspec.structs.replace(one(store, AGENT, 1), content="another")
    assert kept(store, 1, entry=stale) == 0
    assert kept(store, 2) == 0
    assert store.add_companions("a", "other", {999: stale}, {999: FIRST}).result() == 0
    assert kept_for_stranger(store) == 0
    assert store.companion_models("a") == {}


def kept_for_stranger(store):
    """Store vectors of one agent's row in the name of another; return of how many."""
    row, entry = rows_of(store)[1], one(store, AGENT, 1)
    return store.add_companions("b", "other", {row: entry}, {row: FIRST}).result()


@PLAIN_TEXT
def test_agents_have_vectors_of_their_own(store):
    added(store, "a", [numbered(1)])
    added(store, "b", [numbered(1, agent_id="b")])
    kept(store, 1)
    row = rows_of(store)[1]
    assert store.companions("b", "other") == store.companions("b", "other", [row]) == {}
    assert store.drop_companions("b", "other").result() == 0
    assert held(store) == {1: FIRST.tolist()}


@PLAIN_TEXT
def test_a_new_content_takes_all_of_them_away_and_other_changes_none(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    kept(store, 1, model="third")
    changed(store, 1, importance=0.9, add_tags=["x"])
    assert store.companion_models("a") == {"other": 1, "third": 1}
    changed(store, 1, content="another")
    assert store.companion_models("a") == {}


@PLAIN_TEXT
def test_other_own_vectors_for_the_same_content_leave_them(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    own = "m", np.array([[3, 4]], np.float32)
    store.update(AGENT, uid(1), lambda old: old, own, now=NOON, replace_vectors=True).result()
    assert held(store) == {1: FIRST.tolist()}
    assert rows_since(store, None).vectors.tolist() == [[3, 4]]


@pytest.mark.parametrize("own", [True, False], ids=["with own vectors", "without"])
@PLAIN_TEXT
def test_an_entry_stored_over_another_keeps_them_if_the_content_stays(store, own):
    def again(**fields):
        entry = embedded(1, **fields) if own else numbered(1, **fields)
        store.add("a", [NewEntry(entry)], now=NOON, on_conflict="replace").result()

    added(store, "a", [embedded(1)])
    kept(store, 1)
    content = one(store, AGENT, 1).content
    again(content=content, importance=0.9)
    assert held(store) == {1: FIRST.tolist()}
    again(content=content, sensitive=True)
    assert held(store) == {}
    again(content=content)
    kept(store, 1)
    again(content="another")
    assert held(store) == {}


@PLAIN_TEXT
def test_deleted_entries_keep_them_until_they_are_deleted_permanently(store):
    added(store, "a", [numbered(1), numbered(2)])
    kept(store, 1)
    kept(store, 2)
    forgotten(store, 1)
    assert held(store) == {1: FIRST.tolist(), 2: FIRST.tolist()}
    store.delete(AGENT, uid(1)).result()
    assert held(store) == {2: FIRST.tolist()}


@PLAIN_TEXT
def test_dropping_a_model_leaves_all_other_vectors(store):
    added(store, "a", [embedded(1), embedded(2)])
    for number in (1, 2):
        kept(store, number, CHUNKS)
        kept(store, number, model="third")
    assert store.drop_companions("a", "other").result() == 2
    assert store.drop_companions("a", "other").result() == 0
    assert store.drop_companions("a", "m").result() == 0  # the agent's own
    assert store.companion_models("a") == {"third": 2}
    kept(store, 1)
    assert store.drop_companions("a", None).result() == 3
    assert store.companion_models("a") == {}
    assert rows_since(store, None).vectors.tolist() == [[1, 0], [1, 0]]


@PLAIN_TEXT
def test_what_one_opening_stores_another_reads(stores):
    first, second = stores
    added(first, "a", [numbered(1)])
    kept(first, 1)
    assert held(second) == {1: FIRST.tolist()}
    changed(second, 1, content="another")
    assert held(first) == {}


@PLAIN_TEXT
def test_a_store_that_is_only_read_keeps_none(opening):
    added(store := opening(), "a", [numbered(1)])
    kept(store, 1)
    row, entry = rows_of(store)[1], one(store, AGENT, 1)
    only_read = opening(read_only=True)
    assert held(only_read) == {1: FIRST.tolist()}
    with pytest.raises(ReadOnlyError):
        only_read.add_companions("a", "other", {row: entry}, {row: FIRST})
    with pytest.raises(ReadOnlyError):
        only_read.drop_companions("a", "other")


@PLAIN_TEXT
def test_a_backup_has_them(opening):
    added(store := opening(), "a", [numbered(1)])
    kept(store, 1)
    store.backup(opening.place("copy"))
    assert held(opening("copy")) == {1: FIRST.tolist()}


@PLAIN_TEXT
def test_a_write_that_fails_leaves_them_as_they_were(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    with pytest.raises(ValueError, match="stop"):
        store.update(AGENT, uid(1), stopping, now=NOON).result()
    assert held(store) == {1: FIRST.tolist()}


def stopping(_):
    raise ValueError("stop")
