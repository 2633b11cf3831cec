"""What every store promises of rows that it holds in memory for searches."""

import pytest

from mnemic.model.rows import State
from mnemic.store.operations import Delete, EntriesByRow, SoftDelete
from tests.store.contract import ALICE, BOB, added, changed, one
from tests.support.clock import NOON
from tests.support.entries import numbered


def loaded(store):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="bob")])
    store.rows_since("a", None, None, state=State.ACTIVE)


def read(store, scope, rows=(1, 2)):
    found = store.read(EntriesByRow(scope, list(rows), now=NOON))
    return {row: entry.content for row, entry in found.items()}


def test_rows_that_are_held_are_read_as_they_are_stored_and_within_the_scopes(store):
    loaded(store)
    assert read(store, ALICE) == {1: "memory 1"}
    assert read(store, BOB) == {2: "memory 2"}
    held = store.read(EntriesByRow(ALICE, [1], now=NOON))[1]
    store.release("a")
    assert held == store.read(EntriesByRow(ALICE, [1], now=NOON))[1]


def test_a_change_of_a_held_row_is_read_at_once(store):
    loaded(store)
    read(store, ALICE)
    changed(store, 1, ALICE, content="new")
    assert read(store, ALICE) == {1: "new"}
    added(store, "a", [numbered(3, user_id="alice")])
    assert read(store, ALICE, (1, 3)) == {1: "new", 3: "memory 3"}
    store.write(SoftDelete(ALICE, numbered(1).id, NOON)).result()
    assert read(store, ALICE, (1, 3)) == {3: "memory 3"}
    store.write(Delete(ALICE, numbered(3).id)).result()
    assert read(store, ALICE, (1, 3)) == {}


def test_accesses_of_a_held_row_are_read(store):
    loaded(store)
    read(store, ALICE)
    store.touch("a", [1], NOON)
    store.write_accesses().result()
    assert store.read(EntriesByRow(ALICE, [1], now=NOON))[1].access_count == 1
    assert one(store, ALICE, 1).access_count == 1


def test_what_is_released_takes_no_bytes(store):
    loaded(store)
    assert (store.cached_bytes("a") > 0) == store.is_remote  # others read their file
    assert store.cached_bytes("b") == 0
    store.release("a")
    assert store.cached_bytes("a") == 0
    assert read(store, ALICE) == {1: "memory 1"}


@pytest.mark.plain_text("looks at memories that are not sealed")
def test_sensitive_texts_are_not_held(store):
    secret = numbered(1, user_id="alice", sensitive=True, content="a secret " * 1000)
    added(store, "a", [secret])
    store.rows_since("a", None, None, state=State.ACTIVE)
    assert store.cached_bytes("a") < 1000
    assert read(store, ALICE, (1,)) == {1: secret.content}
