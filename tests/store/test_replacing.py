"""The contract of storing entries over those with their ids, or of leaving the stored ones."""

import msgspec
import numpy as np
import pytest

from mnemic.errors import DuplicateEntryError, StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import LinkType, MemoryStatus, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import Add, AddEmbeddings, NeedVectors, VectorsOfRow
from mnemic.store.values import Selection
from tests.store.contract import (
    AGENT,
    EVERYONE,
    MODEL,
    added,
    all_links,
    embedded,
    embedded_numbers,
    exported,
    forgotten,
    linked,
    living_numbers,
    one,
    rows_of,
    rows_since,
    seq_of,
    state_of,
    used_bytes,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid

LATER = NOON + HOUR


@pytest.fixture
def store(store):
    """Return a store whose checksums are compared after each test."""
    yield store
    assert store.verify().problems == ()


def put(store, *entries, way="replace", now=LATER, agent="a", **rules):
    return added(store, agent, entries, now=now, on_conflict=way, **rules)


def stored(store, number, scope=EVERYONE):
    return one(store, scope, number, include_deleted=True)


def vectors_of(store, number):
    return store.read(VectorsOfRow("a", rows_of(store)[number], "m")).tolist()


def test_a_replacement_takes_everything_anew_but_the_time_of_creation(store):
    old = numbered(
        1,
        project_id="p",
        role="user",
        tags=["old"],
        metadata={"old": 1},
        expires_at=NOON,
        category="c",
        source="s",
        access_count=3,
        last_accessed_at=NOON,
    )
    added(store, "a", [old])
    new = numbered(1, content="new", session_id="s", tags=["new"], created_at=LATER, version=7)
    result = put(store, new)
    expected = msgspec.structs.replace(new, created_at=NOON, updated_at=LATER, version=2)
    assert result.ids == [uid(1)]
    assert result.is_new == [False]
    assert result.replaced == {0: (store.marked(expected), True, False)}
    assert one(store, AGENT, 1, now=LATER) == store.marked(expected)
    assert one(store, AGENT, 1, now=LATER).access_count == 0
    assert one(store, AGENT, 1, now=LATER).last_accessed_at is None
    assert result.rows == [rows_of(store)[1]]


def test_what_superseded_the_old_content_does_so_no_more(store):
    added(store, "a", [numbered(1), numbered(2, supersedes=uid(1))])
    linked(store, 2, 1)
    result = put(store, numbered(1, content="new"))
    second = stored(store, 2)
    assert (second.supersedes, second.version, second.updated_at) == (None, 2, LATER)
    assert [link.type for link in all_links(store)] == [LinkType.RELATED]
    assert result.changed == [rows_of(store)[2]]
    assert result.batch is None
    put(store, numbered(1, supersedes=uid(2)))
    assert stored(store, 2).status is MemoryStatus.SUPERSEDED
    assert (stored(store, 2).version, stored(store, 1).version) == (3, 4)


def test_vectors_stay_with_the_content(store):
    added(store, "a", [embedded(1), embedded(2), embedded(3)])
    result = put(
        store,
        numbered(1, tags=["x"]),
        numbered(2, content="other"),
        embedded(3, (0, 1), content="third"),
    )
    assert vectors_of(store, 1) == [[1, 0]]
    assert vectors_of(store, 2) == []
    assert vectors_of(store, 3) == [[0, 1]]
    assert [replaced.content_changed for replaced in result.replaced.values()] == [
        False,
        True,
        True,
    ]
    assert embedded_numbers(rows_since(store, None)) == {1, 3}
    store.write(
        AddEmbeddings("a", "m", {rows_of(store)[2]: "other"}, [np.eye(2, dtype="f4")])
    ).result()
    assert vectors_of(store, 2) == [[1, 0], [0, 1]]


def test_given_vectors_take_the_place_of_those_of_the_same_content(store):
    added(store, "a", [embedded(1)])
    since = seq_of(store)
    result = put(store, embedded(1, (0, 1)))
    assert vectors_of(store, 1) == [[0, 1]]
    assert result.batch is None
    batch = rows_since(store, since)
    assert (batch.removed, batch.embedded) == (result.rows, result.rows)


def test_an_index_forgets_the_accesses_of_the_same_content(store):
    added(store, "a", [embedded(1)])
    since, row = seq_of(store), rows_of(store)[1]
    store.touch("a", [row], NOON)
    result = put(store, numbered(1))
    assert stored(store, 1).access_count == 0
    assert not store.accesses.has("a", [row])
    assert result.batch is None
    batch = rows_since(store, since, model=MODEL)
    assert batch.removed == [row]
    assert living_numbers(batch) == embedded_numbers(batch) == {1}


def test_a_refused_replacement_loses_no_access(store):
    added(store, "a", [numbered(1), numbered(2)])
    rows = rows_of(store)
    store.touch("a", list(rows.values()), NOON)
    with pytest.raises(StorageQuotaExceededError):
        put(store, numbered(1, content="x" * 99), quota=Quota(50))
    assert [stored(store, number).access_count for number in (1, 2)] == [1, 1]
    assert not store.accesses.has("a", list(rows.values()))
    store.touch("a", list(rows.values()), NOON)
    put(store, numbered(1))
    assert [stored(store, number).access_count for number in (1, 2)] == [0, 2]


def of_source(source, scope=AGENT):
    return Selection(scope, Criteria(None, parse_filter({"source": source})))


def test_entries_take_the_place_of_selected_ones(store):
    mine = [embedded(at, content=f"part {at}", source="doc") for at in range(1, 6)]
    others = [numbered(7, source="else"), numbered(8, source="doc", user_id="bob")]
    added(store, "a", [*mine, *others])
    forgotten(store, 5)
    since, before = seq_of(store), {at: stored(store, at) for at in (1, 7, 8)}
    new = [stored(store, 1), numbered(2, content="part 2", source="doc", position=9), numbered(6)]
    result = put(store, *new, instead_of=of_source("doc"))
    assert (result.is_new, set(result.replaced)) == ([False, False, True], {1})
    assert sorted(result.removed) == [uid(3), uid(4), uid(5)]
    assert set(rows_of(store)) == {1, 2, 6, 7, 8}
    assert {at: stored(store, at) for at in before} == before
    assert (stored(store, 2).position, stored(store, 2).version) == (9, 2)
    assert vectors_of(store, 2) == [[1, 0]]
    assert result.batch is None
    assert living_numbers(rows_since(store, since)) == {2, 6}


def test_an_entry_that_takes_a_place_gets_vectors_that_it_lacks(store):
    added(store, "a", [numbered(1, source="doc")])
    old = stored(store, 1).with_embedding(np.array([0, 1], dtype=np.float32), "m")
    assert set(put(store, old, instead_of=of_source("doc")).replaced) == {0}
    assert vectors_of(store, 1) == [[0, 1]]


@pytest.mark.plain_text("counts bytes of contents")
def test_the_quota_counts_what_makes_place(store):
    added(store, "a", [numbered(1, content="x" * 60, source="doc"), numbered(2, content="y" * 30)])
    before = state_of(store)
    with pytest.raises(StorageQuotaExceededError):
        put(store, numbered(3, content="z" * 71), instead_of=of_source("doc"), quota=Quota(100))
    assert state_of(store) == before
    put(store, numbered(3, content="z" * 70), instead_of=of_source("doc"), quota=Quota(100))
    assert used_bytes(store, "a") == 100


def test_a_key_comes_first_and_stays_until_another_is_given(store):
    added(store, "a", [numbered(1)], ["k"])
    assert put(store, numbered(1), keys=["k"]).replaced == {}
    put(store, numbered(1, content="other"))
    repeated = put(store, numbered(1), keys=["k"])
    assert (repeated.rows, repeated.replaced) == ([rows_of(store)[1]], {})
    assert stored(store, 1).content == "other"
    with pytest.raises(DuplicateEntryError, match="used for another content"):
        put(store, numbered(1, content="third"), keys=["k"])
    put(store, numbered(1, content="third"), keys=["l"])
    assert exported(store)[0].key == "l"
    assert put(store, numbered(2), keys=["k"]).is_new == [True]


@pytest.mark.parametrize("way", ["skip", "merge"])
def test_the_id_is_looked_at_before_the_text(store, way):
    added(store, "a", [numbered(1), numbered(2, content="same")])
    put(store, numbered(1, content="same"), on_duplicate=way)
    assert stored(store, 1).content == "same"
    assert stored(store, 2).version == 1
    result = put(store, numbered(3, content="SAME", tags=["t"]), on_duplicate=way)
    assert result.is_new == [False]
    assert result.ids in ([uid(1)], [uid(2)])
    assert 3 not in rows_of(store)


def test_the_need_for_vectors_is_known_before_the_write(store):
    added(store, "a", [embedded(1), numbered(2), embedded(3, user_id="bob")])
    asked = [numbered(1), numbered(1, content="x"), numbered(2), numbered(3), numbered(9)]
    asked = list(map(store.marked, asked))
    assert store.read(NeedVectors("a", asked, "m", "replace")) == [False, True, True, True, True]
    assert store.read(NeedVectors("a", asked, "other", "replace")) == [True] * 5
    assert store.read(NeedVectors("a", asked, "m", "skip")) == [False, False, False, True, True]
    assert store.read(NeedVectors("b", asked, "m", "replace")) == [True] * 5
    assert store.read(NeedVectors("a", [], "m", "replace")) == []


def test_many_at_once_are_as_one_by_one(stores):
    many, single = stores
    first = [embedded(n, content=f"m{n}", user_id="u" if n % 3 else None) for n in range(40)]
    second = [
        embedded(n, (0, 1), content=f"m{n + n % 2}", user_id="u" if n % 3 else None)
        for n in range(20, 60)
    ]
    put(many, *first)
    put(many, *second)
    for new in (*first, *second):
        own = msgspec.structs.replace(new, agent_id="b")
        put(single, own, agent="b")
    whole = [
        [
            (msgspec.structs.replace(kept.entry, agent_id="x", embedding=None), *kept[2:3])
            for kept in exported(store, Scope(agent, all_users=True), model="m")
        ]
        for store, agent in ((many, "a"), (single, "b"))
    ]
    assert whole[0] == whole[1]
    assert used_bytes(many, "a") == used_bytes(many, "b")


@pytest.mark.parametrize("way", ["replace", "skip"])
def test_puts_at_once_get_no_error_and_leave_one_of_their_contents(stores, way):
    futures = [
        store.write(
            Add(
                "a",
                [NewEntry(numbered(n, content=f"{turn} {n}")) for n in range(20)],
                now=NOON,
                on_conflict=way,
            )
        )
        for turn, store in enumerate(stores * 10)
    ]
    results = [future.result() for future in futures]
    assert sum(sum(result.is_new) for result in results) == 20
    contents = {kept.entry.content.split()[0] for kept in exported(stores[0])}
    assert len(contents) == 1
    assert stores[0].verify().problems == ()
