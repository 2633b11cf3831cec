"""What every store promises of reading entries, and of rows that it holds for searches."""

import pytest

from mnemic.model import MemoryStatus, TagUsage
from mnemic.store.operations import EntriesByRow, RowsSince, ScopeStatistics, SoftDelete
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    added,
    embedded,
    entries_by_id,
    exported,
    numbers,
    one,
    rows_of,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid

ARCHIVED = {"status": MemoryStatus.ARCHIVED}
SUPERSEDED = {"status": MemoryStatus.SUPERSEDED}


def of_rows(store, scope, rows, now=NOON):
    return {
        row: found.id.int for row, found in store.read(EntriesByRow(scope, rows, now=now)).items()
    }


# What is found


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_any_number_of_rows_is_read_at_once(store, count):
    added(store, "a", [numbered(at) for at in range(40)])
    rows = rows_of(store)
    wanted = {rows[at]: at for at in range(count)}
    assert of_rows(store, AGENT, list(wanted)) == wanted


def test_ids_and_rows_that_are_unknown_or_named_twice_do_no_harm(store):
    added(store, "a", [numbered(1)])
    row = rows_of(store)[1]
    assert numbers(entries_by_id(store, AGENT, [uid(9), uid(1), uid(1)], now=NOON)) == [1]
    assert of_rows(store, AGENT, [row + 9, row, row]) == {row: 1}
    assert entries_by_id(store, AGENT, [], now=NOON) == {}
    assert of_rows(store, AGENT, []) == {}


def test_a_thousand_ids_or_rows_are_read_at_once(store):
    added(store, "a", [numbered(at) for at in range(1000)])
    found = entries_by_id(store, AGENT, [uid(at) for at in range(1000)], now=NOON)
    assert len(found) == len(of_rows(store, AGENT, list(rows_of_all(store)))) == 1000


def rows_of_all(store):
    return {stored.row for stored in exported(store, limit=10_000)}


def test_entries_are_read_without_their_embeddings(store):
    added(store, "a", [embedded(1)])
    row = rows_of(store)[1]
    read = [
        one(store, AGENT, 1),
        store.read(EntriesByRow(AGENT, [row], now=NOON))[row],
        exported(store)[0].entry,
    ]
    assert [entry.embedding for entry in read] == [None] * 3


# Contents, counts and figures


def test_figures_name_the_ten_tags_of_most_entries(store):
    made = [numbered(at, tags=[f"t{n:02}" for n in range(at, 12)]) for at in range(12)]
    added(store, "a", [*made, numbered(20, tags=["b", "b", "a"]), numbered(21, tags=["gone"])])
    store.write(SoftDelete(AGENT, only(21), NOON)).result()
    top = store.read(ScopeStatistics(EVERYONE, now=NOON)).top_tags
    assert top == tuple(TagUsage(f"t{n:02}", n + 1) for n in range(11, 1, -1))


def test_tags_used_alike_are_named_in_their_order(store):
    added(store, "a", [numbered(1, tags=["b", "é", "a", "B"]), numbered(2, tags=["b"])])
    top = store.read(ScopeStatistics(EVERYONE, now=NOON)).top_tags
    assert [tag.tag for tag in top] == ["b", "B", "a", "é"]


def loaded(store):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="bob")])
    store.read(RowsSince("a", None, None))


def read(store, scope, rows=(1, 2)):
    found = store.read(EntriesByRow(scope, list(rows), now=NOON))
    return {row: entry.content for row, entry in found.items()}


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
    store.read(RowsSince("a", None, None))
    assert store.cached_bytes("a") < 1000
    assert read(store, ALICE, (1,)) == {1: secret.content}
