"""The contract of adding entries: ids, keys and superseding."""

import asyncio

import numpy as np
import pytest

from mnemic.errors import DuplicateEntryError, EntryNotFoundError, InvalidEntryError
from mnemic.model import LinkType, MemoryStatus, Scope
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
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid

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
    store.write(Delete(AGENT, uid(1))).result()
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
    store.write(Delete(AGENT, uid(1))).result()
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
