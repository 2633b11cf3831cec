"""What every store promises of adding entries: ids, keys, duplicates, raised digits."""

# ruff: noqa: RUF001 - characters that look like others are the point

import asyncio
import unicodedata

import numpy as np
import pytest

from mnemic._core import fingerprint_digests
from mnemic.errors import DuplicateEntryError, EntryNotFoundError, InvalidEntryError
from mnemic.model import LinkType, MemoryStatus, Scope
from mnemic.store import row_codec
from mnemic.store.operations import ChangedRows, Delete
from tests.store.contract import (
    AGENT,
    added,
    adding,
    changed,
    counted,
    embedded,
    exported,
    forgotten,
    gathered,
    link_of,
    links_of,
    one,
    paged,
    records_of,
    rows_of,
    rows_since,
    seq_of,
    shown,
    state_of,
)
from tests.support.clock import HOUR, MICROSECOND, NOON
from tests.support.entries import numbered, only, uid

# Adding


def test_adding_returns_the_ids_in_their_order_and_that_they_are_new(store):
    stored = added(store, "a", [numbered(3), numbered(1), numbered(2)])
    assert stored.ids == [uid(3), uid(1), uid(2)]
    assert stored.is_new == [True, True, True]
    assert sorted(rows_of(store), key=rows_of(store).get) == [3, 1, 2]


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


def test_two_agents_may_use_the_same_id(store):
    added(store, "a", [numbered(1)])
    added(store, "b", [numbered(1, agent_id="b", content="b's own")])
    assert one(store, Scope("b"), 1).content == "b's own"
    assert one(store, AGENT, 1).content == "memory 1"


def test_a_forgotten_id_stays_taken_and_a_deleted_one_is_free(store):
    added(store, "a", [numbered(1)])
    forgotten(store, 1)
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [numbered(1)])
    row = rows_of(store)[1]
    store.write(Delete(AGENT, only(1))).result()
    assert added(store, "a", [numbered(1)]).is_new == [True]
    assert rows_of(store)[1] > row


def test_an_embedding_without_its_models_name_is_refused(store):
    nameless = numbered(1, embedding=[1.0, 2.0])
    with pytest.raises(InvalidEntryError, match="without its embedding_model"):
        added(store, "a", [nameless])
    assert exported(store) == []


@pytest.mark.parametrize(
    "entries",
    [
        [embedded(2, (3, 4), user_id="u"), numbered(3), embedded(4)],
        [embedded(2, (3, 4))],
        [numbered(2)],
        [embedded(2, status=MemoryStatus.ARCHIVED), numbered(3, forgotten_at=NOON), embedded(4)],
        [embedded(2, expires_at=NOON - HOUR), numbered(3, project_id="p", session_id="s")],
    ],
)
def test_adding_returns_the_change_that_a_reader_would_be_given(store, entries):
    added(store, "a", [embedded(1)])
    *returned, none_gone = shown(added(store, "a", entries).batch)
    *read, gone = shown(rows_since(store, 1))
    assert returned == read
    assert none_gone == set()
    assert gone <= set(rows_of(store).values())


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


def test_a_key_used_before_returns_what_it_stored_then(store):
    added(store, "a", [numbered(1)], ["k"])
    again = added(store, "a", [numbered(2, content="memory 1"), numbered(3)], ["k", None])
    assert (again.ids, again.is_new) == ([uid(1), uid(3)], [False, True])
    assert paged(store) == [1, 3]


def test_a_key_is_known_within_one_call(store):
    entries = [numbered(at, content="same") for at in (1, 2, 3)]
    stored = added(store, "a", entries, ["k", "k", "other"])
    assert (stored.ids, stored.is_new) == ([uid(1), uid(1), uid(3)], [True, False, True])


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


def test_a_key_belongs_to_one_agent_and_user(store):
    owners = [("a", None), ("a", "alice"), ("a", "bob"), ("b", None), ("b", "alice")]
    for at, (agent, user) in enumerate(owners):
        made = numbered(at, agent_id=agent, user_id=user)
        assert added(store, agent, [made], ["k"]).is_new == [True]


def test_a_key_is_compared_with_the_content_it_came_with(store):
    added(store, "a", [numbered(1)], ["k"])
    changed(store, 1, content="changed since")
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [numbered(3, content="changed since")], ["k"])


def test_a_key_stays_used_while_its_entry_is_forgotten_and_no_longer(store):
    added(store, "a", [numbered(1)], ["k"])
    forgotten(store, 1)
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    store.write(Delete(AGENT, only(1))).result()
    assert added(store, "a", [numbered(2)], ["k"]).ids == [uid(2)]


def test_keys_are_returned_with_the_entries_they_stored(store):
    added(store, "a", [numbered(1), numbered(2)], ["k", None])
    assert [stored.key for stored in exported(store)] == ["k", None]


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


def test_what_an_entry_supersedes_gets_its_status_and_a_link_in_the_same_change(store):
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2, supersedes=uid(1), created_at=NOON + HOUR)])
    old = one(store, AGENT, 1, include_deleted=True)
    assert (old.status, old.updated_at) == (MemoryStatus.SUPERSEDED, NOON + HOUR)
    assert links_of(store, 2) == [link_of(2, 1, LinkType.SUPERSEDES, 1, NOON + HOUR)]
    assert paged(store) == [2]
    assert sorted(store.read(ChangedRows("a", 1))) == sorted(rows_of(store).values())


@pytest.mark.parametrize("on_conflict", ["raise", "replace"])
def test_an_entry_that_supersedes_itself_is_refused(store, on_conflict):
    added(store, "a", [numbered(1)])
    before = state_of(store)
    for number in (1, 2):
        own = numbered(number, supersedes=uid(number))
        with pytest.raises(InvalidEntryError, match="cannot supersede itself"):
            added(store, "a", [own], on_conflict=on_conflict)
    assert state_of(store) == before


def test_superseding_never_sets_a_time_back(store):
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2, supersedes=uid(1), created_at=NOON - HOUR)])
    assert one(store, AGENT, 1, include_deleted=True).updated_at == NOON


def test_a_chain_of_supersessions_in_one_call_leaves_the_last_alone(store):
    chain = [numbered(1), numbered(2, supersedes=uid(1)), numbered(3, supersedes=uid(2))]
    added(store, "a", chain)
    assert paged(store) == [3]


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


def test_an_imported_entry_supersedes_what_is_there(store):
    added(store, "a", [numbered(1)])
    added(store, "a", [numbered(2, supersedes=uid(1))], is_import=True)
    assert paged(store) == [2]


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


def test_a_text_is_stored_again_unless_told_otherwise(store):
    added(store, "a", [numbered(1, content="tea")])
    assert added(store, "a", [numbered(2, content="tea")]).is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_a_text_of_another_user_or_agent_is_no_duplicate(store, rule):
    owners = [("a", None), ("a", "alice"), ("a", "bob"), ("b", None), ("b", "alice")]
    for at, (agent, user) in enumerate(owners):
        made = numbered(at, agent_id=agent, user_id=user, content="tea")
        assert added(store, agent, [made], on_duplicate=rule).is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_what_is_not_found_is_no_duplicate(store, rule):
    states = [
        {"forgotten_at": NOON},
        {"expires_at": NOON},
        {"status": MemoryStatus.ARCHIVED},
        {"status": MemoryStatus.SUPERSEDED},
    ]
    added(store, "a", [numbered(at, content="tea", **state) for at, state in enumerate(states)])
    assert added(store, "a", [numbered(9, content="tea")], on_duplicate=rule).is_new == [True]


def test_an_entry_is_a_duplicate_until_the_moment_it_expires(store):
    added(store, "a", [numbered(1, content="tea", expires_at=NOON)])
    again = [numbered(2, content="tea")]
    assert added(store, "a", again, now=NOON - MICROSECOND, on_duplicate="skip").is_new == [False]
    assert added(store, "a", again, now=NOON, on_duplicate="skip").is_new == [True]


@pytest.mark.parametrize("rule", ["skip", "merge"])
def test_of_several_duplicates_the_oldest_is_taken(store, rule):
    times = {1: NOON, 2: NOON - HOUR, 3: NOON + HOUR}
    for at, time in times.items():
        added(store, "a", [numbered(at, content="tea", created_at=time)])
    assert added(store, "a", [numbered(9, content="tea")], on_duplicate=rule).ids == [uid(2)]


def test_duplicates_within_one_call_are_found(store):
    batch = [
        numbered(1, content="tea", tags=["a"]),
        numbered(2, content="TEA", tags=["b"]),
        numbered(3),
    ]
    stored = added(store, "a", batch, on_duplicate="merge")
    assert (stored.ids, stored.is_new) == ([uid(1), uid(1), uid(3)], [True, False, True])
    assert one(store, AGENT, 1).tags == ("a", "b")


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


def test_after_an_update_a_text_is_no_longer_what_it_was(store):
    added(store, "a", [numbered(1, content="tea")])
    changed(store, 1, content="coffee")
    assert added(store, "a", [numbered(2, content="tea")], on_duplicate="skip").is_new == [True]
    assert added(store, "a", [numbered(3, content="Coffee")], on_duplicate="skip").ids == [uid(1)]


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
