"""What every store promises of reading entries, and of rows that it holds for searches."""

import pytest

from mnemic.model import MemorySortOrder, MemoryStatus, MemoryType, TagUsage
from mnemic.store.operations import Delete, EntriesByRow, RowsSince, ScopeStatistics, SoftDelete
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    added,
    changed,
    contents_of,
    embedded,
    entries_by_id,
    exported,
    matched,
    numbers,
    one,
    paged,
    rows_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid
from tests.support.filter_twin import matches, ordered

FORGOTTEN = {"forgotten_at": NOON}
EXPIRED = {"expires_at": NOON}
ARCHIVED = {"status": MemoryStatus.ARCHIVED}
SUPERSEDED = {"status": MemoryStatus.SUPERSEDED}
STATES = [FORGOTTEN, EXPIRED, ARCHIVED, SUPERSEDED]


def in_every_state(store):
    """Store a forgotten (0), an expired (1), an archived (2), a superseded and a living entry."""
    added(store, "a", [numbered(at, **state) for at, state in enumerate([*STATES, {}])])


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


# Filters and their order

VARIED = [
    numbered(1, importance=0.2, tags=["x", "y"], role="user", metadata={"n": 1, "s": "a"}),
    numbered(2, importance=0.9, tags=["x"], access_count=3, metadata={"n": 1.5, "list": ["a", 2]}),
    numbered(3, type=MemoryType.EVENT, last_accessed_at=NOON, metadata={"n": True, "s": None}),
    numbered(4, type=MemoryType.INSIGHT, last_accessed_at=NOON + HOUR, position=3, version=2),
    numbered(5, content="Straße 1", created_at=NOON - HOUR, session_id="s", project_id="p"),
    numbered(6, content="100% _", created_at=NOON + HOUR, expires_at=NOON + HOUR, speaker="Ann"),
    numbered(7, category="c", scope="global", sensitive=True, tags=["y", "X"], metadata={"a.b": 1}),
    numbered(8, importance=0.2, access_count=3, created_at=NOON + HOUR, metadata={"n": "1"}),
]
FILTERS = [  # those that SQL decides, those that it narrows, and those that the core decides
    {},
    {"type": {"in": ["event", "insight"]}, "version": {"ne": 2}},
    {"speaker": None, "last_accessed_at": {"exists": False}},
    {"importance": {"lte": 0.5, "gte": 0.3}, "created_at": {"lt": "2026-05-01T12:00:00Z"}},
    {"OR": [{"importance": {"gt": 0.8}}, {"tags": {"contains": "y"}}]},
    {"content": {"contains": "STRASSE"}},
    {"tags": {"all": ["x", "y"]}},
    {"metadata.n": {"lt": 2}},
    {"metadata.s": "' OR 1=1 --"},
    {"AND": [{"NOT": {"OR": [{"role": "user"}, {"type": "event"}]}}, {"version": 1}]},
    {"OR": []},
]


@pytest.mark.parametrize("sort", MemorySortOrder)
def test_a_filter_lets_the_same_through_in_the_same_order_on_every_store(store, sort):
    added(store, "a", VARIED)
    for where in FILTERS:
        expected = ordered([entry for entry in VARIED if matches(where, entry)], sort.name)
        assert matched(store, where=where, sort_by=sort) == numbers(expected), where


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"status": "archived"}, [2]),
        ({"status": {"in": ["archived", "superseded"]}}, [2, 3]),
        ({"OR": [{"status": "superseded"}, {"content": "memory 4"}]}, [3, 4]),
        ({"NOT": {"status": "archived"}}, [3, 4]),
        ({"AND": [{"status": {"exists": True}}]}, [2, 3, 4]),
        ({"NOT": {"content": "memory 4"}}, []),
    ],
)
def test_outdated_ones_are_listed_only_if_the_filter_asks_for_a_status(store, where, found):
    in_every_state(store)
    assert matched(store, where=where) == found
    assert paged(store, where=where) == found


# Pages


# Exports


def test_entries_are_exported_in_the_order_they_were_stored(store):
    added(store, "a", [numbered(3), numbered(1, created_at=NOON + HOUR)])
    added(store, "b", [numbered(5, agent_id="b")])
    added(store, "a", [numbered(2, created_at=NOON - HOUR)])
    whole = exported(store)
    assert [stored.entry.id.int for stored in whole] == [3, 1, 2]
    assert whole[0].row > 0
    assert exported(store, limit=2) == whole[:2]
    assert exported(store, row=whole[0].row) == whole[1:]
    assert exported(store, row=whole[0].row, limit=1) == whole[1:2]
    assert exported(store, row=whole[2].row) == []


@pytest.mark.parametrize(("everything", "found"), [(True, [0, 1, 2, 3, 4]), (False, [2, 3, 4])])
def test_exports_have_every_status_and_forgotten_ones_if_asked_for(store, everything, found):
    in_every_state(store)
    stored = exported(store, everything=everything)
    assert [one.entry.id.int for one in stored] == found


def test_exported_entries_carry_their_vectors_of_one_model(store):
    added(store, "a", [embedded(1, (0.1, -2)), numbered(2)])
    own, missing = (stored.entry for stored in exported(store, model="m"))
    assert own.embedding.tobytes() == embedded(1, (0.1, -2)).embedding.tobytes()
    assert (own.embedding_model, missing.embedding) == ("m", None)
    assert [stored.entry.embedding for stored in exported(store, model="n")] == [None, None]


# Contents, counts and figures


def test_contents_are_those_of_rows_that_are_neither_forgotten_nor_outdated(store):
    in_every_state(store)
    added(store, "b", [numbered(9, agent_id="b")])
    rows = rows_of(store)
    asked = [*rows.values(), *rows_of(store, "b").values(), 999]
    assert contents_of(store, "a", asked) == {rows[1]: "memory 1", rows[4]: "memory 4"}
    changed(store, 4, content="new")
    assert contents_of(store, "a", [rows[4]]) == {rows[4]: "new"}
    assert contents_of(store, "a", []) == {}


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
    store.write(SoftDelete(ALICE, only(1), NOON)).result()
    assert read(store, ALICE, (1, 3)) == {3: "memory 3"}
    store.write(Delete(ALICE, only(3))).result()
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
    store.read(RowsSince("a", None, None))
    assert store.cached_bytes("a") < 1000
    assert read(store, ALICE, (1,)) == {1: secret.content}
