"""Sealed entries: written, read, found again, replaced and changed."""

import numpy as np
import pytest

from mnemic.model import MemoryEntryUpdate, distinct
from mnemic.model.filter import Criteria
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    AddEmbeddings,
    AddShadowVectors,
    Delete,
    DistinctValues,
    DropShadowVectors,
    RowsToEmbed,
    Update,
    VectorsOfRow,
)
from mnemic.store.row_codec import RowCodec, UsedKey
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    EVERYTHING,
    MODEL,
    added,
    changed,
    contents_of,
    count_of,
    embedded,
    exported,
    forgotten,
    living_numbers,
    matched,
    model_of,
    one,
    paged,
    rows_of,
    rows_since,
    seq_of,
)
from tests.store.sealing.places import (
    SEALED_TEXTS,
    SECRET,
    VECTOR,
    everyone,
    filled,
    secret,
    statistics,
    updated,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid
from tests.support.keys import KEY, forms_of
from tests.support.threads import run_together


def vectors_of(store, number):
    return store.read(VectorsOfRow("a", rows_of(store)[number], "m"))


@pytest.mark.requirement("R117", "R126", "R004", "R105", "C188")
def test_a_sensitive_entry_is_stored_sealed_and_read_as_it_was(store, place):
    made = secret(1)
    stored = added(store, "a", [made, numbered(2)], [f"{SECRET}-key", None])
    assert stored.is_new == [True, True]
    assert one(store, AGENT, 1) == store.marked(made)
    assert one(store, AGENT, 1).is_encrypted
    assert [place.column("is_encrypted", number) for number in (1, 2)] == [True, False]
    for name in ("metadata", "tags", *SEALED_TEXTS):
        assert place.column(name, 1) is None
    (plain,) = RowCodec().rows([(made, UsedKey(f"{SECRET}-key"))])
    names = ("fingerprint", "idempotency_key", "key_fingerprint")
    for name, open_value in zip(names, plain.more, strict=True):
        assert place.column(name, 1) not in (open_value, str(open_value).encode())
    assert place.column("content", 2) == "memory 2"
    assert place.shows() == []
    data = place.bytes()
    assert KEY not in data
    assert not any(form.encode() in data for form in forms_of(KEY))


def test_the_same_entry_shows_all_of_it_where_it_is_not_sealed(place):
    added(place.open(None), "a", [secret(1)], [f"{SECRET} idempotent"])
    texts = [*SEALED_TEXTS.values(), f"{SECRET} 1", f"{SECRET} key", f"{SECRET} value"]
    wanted = [*texts, f"{SECRET} idempotent"]
    assert place.shows(*wanted) == [*wanted, VECTOR]


def test_many_sealed_entries_at_once_show_nothing(store, place):
    added(store, "a", [secret(number) for number in range(1, 101)])
    assert place.shows() == []
    assert rows_since(store, None).vectors.tolist() == [pytest.approx(VECTOR)] * 100


@pytest.mark.requirement("R106", "C087")
@pytest.mark.parametrize("later", [False, True])
def test_vectors_of_sealed_entries_are_sealed_one_by_one(store, place, later):
    parts = np.array([VECTOR, (3, 4)], np.float32)
    if later:
        added(store, "a", [numbered(1, sensitive=True)])
        row = rows_of(store)[1]
        store.write(AddEmbeddings("a", "m", {row: "memory 1"}, [parts])).result()
    else:
        new = NewEntry(store.marked(secret(1, parts[0])), None, (parts[1],))
        store.write(Add("a", [new], now=NOON)).result()
    assert len(place.vectors()) == 2
    assert place.shows(vectors=[VECTOR, (3, 4)]) == []
    assert vectors_of(store, 1).tolist() == rows_since(store, None).vectors.tolist()
    assert vectors_of(store, 1).tolist() == parts.tolist()
    assert model_of(store, "a") == MODEL


def test_sealed_entries_are_listed_filtered_and_counted_like_others(store):
    filled(store)
    assert paged(store) == [1, 2, 3, 4]
    assert matched(store, where={"tags": {"contains": SECRET}}) == [1, 3]
    assert matched(store, where={"content": {"contains": "memory"}}) == [2, 4]
    assert count_of(store, ALICE) == 2
    asked = DistinctValues(EVERYONE, EVERYTHING, distinct.distinct_query("tags", None, 9, 0), NOON)
    assert [(each.value, each.count) for each in store.read(asked)] == [(SECRET, 2)]
    rows = list(rows_of(store).values())
    assert contents_of(store, "a", rows).keys() == set(rows)
    assert [stored.key for stored in exported(store)] == ["k1", "k2", "k3", None]
    stats = statistics(store)
    assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (4, 2, 0)
    assert [(tag.tag, tag.count) for tag in stats.top_tags] == [(SECRET, 2)]
    sealed = [statistics(store, scope).sealed_entries for scope in (ALICE, BOB, everyone("b"))]
    assert sealed == [1, 0, 0]
    forgotten(store, 3, scope=ALICE)
    assert statistics(store, ALICE).sealed_entries == 1


def test_sealed_rows_are_followed_on_request_although_nothing_changed_them(place):
    store = place.open(encrypt_all=True)
    added(place.open(None), "a", [embedded(1), numbered(2, sensitive=True)])
    added(store, "a", [embedded(3)])
    assert living_numbers(rows_since(store, seq_of(store), with_sensitive=True)) == {2, 3}


@pytest.mark.requirement("R105", "C179")
def test_each_agent_has_a_key_of_its_own_however_many_openings_make_it(place):
    stores = [place.open() for _ in range(4)]
    run_together(*[lambda store=store: store.check_key("a") for store in stores])
    for number, store in enumerate(stores, start=1):
        for agent in ("a", "b"):
            added(store, agent, [secret(number, agent_id=agent)])
    keys = place.keys()
    assert [agent for agent, _ in keys] == ["a", "b"]
    assert keys[0][1] != keys[1][1]
    for store in stores:
        assert [paged(store, everyone(agent)) for agent in ("a", "b")] == [[1, 2, 3, 4]] * 2


# Retries and duplicates


@pytest.mark.parametrize("sealed_first", [True, False])
def test_a_retry_finds_the_entry_whether_or_not_it_is_sealed(place, sealed_first):
    """As one does after the options of encryption have changed."""
    first = place.open(encrypt_all=sealed_first)
    second = place.open(encrypt_all=not sealed_first)
    assert added(first, "a", [numbered(1)], ["k"]).is_new == [True]
    again = added(second, "a", [numbered(2, content="memory 1")], ["k"])
    assert (again.ids, again.is_new) == ([uid(1)], [False])
    with pytest.raises(Exception, match="used for another content"):
        added(second, "a", [numbered(3, content="other")], ["k"])


def test_a_retry_finds_the_entry_that_was_sealed_meanwhile(store, place):
    added(store, "a", [numbered(1)], ["k"])
    updated(store, 1, metadata={"sensitive": True})
    assert place.column("is_encrypted", 1)
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    assert exported(store)[0].key == "k"
    changed(store, 1, content="new")
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    store.write(Delete(AGENT, only(1))).result()
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(2)]


def test_replacing_never_takes_the_seal_off_silently(store, place):
    added(store, "a", [secret(1)], ["k"])
    result = added(store, "a", [secret(1, content="zqother")], on_conflict="replace")
    assert result.replaced[0].is_sealed_now is False
    assert place.column("is_encrypted", 1)
    assert one(store, AGENT, 1).content == "zqother"
    assert added(store, "a", [secret(2, content=f"{SECRET} 1")], ["k"]).ids == [uid(1)]
    added(store, "a", [numbered(3)], ["l"])
    result = added(store, "a", [secret(3, content="memory 3")], on_conflict="replace")
    assert result.replaced[0].is_sealed_now is True
    assert place.column("is_encrypted", 3)
    assert added(store, "a", [numbered(4, content="memory 3")], ["l"]).ids == [uid(3)]
    assert [kept.key for kept in exported(store)] == ["k", "l"]


def test_a_replacement_that_is_not_sensitive_leaves_nothing_of_the_sealed_one(store, place):
    """It takes everything again, the mark too."""
    added(store, "a", [secret(1)], ["k"])
    added(store, "a", [numbered(1, content="not marked")], on_conflict="replace")
    found = one(store, AGENT, 1)
    assert (found.content, found.sensitive, found.is_encrypted) == ("not marked", False, False)
    assert not place.column("is_encrypted", 1)
    assert vectors_of(store, 1).size == 0
    assert added(store, "a", [secret(2, content=f"{SECRET} 1")], ["k"]).ids == [uid(1)]
    assert store.verify().ok


# Updates


SEALED_BY = {
    "metadata": lambda store: updated(store, 1, metadata={"sensitive": True}),
    "content": lambda store: updated(store, 1, content=f"{SECRET} zqseal"),
    "update_all": lambda store: store.write(
        Update(
            AGENT,
            Criteria(ids=[uid(1)]),
            change=lambda old: store.marked(
                MemoryEntryUpdate(add_tags=["zqseal"]).applied_to(old, NOON)
            ),
            now=NOON,
        )
    ).result(),
    "replace": lambda store: added(store, "a", [secret(1)], on_conflict="replace"),
    "replace, without vectors": lambda store: added(
        store, "a", [numbered(1, content=f"{SECRET} 1", sensitive=True)], on_conflict="replace"
    ),
}


@pytest.mark.requirement("R078", "C087")
@pytest.mark.parametrize("way", SEALED_BY)
def test_an_entry_that_becomes_sensitive_leaves_nothing_of_it_plain(place, way):
    plain, store = place.open(None), place.open(detect=lambda text: "zqseal" in text)
    made = secret(1, sensitive=False)
    new = NewEntry(made, SECRET, [np.array([7, 8], np.float32)])
    plain.write(Add("a", [new, NewEntry(embedded(2))], now=NOON)).result()
    row = rows_of(plain)[1]
    other = np.array([[9, 10, 11]], np.float32)
    assert plain.write(AddShadowVectors("a", "other", {row: made}, {row: other})).result() == 1
    vectors = [VECTOR, (7, 8), (9, 10, 11)]
    assert place.shows(vectors=vectors) == [SECRET, *vectors]
    version = 2 if SEALED_BY[way](store) else 0
    found = one(store, AGENT, 1)
    assert (found.is_encrypted, found.sensitive, found.version) == (True, True, version)
    if way == "metadata":
        kept = [pytest.approx(VECTOR), [7, 8]]
        assert vectors_of(store, 1).tolist() == kept
    assert store.read(RowsToEmbed("a", ("other", 3), 0, 9))[0] == row
    assert plain.write(DropShadowVectors("a", None)).result() == 0
    store.erase().result()
    assert place.shows(vectors=vectors) == []
    assert store.verify().ok


def test_a_seal_is_never_undone(store, place):
    added(store, "a", [secret(1, metadata={"sensitive": True}), secret(2)])
    changed(store, 1, replace_metadata={"sensitive": False}, content="harmless")
    changed(store, 2, content="harmless", remove_tags=[SECRET])
    for number in (1, 2):
        found = one(store, AGENT, number)
        assert (found.is_encrypted, found.sensitive, found.content) == (True, True, "harmless")
        assert place.column("is_encrypted", number)
    assert [stored.entry.is_encrypted for stored in exported(store)] == [True, True]
