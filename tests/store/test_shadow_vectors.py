"""The contract of making another model the agent's own."""

import numpy as np
import pytest

from mnemic.errors import EmbeddingModelMismatchError, ReadOnlyError
from mnemic.model.rows import State
from mnemic.store.operations import (
    AddShadowVectors,
    CountToEmbed,
    DropShadowVectors,
    Restore,
    RowsSince,
    RowsToEmbed,
    SwitchModel,
    VectorsById,
    VectorsOfRow,
)
from tests.store.contract import (
    AGENT,
    EVERYONE,
    MODEL,
    added,
    changed,
    count_of,
    embedded,
    forgotten,
    model_of,
    one,
    revision_of,
    rows_of,
    rows_since,
    seq_of,
    vectors_in,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid

pytestmark = pytest.mark.requirement("R339", "C115", "C094", "C165", "C089")

NEW = ("new", 3)


def filled(store, *numbers, agent="a", model=NEW, scale=1.0):
    """Store new vectors of entries, `number` times `scale` in each component."""
    rows = rows_of(store, agent)
    scope = EVERYONE if agent == "a" else type(EVERYONE)(agent, all_users=True)
    entries = {rows[number]: one(store, scope, number, include_deleted=True) for number in numbers}
    vectors = {
        rows[number]: np.full((1, model[1]), number * scale, np.float32) for number in numbers
    }
    return store.write(AddShadowVectors(agent, model[0], entries, vectors)).result()


def waiting(store, agent="a", model=NEW):
    """Return the numbers of the entries that lack new vectors."""
    numbers = {row: number for number, row in rows_of(store, agent).items()}
    return [numbers[row] for row in store.read(RowsToEmbed(agent, model, 0, 100))]


def switched(store, agent="a", model=NEW, skipped=()):
    return store.write(SwitchModel(agent, model, skipped)).result()


def own(store, agent="a", model=NEW):
    """Return the own vectors by number, as an index loads them."""
    numbers = {row: number for number, row in rows_of(store, agent).items()}
    batch = store.read(RowsSince(agent, model, None))
    pairs = zip(batch.embedded, vectors_in(batch), strict=True)
    return {numbers[row]: vector for row, vector in pairs}


def dropped(store, name=None, agent="a"):
    """Drop the shadow vectors of a model, or of all; return of how many entries."""
    return store.write(DropShadowVectors(agent, name)).result()


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


def test_some_entries_may_lack_their_vectors_beside_those_that_are_skipped(store):
    added(store, "a", [embedded(1), embedded(2), embedded(3), embedded(4)])
    filled(store, 1)
    skipped = [rows_of(store)[2]]
    assert not store.write(SwitchModel("a", NEW, skipped, 1)).result()
    assert store.write(SwitchModel("a", NEW, skipped, 2)).result()
    assert own(store) == {1: [1, 1, 1]}


def test_vectors_of_another_length_do_not_count(store):
    added(store, "a", [embedded(1)])
    filled(store, 1, model=("new", 5))
    assert waiting(store) == [1]


def test_nothing_is_switched_while_an_entry_lacks_its_vectors(store):
    added(store, "a", [embedded(1), embedded(2)])
    filled(store, 1)
    before = seq_of(store)
    assert switched(store) is False
    assert seq_of(store) == before
    assert model_of(store, "a") == MODEL
    assert own(store, model=MODEL) == {1: [1, 0], 2: [1, 0]}


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_all_vectors_change_in_one_step_and_the_old_ones_are_kept(store):
    added(store, "a", [embedded(1), embedded(2, (0, 1))])
    filled(store, 1, 2)
    assert switched(store) is True
    assert model_of(store, "a") == NEW
    assert own(store) == {1: [1, 1, 1], 2: [2, 2, 2]}
    assert waiting(store, model=MODEL) == []
    with pytest.raises(EmbeddingModelMismatchError, match="reembed"):
        store.read(RowsSince("a", MODEL, None))
    with pytest.raises(EmbeddingModelMismatchError, match="'new'"):
        added(store, "a", [embedded(3)])
    assert (dropped(store, "m"), dropped(store)) == (2, 0)


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_switching_back_embeds_nothing_again(store):
    added(store, "a", [embedded(1), embedded(2, (0, 1))])
    filled(store, 1, 2)
    assert switched(store)
    assert waiting(store, model=MODEL) == []
    assert switched(store, model=MODEL)
    assert own(store, model=MODEL) == {1: [1, 0], 2: [0, 1]}
    assert waiting(store) == []
    assert switched(store)
    assert own(store) == {1: [1, 1, 1], 2: [2, 2, 2]}


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_the_old_vectors_are_dropped_on_request_and_the_own_ones_never(store):
    added(store, "a", [embedded(1)])
    filled(store, 1)
    assert switched(store)
    assert dropped(store, "new") == 0
    assert dropped(store, "m") == 1
    assert dropped(store) == 0
    assert waiting(store, model=MODEL) == [1]
    assert own(store) == {1: [1, 1, 1]}


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_all_chunks_of_a_long_entry_are_switched(store):
    added(store, "a", [embedded(1), embedded(2)])
    row = rows_of(store)[1]
    entry = one(store, EVERYONE, 1)
    chunks = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    store.write(AddShadowVectors("a", "new", {row: entry}, {row: chunks})).result()
    filled(store, 2)
    assert switched(store)
    assert store.read(VectorsOfRow("a", row, "new")).tolist() == chunks.tolist()
    assert switched(store, model=MODEL)
    assert switched(store)
    assert store.read(VectorsOfRow("a", row, "new")).tolist() == chunks.tolist()


def test_an_entry_that_shall_have_no_vector_has_none_of_the_new_model_either(store):
    added(store, "a", [embedded(1, (0, 0)), embedded(2)])
    assert waiting(store) == [2]
    filled(store, 1, 2)  # as was done before its vector was taken away
    assert switched(store)
    assert own(store) == {1: [0, 0, 0], 2: [2, 2, 2]}
    assert dropped(store, "new") == 0
    assert dropped(store, "m") in {0, 1}  # none is kept of it, and none of sealed entries


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_old_vectors_of_sensitive_entries_are_not_kept(store):
    added(store, "a", [embedded(1, sensitive=True), embedded(2)])
    assert waiting(store) == [1, 2]
    assert filled(store, 1, 2) == 2
    assert switched(store)
    assert own(store) == {1: [1, 1, 1], 2: [2, 2, 2]}
    assert waiting(store, model=MODEL) == [1]
    assert dropped(store, "m") == 1


def test_deleted_entries_need_no_vectors_and_lose_their_own(store):
    added(store, "a", [embedded(1), embedded(2)])
    forgotten(store, 1)
    assert waiting(store) == [2]
    filled(store, 2)
    assert switched(store)
    assert own(store) == {2: [2, 2, 2]}
    assert store.write(Restore(AGENT, only(1), oldest=NOON, now=NOON)).result()
    batch = rows_since(store, None, model=NEW)
    assert batch.embedded == [rows_of(store)[2]]  # an index embeds the other


def test_archived_entries_are_switched_too(store):
    added(store, "a", [embedded(1), embedded(2)])
    changed(store, 1, status="archived")
    assert waiting(store) == [1, 2]
    filled(store, 1, 2)
    assert switched(store)
    batch = store.read(RowsSince("a", NEW, None, state=State.INACTIVE))
    assert batch.vectors.tolist() == [[1, 1, 1]]


@pytest.mark.plain_text("keeps old vectors beside the new ones")
def test_skipped_entries_have_no_vectors_afterwards(store):
    added(store, "a", [embedded(1), embedded(2), embedded(3)])
    filled(store, 1)
    rows = rows_of(store)
    assert switched(store, skipped=[rows[2]]) is False
    assert switched(store, skipped=[rows[2], rows[3]]) is True
    assert own(store) == {1: [1, 1, 1]}
    assert waiting(store, model=MODEL) == []
    assert dropped(store, "m") == 3


def test_a_content_that_changes_meanwhile_lacks_its_vectors_again(store):
    added(store, "a", [embedded(1)])
    filled(store, 1)
    changed(store, 1, content="another", embedded=("m", np.ones((1, 2), np.float32)))
    assert waiting(store) == [1]
    assert switched(store) is False


def test_an_agent_without_vectors_gets_its_first_ones(store):
    added(store, "a", [numbered(1), numbered(2)])
    filled(store, 1, 2)
    assert switched(store)
    assert model_of(store, "a") == NEW
    assert own(store) == {1: [1, 1, 1], 2: [2, 2, 2]}
    assert dropped(store) == 0


def test_an_agent_without_entries_changes_nothing(store):
    assert store.read(CountToEmbed("a", NEW)) == (0, 0)
    assert switched(store)
    assert (seq_of(store), model_of(store, "a")) == (0, None)


def test_an_index_reads_all_rows_after_a_switch_and_without_vectors_only_the_changes(store):
    added(store, "a", [embedded(1), embedded(2)])
    filled(store, 1, 2)
    before = seq_of(store)
    assert switched(store)
    assert seq_of(store) == before + 1
    batch = store.read(RowsSince("a", NEW, before))
    assert (batch.since, batch.seq, len(batch.records)) == (None, before + 1, 2)
    batch = store.read(RowsSince("a", None, before))
    assert (batch.since, batch.removed, len(batch.records)) == (before, [], 1)
    assert store.read(RowsSince("a", NEW, before + 1)).since == before + 1


def test_the_revision_of_each_user_rises(store):
    entries = [embedded(1, user_id="alice"), embedded(2, user_id="bob"), embedded(3)]
    added(store, "a", entries)
    scopes = [type(EVERYONE)("a", user) for user in ("alice", "bob", None)]
    before = [revision_of(store, scope) for scope in scopes]
    filled(store, 1, 2, 3)
    assert [revision_of(store, scope) for scope in scopes] == before
    assert switched(store)
    assert [revision_of(store, scope) for scope in scopes] == [number + 1 for number in before]


def test_nothing_of_another_agent_is_touched(store):
    added(store, "a", [embedded(1)])
    added(store, "b", [embedded(1, agent_id="b"), embedded(2, (0, 1), agent_id="b")])
    filled(store, 1, agent="b", scale=7)
    before = store.position("b")
    filled(store, 1)
    assert switched(store)
    assert store.position("b") == before
    assert own(store, "b", MODEL) == {1: [1, 0], 2: [0, 1]}
    assert waiting(store, "b") == [2]
    filled(store, 2, agent="b")
    assert switched(store, "b")
    assert own(store, "b") == {1: [7, 7, 7], 2: [2, 2, 2]}


def test_entries_without_links_and_contents_lose_nothing(store):
    added(store, "a", [embedded(number) for number in range(1, 6)])
    shown = [one(store, EVERYONE, number) for number in range(1, 6)]
    filled(store, *range(1, 6))
    assert switched(store)
    assert [one(store, EVERYONE, number) for number in range(1, 6)] == shown
    assert store.read(VectorsById("a", [(None, uid(1))], "new"))[None, uid(1)].vectors is not None
    assert count_of(store, EVERYONE, now=NOON) == 5


def test_another_opening_sees_the_switch_and_a_read_only_one_cannot_make_it(opening):
    first, second = opening(), opening()
    added(first, "a", [embedded(1)])
    filled(first, 1)
    assert switched(first)
    assert model_of(second, "a") == NEW
    assert own(second) == {1: [1, 1, 1]}
    with pytest.raises(ReadOnlyError):
        opening(read_only=True).write(SwitchModel("a", MODEL))
