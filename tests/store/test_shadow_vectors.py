"""The contract of shadow vectors: those of other models than the agent's own."""

import msgspec
import numpy as np
import pytest

from mnemic.errors import ReadOnlyError
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    AddEmbeddings,
    AddShadowVectors,
    Delete,
    DropShadowVectors,
    Restore,
    RowsToEmbed,
    ScopeStatistics,
    SwitchModel,
    Update,
    VectorsById,
    VectorsOfRow,
)
from tests.store.contract import (
    AGENT,
    EVERYONE,
    added,
    changed,
    contents_of,
    embedded,
    exported,
    forgotten,
    model_of,
    one,
    revision_of,
    rows_of,
    rows_since,
    seq_of,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid

pytestmark = pytest.mark.requirement("R339", "C115")

FIRST = np.array([[1, 2, 3]], np.float32)
CHUNKS = np.array([[1, 0, 0], [0, 1, 0]], np.float32)


def kept(store, number, vectors=FIRST, *, model="other", agent="a", entry=None):
    """Store shadow vectors of an entry; return of how many entries they were stored."""
    row = rows_of(store, agent)[number]
    entry = one(store, EVERYONE, number, include_deleted=True) if entry is None else entry
    wanted = AddShadowVectors(agent, model, {row: entry}, {row: vectors})
    return store.write(wanted).result()


def held(store, model="other", agent="a"):
    """Return the numbers of the entries, deleted ones apart, with shadow vectors of a model."""
    missing = store.read(RowsToEmbed(agent, (model, 3), 0, 1000))
    return [number for number, row in sorted(rows_of(store, agent).items()) if row not in missing]


def dropped(store, model=None, agent="a"):
    return store.write(DropShadowVectors(agent, model)).result()


@pytest.mark.parametrize(("model", "vectors"), [("other", 2 * FIRST), ("third", FIRST)])
def test_vectors_take_the_place_of_earlier_ones_of_the_model_alone(store, model, vectors):
    added(store, "a", [numbered(1)])
    kept(store, 1, CHUNKS)
    kept(store, 1, FIRST, model="third")
    kept(store, 1, 2 * FIRST)
    assert held(store) == held(store, "third") == [1]
    assert store.write(SwitchModel("a", (model, 3))).result()
    assert store.read(VectorsOfRow("a", rows_of(store)[1], model)).tolist() == vectors.tolist()


def test_they_are_no_changes_and_the_agents_own_vectors_stay_as_they_are(store):
    added(store, "a", [embedded(1), embedded(2, (0, 1))])
    before = (
        seq_of(store),
        revision_of(store, AGENT),
        store.read(ScopeStatistics(EVERYONE, now=NOON)),
    )
    kept(store, 1)
    kept(store, 2, CHUNKS)
    assert (
        seq_of(store),
        revision_of(store, AGENT),
        store.read(ScopeStatistics(EVERYONE, now=NOON)),
    ) == before
    assert model_of(store, "a") == ("m", 2)
    assert rows_since(store, None).vectors.tolist() == [[1, 0], [0, 1]]
    assert store.read(VectorsOfRow("a", rows_of(store)[1], "m")).tolist() == [[1, 0]]


@pytest.mark.plain_text("PostgreSQL tells sealed ones from the agent's own by the model alone")
def test_they_are_in_no_export(store):
    added(store, "a", [numbered(1)])
    kept(store, 1)
    assert exported(store, model="other")[0].entry.embedding is None
    assert store.read(VectorsOfRow("a", rows_of(store)[1], "other")).size == 0
    wanted = (None, uid(1))
    assert store.read(VectorsById("a", [wanted], "other"))[wanted].vectors is None


@pytest.mark.plain_text("sealed vectors of the agent's model are its own")
def test_the_vectors_of_a_model_that_becomes_the_agents_own_are_kept_apart(store):
    added(store, "a", [numbered(1), numbered(2)])
    kept(store, 1, np.array([[7, 7]], np.float32), model="m")
    rows = rows_of(store)
    assert rows_since(store, None).embedded == []  # the index still embeds both
    contents = contents_of(store, "a", list(rows.values()))
    store.write(AddEmbeddings("a", "m", contents, [np.ones((1, 2), np.float32)] * 2)).result()
    assert rows_since(store, None).vectors.tolist() == [[1, 1], [1, 1]]
    assert dropped(store, "m") == 1
    assert rows_since(store, None).vectors.tolist() == [[1, 1], [1, 1]]


def test_none_are_stored_for_another_content_or_an_unknown_row(store):
    added(store, "a", [numbered(1)])
    stale = msgspec.structs.replace(one(store, AGENT, 1), content="another")
    assert kept(store, 1, entry=stale) == 0
    unknown = AddShadowVectors("a", "other", {999: stale}, {999: FIRST})
    assert store.write(unknown).result() == 0
    assert kept_for_stranger(store) == 0
    assert (held(store), dropped(store)) == ([], 0)


def kept_for_stranger(store):
    """Store vectors of one agent's row in the name of another; return of how many."""
    row, entry = rows_of(store)[1], one(store, AGENT, 1)
    return store.write(AddShadowVectors("b", "other", {row: entry}, {row: FIRST})).result()


def test_agents_have_vectors_of_their_own(store):
    added(store, "a", [numbered(1)])
    added(store, "b", [numbered(1, agent_id="b")])
    kept(store, 1)
    assert held(store, agent="b") == []
    assert dropped(store, "other", "b") == 0
    assert held(store) == [1]


def test_a_new_content_takes_all_of_them_away_and_other_changes_none(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    kept(store, 1, model="third")
    changed(store, 1, importance=0.9, add_tags=["x"])
    assert held(store) == held(store, "third") == [1]
    changed(store, 1, content="another")
    assert held(store) == held(store, "third") == []
    assert dropped(store) == 0


@pytest.mark.plain_text("PostgreSQL deletes sealed ones with the entry's own")
def test_other_own_vectors_for_the_same_content_leave_them(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    own = "m", np.array([[3, 4]], np.float32)
    store.write(
        Update(AGENT, only(1), change=lambda old: old, embedded=own, now=NOON, replace_vectors=True)
    ).result()
    assert held(store) == [1]
    assert rows_since(store, None).vectors.tolist() == [[3, 4]]


def test_other_own_vectors_of_a_sensitive_entry_take_them_away(store):
    added(store, "a", [embedded(1, sensitive=True)])
    kept(store, 1)
    own = "m", np.array([[3, 4]], np.float32)
    store.write(
        Update(AGENT, only(1), change=store.marked, embedded=own, now=NOON, replace_vectors=True)
    ).result()
    assert held(store) == []


@pytest.mark.parametrize("own", [True, False], ids=["with own vectors", "without"])
@pytest.mark.plain_text("PostgreSQL deletes sealed ones with the entry's own")
def test_an_entry_stored_over_another_keeps_them_if_the_content_stays(store, own):
    def again(**fields):
        entry = embedded(1, **fields) if own else numbered(1, **fields)
        store.write(Add("a", [NewEntry(entry)], now=NOON, on_conflict="replace")).result()

    added(store, "a", [embedded(1)])
    kept(store, 1)
    content = one(store, AGENT, 1).content
    again(content=content, importance=0.9)
    assert held(store) == [1]
    again(content=content, sensitive=True)
    assert held(store) == []
    again(content=content)
    kept(store, 1)
    again(content="another")
    assert held(store) == []


def test_deleted_entries_keep_them_until_they_are_deleted_permanently(store):
    added(store, "a", [numbered(1), numbered(2)])
    kept(store, 1)
    kept(store, 2)
    forgotten(store, 1)
    store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result()
    assert held(store) == [1, 2]
    forgotten(store, 1)
    store.write(Delete(AGENT, only(2))).result()
    assert dropped(store) == 1


def test_dropping_a_model_leaves_all_other_vectors(store):
    added(store, "a", [embedded(1), embedded(2)])
    for number in (1, 2):
        kept(store, number, CHUNKS)
        kept(store, number, model="third")
    assert dropped(store, "other") == 2
    assert dropped(store, "other") == 0
    assert dropped(store, "m") == 0  # the agent's own
    assert (held(store), held(store, "third")) == ([], [1, 2])
    kept(store, 1)
    assert dropped(store) == 3
    assert held(store, "third") == []
    assert rows_since(store, None).vectors.tolist() == [[1, 0], [1, 0]]


def test_what_one_opening_stores_another_reads(stores):
    first, second = stores
    added(first, "a", [numbered(1)])
    kept(first, 1)
    assert held(second) == [1]
    changed(second, 1, content="another")
    assert held(first) == []


def test_a_store_that_is_only_read_keeps_none(opening):
    added(store := opening(), "a", [numbered(1)])
    kept(store, 1)
    row, entry = rows_of(store)[1], one(store, AGENT, 1)
    only_read = opening(read_only=True)
    assert held(only_read) == [1]
    with pytest.raises(ReadOnlyError):
        only_read.write(AddShadowVectors("a", "other", {row: entry}, {row: FIRST}))
    with pytest.raises(ReadOnlyError):
        only_read.write(DropShadowVectors("a", "other"))


def test_a_backup_has_them(opening):
    added(store := opening(), "a", [numbered(1)])
    kept(store, 1)
    store.backup(opening.place("copy"))
    assert held(opening("copy")) == [1]


def test_a_write_that_fails_leaves_them_as_they_were(store):
    added(store, "a", [embedded(1)])
    kept(store, 1)
    with pytest.raises(ValueError, match="stop"):
        store.write(Update(AGENT, only(1), change=stopping, now=NOON)).result()
    assert held(store) == [1]


def stopping(_):
    raise ValueError("stop")
