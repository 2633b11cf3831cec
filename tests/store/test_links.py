"""What every store promises of links, and of the states that rows come in."""

import pytest

from mnemic.errors import EntryNotFoundError, LinkAcrossUsersError
from mnemic.model import LinkType, MemoryStatus, Scope
from mnemic.model.rows import State
from mnemic.store.operations import (
    ChangedRows,
    Delete,
    Link,
    Restore,
    RowsSince,
    SoftDelete,
    Successors,
    Unlink,
)
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    added,
    all_links,
    changed,
    embedded,
    embedded_numbers,
    link_of,
    linked,
    links_added,
    links_of,
    row_of,
    rows_of,
    rows_since,
    seq_of,
    state_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid

RELATED, REFINES, SUPERSEDES = LinkType.RELATED, LinkType.REFINES, LinkType.SUPERSEDES
ABSENT = [{"forgotten_at": NOON}, {"expires_at": NOON}]
PRESENT = [{"status": MemoryStatus.ARCHIVED}, {"status": MemoryStatus.SUPERSEDED}, {}]


def unlinked(store, *ends, kind=None, scope=AGENT):
    return store.write(Unlink(scope, *map(uid, ends), kind)).result()


@pytest.fixture
def three(store):
    """Return a store that has the entries 1, 2 and 3."""
    added(store, "a", [numbered(at) for at in (1, 2, 3)])
    return store


def test_a_link_comes_back_as_it_was_written(three):
    wanted = link_of(2, 1, LinkType.CONTRADICTS, 0.1, NOON + HOUR)
    assert three.write(Link(AGENT, wanted, now=NOON)).result() == wanted
    assert links_of(three, 1) == links_of(three, 2) == [wanted]
    assert links_of(three, 3) == links_of(three, 9) == []


def test_links_are_shown_by_direction(three):
    out, back = linked(three, 1, 2), linked(three, 3, 1)
    assert links_of(three, 1, "out") == [out]
    assert links_of(three, 1, "in") == [back]
    assert links_of(three, 1, "both") == [out, back]
    assert links_of(three, 2, "out") == []


def test_links_are_shown_by_kind(three):
    made = {kind: linked(three, 1, 2, kind=kind) for kind in (RELATED, REFINES)}
    for kind, link in made.items():
        assert links_of(three, 1, kinds=[kind]) == [link]
    assert links_of(three, 1, kinds=[RELATED, REFINES]) == list(made.values())
    assert links_of(three, 1, kinds=[LinkType.CONTRADICTS]) == []
    assert links_of(three, 1, kinds=[]) == []


def test_links_are_ordered_by_time_then_ids_then_kind(three):
    expected = [
        linked(three, *ends, kind, created_at=NOON + HOUR * hours)
        for ends, kind, hours in (
            ((3, 2), RELATED, 0),
            ((1, 2), RELATED, 1),
            ((1, 2), REFINES, 1),
            ((1, 3), RELATED, 1),
            ((2, 1), RELATED, 1),
            ((1, 2), LinkType.DERIVED_FROM, 2),
        )
    ]
    assert all_links(three) == expected
    assert links_of(three, 1) == expected[1:]
    other = Scope("b")
    added(three, "b", [numbered(at, agent_id="b") for at in (1, 2, 3)])
    for link in reversed(expected):
        three.write(Link(other, link, now=NOON)).result()
    assert all_links(three, other) == expected


def test_linking_again_changes_the_strength_and_keeps_the_time(three):
    linked(three, 1, 2, strength=0.25)
    again = linked(three, 1, 2, strength=0.75, created_at=NOON + HOUR)
    assert again == link_of(1, 2, strength=0.75)
    assert links_of(three, 1) == [again]


@pytest.mark.parametrize("state", ABSENT)
def test_what_is_not_there_is_not_linked(three, state):
    added(three, "a", [numbered(4, **state)])
    before = state_of(three)
    for ends in ((1, 4), (4, 1), (1, 9), (9, 1)):
        with pytest.raises(EntryNotFoundError, match=str(uid(max(ends)))):
            linked(three, *ends)
    assert state_of(three) == before


@pytest.mark.parametrize("state", PRESENT)
def test_an_outdated_entry_is_linked_and_its_links_are_shown(three, state):
    added(three, "a", [numbered(4, **state)])
    link = linked(three, 1, 4)
    assert links_of(three, 1) == links_of(three, 4) == [link]


def test_both_ends_of_a_link_must_be_in_the_scope(store):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="bob"), numbered(3)])
    for scope in (ALICE, BOB, AGENT):
        for ends in ((1, 2), (2, 1), (2, 3), (3, 1)):
            with pytest.raises(EntryNotFoundError):
                linked(store, *ends, scope=scope)
    assert all_links(store) == []


@pytest.mark.parametrize("kind", [RELATED, LinkType.CONTRADICTS])
def test_a_link_between_users_is_refused(store, kind):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2, user_id="bob"), numbered(3)])
    seq = seq_of(store)
    for ends in ((1, 2), (2, 1), (2, 3), (3, 1)):
        with pytest.raises(LinkAcrossUsersError, match="not of the same user") as raised:
            linked(store, *ends, scope=EVERYONE, kind=kind)
        assert not {"alice", "bob"} & set(str(raised.value).split())
    assert (all_links(store, EVERYONE), seq_of(store)) == ([], seq)


def test_links_of_what_was_forgotten_come_back_with_it(three):
    link = linked(three, 1, 2)
    three.write(SoftDelete(AGENT, only(2), NOON)).result()
    assert links_of(three, 1) == links_of(three, 2) == []
    three.write(Restore(AGENT, only(2), oldest=NOON, now=NOON)).result()
    assert links_of(three, 1) == [link]


def test_unlinking_takes_one_kind_or_all_and_returns_how_many(three):
    for kind in (RELATED, REFINES, LinkType.REINFORCES):
        linked(three, 1, 2, kind)
    back = linked(three, 2, 1)
    assert unlinked(three, 1, 2, kind=LinkType.CONTRADICTS) == 0
    assert unlinked(three, 1, 2, kind=REFINES) == 1
    assert unlinked(three, 1, 2) == 2
    assert unlinked(three, 1, 2) == 0
    assert links_of(three, 1) == [back]


def test_unlinking_all_leaves_the_link_of_a_supersession(store):
    added(store, "a", [numbered(1), numbered(2, supersedes=uid(1))])
    linked(store, 2, 1)
    assert unlinked(store, 2, 1) == 1
    assert [link.type for link in links_of(store, 2)] == [SUPERSEDES]


def test_each_link_that_changes_is_a_change_and_what_is_not_there_is_none(three):
    seq = seq_of(three)
    linked(three, 1, 2)
    assert seq_of(three) == seq + 1
    assert three.read(ChangedRows("a", seq)) == [rows_of(three)[1]]
    unlinked(three, 1, 2)
    unlinked(three, 1, 2)
    assert seq_of(three) == seq + 2


def test_links_within_a_scope_have_both_ends_there(store):
    users = {1: "alice", 2: "alice", 3: "bob", 4: None, 5: None}
    added(store, "a", [numbered(at, user_id=user) for at, user in users.items()])
    made = {ends: linked(store, *ends, scope=EVERYONE) for ends in ((1, 2), (4, 5))}
    assert all_links(store, ALICE) == [made[1, 2]]
    assert all_links(store, BOB) == []
    assert all_links(store, AGENT) == [made[4, 5]]
    assert all_links(store, EVERYONE) == list(made.values())
    assert all_links(store, Scope("b")) == []


@pytest.mark.parametrize("state", [*ABSENT, *PRESENT])
def test_links_within_a_scope_are_those_of_entries_that_are_exported(store, state):
    added(store, "a", [numbered(1), numbered(2, **state)])
    links_added(store, link_of(1, 2))
    assert all_links(store, everything=True) == [link_of(1, 2)]
    assert len(all_links(store, everything=False)) == (state in PRESENT)


def test_links_are_added_and_the_new_ones_counted(three):
    wanted = [link_of(1, 2, kind) for kind in LinkType if kind is not LinkType.SUPERSEDES]
    assert links_added(three, *wanted) == len(wanted)
    assert all_links(three) == wanted
    assert links_added(three, *wanted, link_of(3, 1)) == 1


@pytest.mark.requirement("C161")
def test_a_link_of_supersession_is_added_only_where_the_field_says_so(three):
    assert links_added(three, link_of(1, 2, LinkType.SUPERSEDES)) == 0
    assert all_links(three) == []


def test_added_links_leave_those_that_are_there_as_they_are(three):
    kept = linked(three, 1, 2, strength=0.25)
    seq = seq_of(three)
    again = link_of(1, 2, strength=0.75, created_at=NOON + HOUR)
    assert links_added(three, again) == 0
    assert links_of(three, 1) == [kept]
    assert seq_of(three) == seq


def test_a_link_that_one_call_brings_twice_is_added_once(three):
    wanted = [link_of(1, 2, strength=0.25), link_of(1, 2, strength=0.75)]
    assert links_added(three, *wanted) == 1
    assert links_of(three, 1) == wanted[:1]


def test_added_links_pass_over_ends_that_are_missing_or_of_other_users(store):
    users = {1: "alice", 2: "bob", 3: None, 4: "alice"}
    added(store, "a", [numbered(at, user_id=user) for at, user in users.items()])
    added(store, "b", [numbered(5, agent_id="b", user_id="alice")])
    ends = [(1, 2), (2, 1), (1, 3), (3, 1), (1, 5), (5, 1), (1, 9), (4, 1)]
    assert links_added(store, *(link_of(*pair) for pair in ends), user_id="alice") == 1
    assert all_links(store) == [link_of(4, 1)]


@pytest.mark.parametrize("state", [*ABSENT, *PRESENT])
def test_links_are_added_whatever_the_state_of_their_ends(store, state):
    added(store, "a", [numbered(1), numbered(2, **state)])
    assert links_added(store, link_of(1, 2), link_of(2, 1)) == 2


def test_links_of_two_agents_with_equal_ids_are_kept_apart(store):
    for agent in ("a", "b"):
        added(store, agent, [numbered(at, agent_id=agent) for at in (1, 2)])
    linked(store, 1, 2)
    assert links_of(store, 1, scope=Scope("b")) == []
    assert unlinked(store, 1, 2, scope=Scope("b")) == 0
    links_added(store, link_of(2, 1), agent="b")
    assert links_of(store, 1) == [link_of(1, 2)]


@pytest.mark.requirement("C109", "C135")
def test_successors_are_present_entries_of_the_scope_of_any_status(store):
    added(store, "a", [numbered(1), numbered(2), numbered(3, user_id="alice")])
    newer = [
        numbered(4, supersedes=uid(1)),
        numbered(5, supersedes=uid(1), status=MemoryStatus.ARCHIVED),
        numbered(6, supersedes=uid(2), expires_at=NOON + HOUR),
        numbered(7, supersedes=uid(2)),
        numbered(8, supersedes=uid(3), user_id="alice"),
    ]
    added(store, "a", newer)
    linked(store, 2, 1, kind=REFINES)
    store.write(SoftDelete(AGENT, only(7), NOON)).result()
    rows = rows_of(store)

    def found(*numbers, scope=AGENT, now=NOON):
        given = store.read(Successors(scope, [rows.get(at, 999) for at in numbers], now=now))
        assert given.keys() <= {rows[entry.id.int] for entry in given.values()}
        return sorted(entry.id.int for entry in given.values())

    assert found(1) == [4, 5]
    assert found(1, 2, 3) == [4, 5, 6]
    assert found(2, now=NOON + HOUR) == found() == found(4, 9) == []
    assert found(3) == []
    assert found(3, scope=ALICE) == found(3, scope=EVERYONE) == [8]
    assert found(1, scope=Scope("b")) == []


MODEL = ("m", 2)


def batch_of(store, state, seq=None, agent="a"):
    return store.read(RowsSince(agent, MODEL, seq, state=state))


def numbers_of(store, batch, agent="a"):
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    return sorted(number_of[record[0]] for record in batch.records)


def links_in(store, batch, agent="a"):
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    return sorted((number_of[one], number_of[other], kind) for one, other, kind, _ in batch.links)


def filled(store):
    """Store a living, an archived, a superseded and a forgotten entry, all with vectors."""
    added(store, "a", [embedded(number) for number in (1, 3, 4)])
    added(store, "a", [embedded(2, status=MemoryStatus.ARCHIVED)])
    added(store, "a", [embedded(5, supersedes=uid(3))])
    store.write(SoftDelete(AGENT, only(4), NOON)).result()


def test_each_state_has_its_own_rows_and_their_vectors(store):
    filled(store)
    for state, numbers in (
        (State.ACTIVE, [1, 5]),
        (State.INACTIVE, [2, 3]),
        (State.DELETED, [4]),
    ):
        batch = batch_of(store, state)
        assert (numbers_of(store, batch), batch.seq) == (numbers, seq_of(store))
        assert len(batch.embedded) == len(numbers)
    assert embedded_numbers(rows_since(store, None)) == {1, 5}


def test_a_row_that_changes_its_state_goes_from_one_and_comes_to_the_other(store):
    filled(store)
    before, rows = seq_of(store), rows_of(store)
    store.write(SoftDelete(AGENT, only(1), NOON)).result()
    store.write(Restore(AGENT, only(4), oldest=NOON - HOUR, now=NOON)).result()
    living, forgotten = (batch_of(store, state, before) for state in (State.ACTIVE, State.DELETED))
    assert (numbers_of(store, living), living.removed) == ([4], [rows[1]])
    assert (numbers_of(store, forgotten), forgotten.removed) == ([1], [rows[4]])
    outdated = batch_of(store, State.INACTIVE, before)
    assert (outdated.records, outdated.removed) == ([], sorted([rows[1], rows[4]]))


def test_an_entry_is_archived_and_brought_back_by_an_update(store):
    added(store, "a", [embedded(1)])
    before = seq_of(store)
    archived = changed(store, 1, status=MemoryStatus.ARCHIVED, archived=True)
    assert archived.status is MemoryStatus.ARCHIVED
    assert numbers_of(store, batch_of(store, State.INACTIVE, before)) == [1]
    assert changed(store, 1, importance=0.9) is None
    back = changed(store, 1, status=MemoryStatus.ACTIVE, archived=True)
    assert back.status is MemoryStatus.ACTIVE
    assert numbers_of(store, batch_of(store, State.ACTIVE, before)) == [1]


def test_what_superseded_another_cannot_be_undone_by_an_update(store):
    filled(store)
    assert changed(store, 3, status=MemoryStatus.ACTIVE, archived=True) is None


def test_the_links_of_living_rows_come_with_everything(store):
    added(store, "a", [numbered(number) for number in (1, 2, 3)])
    added(store, "b", [numbered(number, agent_id="b") for number in (7, 8)])
    linked(store, 1, 2)
    linked(store, 2, 3, kind=LinkType.CONTRADICTS)
    store.write(SoftDelete(AGENT, only(2), NOON)).result()
    batch = batch_of(store, State.ACTIVE)
    assert links_in(store, batch) == [(1, 2, int(link_of(1, 2).type))]
    assert batch_of(store, State.DELETED).links == []
    assert batch_of(store, State.ACTIVE, agent="b").links == []


def test_a_touched_row_comes_with_all_its_links_and_without_those_that_went(store):
    added(store, "a", [numbered(number) for number in (1, 2, 3)])
    linked(store, 1, 2)
    linked(store, 2, 3)
    before, rows = seq_of(store), rows_of(store)
    linked(store, 1, 3)
    batch = batch_of(store, State.ACTIVE, before)
    kind = int(link_of(1, 2).type)
    assert (batch.linked, links_in(store, batch)) == ([rows[1]], [(1, 2, kind), (1, 3, kind)])
    before = seq_of(store)
    store.write(Unlink(AGENT, uid(1), uid(2), None)).result()
    store.write(Unlink(AGENT, uid(1), uid(3), None)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.linked, batch.links) == ([rows[1]], [])


def test_a_forgotten_row_brings_no_links_and_a_restored_one_brings_them_back(store):
    added(store, "a", [numbered(number) for number in (1, 2)])
    linked(store, 1, 2)
    before, rows = seq_of(store), rows_of(store)
    store.write(SoftDelete(AGENT, only(1), NOON)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.removed, batch.linked, batch.links) == ([rows[1]], [rows[1]], [])
    before = seq_of(store)
    store.write(Restore(AGENT, only(1), oldest=NOON - HOUR, now=NOON)).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.linked, len(batch.links)) == ([rows[1]], 1)


def test_a_row_deleted_for_good_is_not_among_those_whose_links_are_replaced(store):
    added(store, "a", [numbered(number) for number in (1, 2)])
    linked(store, 1, 2)
    before, rows = seq_of(store), rows_of(store)
    store.write(Delete(AGENT, only(2))).result()
    batch = batch_of(store, State.ACTIVE, before)
    assert (batch.removed, batch.linked, batch.links) == ([rows[2]], [], [])


@pytest.mark.requirement("C161")
def test_supersessions_of_rows_in_another_state_come_with_the_active_ones(store):
    added(store, "a", [numbered(1), numbered(4)])
    linked(store, 4, 1)
    added(store, "a", [numbered(2, supersedes=uid(1))])
    before = seq_of(store)
    added(store, "a", [numbered(3, supersedes=uid(2))])
    kind = int(LinkType.SUPERSEDES)
    rows, changed = rows_of(store), batch_of(store, State.ACTIVE, before)
    assert (changed.removed, changed.linked) == ([rows[2]], sorted([rows[2], rows[3]]))
    assert sorted(links_in(store, changed)) == [(2, 1, kind), (3, 2, kind)]
    whole = batch_of(store, State.ACTIVE, None)
    related = int(link_of(4, 1).type)
    assert sorted(links_in(store, whole)) == [(2, 1, kind), (3, 2, kind), (4, 1, related)]
    assert batch_of(store, State.INACTIVE, None).links == []


def test_the_row_of_an_entry_is_told_to_its_scope_alone(store):
    added(store, "a", [numbered(1, user_id="alice"), numbered(2)])
    rows = rows_of(store)
    assert row_of(store, AGENT, uid(2), now=NOON) == rows[2]
    assert row_of(store, AGENT, uid(1), now=NOON) is None
    store.write(SoftDelete(AGENT, only(2), NOON)).result()
    assert row_of(store, AGENT, uid(2), now=NOON) is None
