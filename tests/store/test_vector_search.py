"""Stores that select memories for a search: what `nearest` and `active_rows` promise."""

import time

import msgspec
import numpy as np
import pytest

from mnemic.errors import DeadlineExceededError, StoreClosedError
from mnemic.model import Scope
from mnemic.model.filter import All, parse_filter
from mnemic.model.timestamps import to_microseconds
from mnemic.store import open_store
from mnemic.store.operations import (
    ActiveRows,
    BuildVectorIndex,
    Nearest,
    RowsWithoutVectors,
    SoftDelete,
)
from tests.store.conftest import URLS, Places
from tests.store.contract import ALICE, BOB, added
from tests.support.clock import DAY, NOON
from tests.support.entries import numbered, only

MODEL = ("words", 2)
EVERYBODY = Scope("a", all_users=True)


NOT_SEARCHED = {"dict", "file", "memory", "sealed", "sealed postgres"}


@pytest.fixture(params=[kind for kind in URLS if kind not in NOT_SEARCHED])
def searched(request, tmp_path):
    """Return a new store of each kind that searches vectors."""
    places = Places(request.param, tmp_path)
    opened = open_store(places.url())
    yield opened
    opened.close()
    places.drop()


def vector(x, y):
    return np.array([x, y], dtype=np.float32)


def embedded(number, x, y, user_id="alice", **fields):
    return numbered(
        number, user_id=user_id, embedding=vector(x, y), embedding_model=MODEL[0], **fields
    )


def wanted(scope=ALICE, limit=2, filters=None, **options):
    return Nearest(
        scope=scope,
        filters=All(()) if filters is None else parse_filter(filters),
        vectors=vector(1, 0)[None],
        model=MODEL,
        limit=limit,
        now=to_microseconds(NOON),
        **options,
    )


def found(store, request=None):
    """Return the ids of the selected rows as whole numbers."""
    selected = store.read(wanted() if request is None else request)
    entries = selected.entries(EVERYBODY, [record[0] for record in selected.batch.records], NOON)
    assert set(selected.batch.embedded) == entries.keys()
    return {entry.id.int for entry in entries.values()}


def test_a_store_that_searches_says_so(searched):
    added(searched, "a", [embedded(1, 1, 0)])
    assert searched.searches_vectors
    assert searched.read(wanted()) is not None
    assert searched.read(ActiveRows(ALICE, MODEL)) is not None


def test_the_nearest_memories_of_a_scope_are_selected_and_no_others(searched):
    added(searched, "a", [embedded(1, 1, 0.1), embedded(2, 1, 0.5), embedded(3, 0.1, 1)])
    added(searched, "a", [embedded(4, 1, 0, user_id="bob")])
    added(searched, "b", [msgspec.structs.replace(embedded(5, 1, 0), agent_id="b")])
    assert {1, 2} <= found(searched) <= {1, 2, 3}
    assert found(searched, wanted(BOB)) == {4}
    assert found(searched, wanted(EVERYBODY, limit=9)) == {1, 2, 3, 4}
    assert found(searched, wanted(Scope("a", "carol"))) == set()


def test_far_memories_are_left_out_and_those_that_tie_with_the_last_are_not(searched):
    added(searched, "a", [embedded(number, 1, 0) for number in range(1, 41)])
    added(searched, "a", [embedded(number, 0.1, 1) for number in range(41, 101)])
    assert found(searched, wanted(limit=3)) == set(range(1, 41))


def test_filters_expiry_and_deletion_hold(searched):
    added(
        searched,
        "a",
        [
            embedded(1, 1, 0, importance=0.1),
            embedded(2, 1, 0.1, importance=0.9),
            embedded(3, 1, 0.2, importance=0.9, expires_at=NOON),
            embedded(4, 1, 0.3, importance=0.9),
            embedded(5, 1, 0.4, importance=0.9, expires_at=NOON + DAY),
        ],
    )
    searched.write(SoftDelete(ALICE, only(4), NOON)).result()
    assert found(searched, wanted(limit=9)) == {1, 2, 5}
    assert found(searched, wanted(limit=9, filters={"importance": {"gte": 0.5}})) == {2, 5}


def test_what_the_store_cannot_tell_is_none(searched):
    added(searched, "a", [embedded(1, 1, 0)])
    assert searched.read(wanted(filters={"content": {"contains": "memory"}})) is None
    added(searched, "a", [numbered(2, user_id="alice")])  # without a vector
    assert searched.read(wanted()) is None


def test_all_active_rows_of_a_scope_come_with_their_vectors(searched):
    without = numbered(2, user_id="alice")
    added(searched, "a", [embedded(1, 1, 0), without, embedded(3, 0, 1, "bob")])
    selected = searched.read(ActiveRows(ALICE, MODEL))
    rows = [record[0] for record in selected.batch.records]
    entries = selected.entries(ALICE, rows, NOON)
    assert [entry.id.int for entry in entries.values()] == [1, 2]
    assert selected.entries(BOB, rows, NOON) == {}
    assert selected.batch.embedded == rows[:1]
    assert selected.batch.vectors.tolist() == [[1, 0]]


def test_an_approximate_index_is_built_once_and_used_beyond_the_exact_limit(searched):
    assert not searched.write(BuildVectorIndex("a")).result()  # without any vector
    added(searched, "a", [embedded(at, 1, at / 100) for at in range(1, 201)])
    assert searched.write(BuildVectorIndex("a")).result()
    assert searched.write(BuildVectorIndex("a")).result()
    selected = searched.read(wanted(is_exact=False))
    assert selected.approximate
    assert not searched.read(wanted()).approximate
    added(searched, "a", [embedded(201, 1, 0)])
    assert 201 in found(searched, wanted(is_exact=False))


def test_a_deadline_holds(searched):
    added(searched, "a", [embedded(1, 1, 0)])
    past = time.monotonic() - 1
    with pytest.raises(DeadlineExceededError):
        searched.read(wanted(), deadline=past)
    with pytest.raises(DeadlineExceededError):
        searched.read(ActiveRows(ALICE, MODEL), deadline=past)


def test_a_closed_store_says_so(searched):
    searched.close()
    for call in (
        lambda: searched.read(wanted()),
        lambda: searched.read(ActiveRows(ALICE, MODEL)),
        lambda: searched.write(BuildVectorIndex("a")).result(),
    ):
        with pytest.raises(StoreClosedError):
            call()


def test_rows_without_a_vector_of_a_model_are_named(searched):
    given = added(searched, "a", [embedded(1, 1, 0), numbered(2), numbered(3), numbered(4)])
    added(searched, "b", [numbered(5, agent_id="b")])
    searched.write(SoftDelete(EVERYBODY, only(4), NOON)).result()
    first, *others, deleted = given.rows
    assert sorted(searched.read(RowsWithoutVectors("a", MODEL))) == others
    assert sorted(searched.read(RowsWithoutVectors("a", ("other", 2)))) == [first, *others]
    assert searched.read(RowsWithoutVectors("a", MODEL, [first, others[1], deleted])) == [others[1]]
    with pytest.raises(DeadlineExceededError):
        searched.read(RowsWithoutVectors("a", MODEL), deadline=time.monotonic() - 1)
