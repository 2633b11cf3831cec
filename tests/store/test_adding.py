"""What every store promises of adding entries: ids, keys, duplicates, raised digits."""

# ruff: noqa: RUF001 - characters that look like others are the point

import asyncio
import unicodedata

import numpy as np
import pytest

from mnemic._core import fingerprint_digests
from mnemic.errors import DuplicateEntryError, EntryNotFoundError, InvalidEntryError
from mnemic.store import row_codec
from tests.store.contract import (
    AGENT,
    added,
    adding,
    changed,
    counted,
    embedded,
    exported,
    gathered,
    links_of,
    one,
    paged,
    records_of,
    rows_of,
    rows_since,
    seq_of,
    state_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid

# Adding


def test_an_id_stored_twice_is_refused_and_the_whole_call_with_it(store):
    added(store, "a", [numbered(1)])
    with pytest.raises(DuplicateEntryError, match=f"{uid(1)} is already stored for agent 'a'"):
        added(store, "a", [numbered(2), numbered(1, content="else"), numbered(3)])
    with pytest.raises(DuplicateEntryError, match=str(uid(4))):
        added(store, "a", [numbered(4), numbered(4)])
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [numbered(1)])
    assert list(rows_of(store)) == [1]
    assert seq_of(store) == 1


def test_an_embedding_without_its_models_name_is_refused(store):
    nameless = numbered(1, embedding=[1.0, 2.0])
    with pytest.raises(InvalidEntryError, match="without its embedding_model"):
        added(store, "a", [nameless])
    assert exported(store) == []


@pytest.mark.parametrize(
    ("entries", "rules"),
    [
        ([embedded(2, supersedes=uid(1))], {}),
        ([embedded(2, content="memory 1", tags=["new"])], {"on_duplicate": "merge"}),
        ([embedded(2), embedded(3, content="memory 1", tags=["x"])], {"on_duplicate": "merge"}),
    ],
)
def test_a_change_of_more_than_new_entries_is_to_be_read(store, entries, rules):
    added(store, "a", [embedded(1)])
    assert added(store, "a", entries, **rules).batch is None


def test_a_call_that_stores_nothing_new_is_no_change(store):
    added(store, "a", [numbered(1)], ["k"])
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]) == (
        [uid(1)],
        [1],
        [False],
        [],
        None,
        {},
        (),
        (),
    )
    again = added(store, "a", [numbered(3, content="memory 1")], on_duplicate="skip")
    assert again == ([uid(1)], [1], [False], [], None, {}, (), ())
    assert seq_of(store) == 1


# Keys


def test_a_key_belongs_to_one_content(store):
    added(store, "a", [numbered(1)], ["k"])
    before = state_of(store)
    is_hidden = store.marked(numbered(9)).hides_content
    one, other = ("<hidden>", "<hidden>") if is_hidden else ("'k'", "'l'")
    with pytest.raises(DuplicateEntryError, match=f"{one} was used for another content"):
        added(store, "a", [numbered(2), numbered(3)], [None, "k"])
    with pytest.raises(DuplicateEntryError, match=f"{other} was used for another content"):
        added(store, "a", [numbered(4), numbered(5)], ["l", "l"])
    assert state_of(store) == before


def test_a_key_is_compared_with_the_content_it_came_with(store):
    added(store, "a", [numbered(1)], ["k"])
    changed(store, 1, content="changed since")
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [numbered(3, content="changed since")], ["k"])


def test_calls_with_one_key_at_once_store_one_entry(stores):
    async def all_at_once():
        calls = [
            adding(stores[at % 2], "a", [numbered(at, content="same")], ["k"]) for at in range(20)
        ]
        return await gathered(calls)

    stored = asyncio.run(all_at_once())
    assert sum(call.is_new[0] for call in stored) == 1
    assert len({call.ids[0] for call in stored}) == 1
    assert counted(stores[0], AGENT) == 1


# Duplicates


def test_a_skipped_entry_supersedes_nothing(store):
    added(store, "a", [numbered(1), numbered(2)])
    again = numbered(3, content="memory 1", supersedes=uid(2))
    added(store, "a", [again], on_duplicate="skip")
    assert paged(store) == [1, 2]


# Superseding


@pytest.mark.parametrize("on_conflict", ["raise", "replace"])
def test_an_entry_that_supersedes_itself_is_refused(store, on_conflict):
    added(store, "a", [numbered(1)])
    before = state_of(store)
    for number in (1, 2):
        own = numbered(number, supersedes=uid(number))
        with pytest.raises(InvalidEntryError, match="cannot supersede itself"):
            added(store, "a", [own], on_conflict=on_conflict)
    assert state_of(store) == before


@pytest.mark.parametrize(
    ("agent", "user"), [("a", None), ("a", "bob"), ("b", "alice")], ids=["none", "user", "agent"]
)
def test_superseding_what_is_not_there_is_refused_and_the_whole_call_with_it(store, agent, user):
    added(store, "a", [numbered(1, user_id="alice")])
    before = state_of(store)
    new = numbered(2, agent_id=agent, user_id=user, supersedes=uid(1))
    with pytest.raises(EntryNotFoundError, match=str(uid(1))):
        added(store, agent, [numbered(3, agent_id=agent), new])
    assert state_of(store) == before
    assert seq_of(store, "b") == 0


def test_an_imported_entry_may_supersede_what_is_missing(store):
    added(store, "a", [numbered(2, supersedes=uid(1))], is_import=True)
    assert one(store, AGENT, 2).supersedes == uid(1)
    assert links_of(store, 2) == []


# Quota


def test_of_twenty_stores_at_once_one_that_is_refused_fails_alone(store):
    added(store, "a", [embedded(7, (7, 1))])
    begun = seq_of(store)

    async def all_at_once():
        calls = [
            adding(store, "a", [embedded(at, (at, 1)) if at % 3 else numbered(at)])
            for at in range(20)
        ]
        return await gathered(calls, return_exceptions=True)

    results = asyncio.run(all_at_once())
    assert isinstance(results.pop(7), DuplicateEntryError)
    assert [stored.ids for stored in results] == [[uid(at)] for at in range(20) if at != 7]
    assert seq_of(store) == begun + 19
    assert counted(store, AGENT) == 20


def test_stores_at_once_each_get_their_own_step_of_the_feed(store):
    async def all_at_once():
        calls = [
            adding(store, "a", [embedded(2 * at, (at, 1)), embedded(2 * at + 1, (at, 2))])
            for at in range(20)
        ]
        return await gathered(calls)

    batches = [stored.batch for stored in asyncio.run(all_at_once())]
    assert [(batch.since, batch.seq) for batch in batches] == [
        (2 * at, 2 * at + 2) for at in range(20)
    ]
    steps = [record for batch in batches for record in records_of(batch)]
    everything = rows_since(store, None)
    assert steps == records_of(everything)
    assert np.array_equal(
        np.concatenate([batch.embedded for batch in batches]), everything.embedded
    )
    assert np.array_equal(np.concatenate([batch.vectors for batch in batches]), everything.vectors)


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_a_text_that_the_user_has_is_not_stored_again(store, rule):
    added(store, "a", [numbered(1, content="Likes  TEA")])
    stored = added(store, "a", [numbered(2, content="likes tea"), numbered(3)], on_duplicate=rule)
    assert (stored.ids, stored.is_new) == ([uid(1), uid(3)], [False, True])
    assert paged(store) == [1, 3]


def test_merging_joins_tags_metadata_and_importance_and_changes_nothing_else(store):
    old = numbered(1, content="Tea", tags=["a", "b"], metadata={"x": 1, "y": 1}, importance=0.7)
    added(store, "a", [old])
    new = numbered(
        2, content="tea", tags=["b", "c"], metadata={"y": 2}, importance=0.2, role="user"
    )
    added(store, "a", [new], now=NOON + HOUR, on_duplicate="merge")
    merged = one(store, AGENT, 1)
    assert (merged.tags, merged.metadata) == (("a", "b", "c"), {"x": 1, "y": 2})
    assert (merged.content, merged.importance, merged.role) == ("Tea", 0.7, None)
    assert (merged.created_at, merged.updated_at) == (NOON, NOON + HOUR)


def test_merging_keeps_the_greater_importance(store):
    added(store, "a", [numbered(1, content="tea", importance=0.2)])
    again = numbered(2, content="tea", importance=0.9)
    added(store, "a", [again], on_duplicate="merge")
    assert one(store, AGENT, 1).importance == 0.9


def test_merging_or_skipping_what_brings_nothing_new_changes_nothing(store):
    added(store, "a", [numbered(1, content="tea", tags=["a"])])
    before = state_of(store)
    less = numbered(2, content="tea", importance=0.1)
    added(store, "a", [less], now=NOON + HOUR, on_duplicate="merge")
    more = numbered(2, content="tea", tags=["b"])
    added(store, "a", [more], now=NOON + HOUR, on_duplicate="skip")
    assert state_of(store) == before


RAISED, PLAIN = "We have 10⁵ users", "We have 105 users"
PAIRS = [
    (RAISED, PLAIN),
    ("The chip has 2¹⁰ cells", "The chip has 210 cells"),
    ("It takes 1½ hours", "It takes 11⁄2 hours"),
    ("Step 1① comes", "Step 11 comes"),
]


def nfkc(text):
    return unicodedata.normalize("NFKC", text)


def by_earlier_version(monkeypatch, act):
    """Act while contents have the fingerprints of version 1, those of their NFKC."""
    with monkeypatch.context() as patched:
        patched.setattr(
            row_codec,
            "fingerprint_digests",
            lambda texts: fingerprint_digests([nfkc(text) for text in texts]),
        )
        return act()


@pytest.mark.requirement("C215", "R292")
@pytest.mark.parametrize("rule", ["skip", "merge"])
@pytest.mark.parametrize("pair", PAIRS)
def test_texts_whose_digits_are_raised_are_no_duplicates_of_others(store, rule, pair):
    added(store, "a", [numbered(1, content=pair[0])])
    stored = added(store, "a", [numbered(2, content=pair[1])], on_duplicate=rule)
    assert (stored.ids, stored.is_new) == ([uid(2)], [True])
    for number, text in enumerate(pair, 1):
        again = [numbered(9, content=text)]
        assert added(store, "a", again, on_duplicate=rule).ids == [uid(number)]
    wide = pair[0].replace("We", "Ｗｅ")
    assert added(store, "a", [numbered(9, content=wide)], on_duplicate=rule).ids == [uid(1)]


@pytest.mark.requirement("C215")
@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_rows_of_an_earlier_version_are_duplicates_of_their_own_texts_alone(
    store, monkeypatch, rule
):
    old = [numbered(at, content=RAISED) for at in range(1, 21)]
    by_earlier_version(monkeypatch, lambda: added(store, "a", old))
    assert added(store, "a", [numbered(31, content=PLAIN)], on_duplicate=rule).is_new == [True]
    for number, text in [(1, RAISED), (31, PLAIN)]:
        again = [numbered(32, content=text, tags=["more"])]
        assert added(store, "a", again, on_duplicate=rule).ids == [uid(number)]
    assert paged(store) == [*range(1, 21), 31]


@pytest.mark.requirement("C215")
@pytest.mark.beyond_a_dict("it has no earlier version")
def test_a_key_of_an_earlier_version_belongs_to_its_own_text(store, monkeypatch):
    old = [numbered(1, content=RAISED), numbered(2, content=PLAIN), numbered(3, content="H₂O")]
    by_earlier_version(monkeypatch, lambda: added(store, "a", old, ["one", "two", "three"]))
    changed(store, 2, content="another text")
    for key, text, number in [("one", RAISED, 1), ("two", PLAIN, 2), ("three", "H₂O", 3)]:
        assert added(store, "a", [numbered(9, content=text)], [key]).ids == [uid(number)]
    for key, text in [("one", PLAIN), ("three", "H2O")]:
        with pytest.raises(DuplicateEntryError, match="used for another content"):
            added(store, "a", [numbered(9, content=text)], [key])


def test_superseding_never_sets_a_time_back(store):
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2, supersedes=uid(1), created_at=NOON - HOUR)])
    assert one(store, AGENT, 1, include_deleted=True).updated_at == NOON
