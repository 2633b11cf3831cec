"""Versions of memories, rivals, and heads that links lead to."""

import time
from uuid import UUID

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import DeadlineExceededError, EntryNotFoundError
from mnemic.index import Hops
from mnemic.model import Scope
from mnemic.repository.reading import LineageReader
from mnemic.store.operations import EntriesById, Successors
from tests.support.clock import DAY, NOON, SECOND
from tests.support.operations import replace_operation

OWN = Scope("default")
HOPS = Hops(1, (0.7, 0.7, 0.9, 0.0, 0.7, 0.9))


class Chains:
    """A memory whose clock goes on by a second at each addition."""

    def __init__(self):
        self.now = NOON
        self.memory = Memory(":memory:", embedder=None, clock=lambda: self.now)
        self.repository = self.memory._repository

    def add(self, content, supersedes=None, **fields):
        self.now += SECOND
        before = None if supersedes is None else supersedes.id
        return self.memory.add({"content": content, "supersedes": before, **fields})

    def lineage(self, entry, most=3, scope=OWN):
        (found,) = LineageReader(self.repository.shared).lineages(scope, [entry], most)
        assert found.head is entry
        return [[each.content for each in part] for part in found[1:]]

    def leads_to(self, start, scope=OWN, **changed):
        """Return the contents that links lead to from a memory, best first."""
        finder = self.repository.finder
        row = self.repository.reader.locate(scope, start.id).row
        found = finder.neighbours(scope, [(row, 1.0)], HOPS._replace(**changed))
        return [found.entries[hit.row].content for hit in found.hits]


@pytest.fixture
def chains():
    given = Chains()
    with given.memory:
        yield given


@pytest.mark.requirement("C109")
def test_nothing_is_read_where_no_memory_supersedes_another(chains, monkeypatch):
    entries = [chains.add("tea"), chains.add("quay")]
    monkeypatch.setattr(chains.repository._store, "read", None)
    assert [
        len(each.versions)
        for each in LineageReader(chains.repository.shared).lineages(OWN, entries, 3)
    ] == [0, 0]


@pytest.mark.requirement("C109")
def test_chains_are_read_together_one_read_for_each_step(chains, monkeypatch):
    heads = []
    for name in "abc":
        entry = None
        for number in range(3):
            entry = chains.add(f"{name}{number}", entry)
        heads.append(entry)
    store, calls = chains.repository._store, []

    def counted(whole, wanted, **named):
        calls.append(type(wanted))
        return whole(wanted, **named)

    replace_operation(monkeypatch, store, (EntriesById, Successors), counted)
    found = LineageReader(chains.repository.shared).lineages(OWN, heads, 3)
    assert [[each.content for each in one.versions] for one in found] == [
        ["a0", "a1"],
        ["b0", "b1"],
        ["c0", "c1"],
    ]
    assert calls == [EntriesById, EntriesById, Successors]


@pytest.mark.requirement("C135")
def test_other_successors_are_rivals_last_changed_first(chains):
    first = chains.add("first")
    one, two = chains.add("one", first), chains.add("two", first)
    three = chains.add("three", first)
    assert chains.lineage(three) == [["first"], ["two", "one"]]
    chains.now += SECOND
    chains.memory.update(one.id, importance=1)
    assert chains.lineage(three) == [["first"], ["one", "two"]]
    newer = chains.add("newer two", two)
    assert chains.lineage(three) == [["first"], ["newer two", "one"]]
    assert chains.lineage(newer) == [["first", "two"], ["one", "three"]]
    chains.memory.delete(one.id)
    assert chains.lineage(newer) == [["first", "two"], ["three"]]


@pytest.mark.requirement("C161", "R391")
def test_a_memory_stays_superseded_when_its_successor_is_gone(chains):
    """Neither current again, as what was replaced is known to be wrong, nor lost."""
    start, first = chains.add("start"), chains.add("first")
    chains.memory.link(start.id, first.id)
    second = chains.add("second", first, expires_at=chains.now + DAY)
    assert chains.leads_to(start) == ["second"]
    chains.now += 2 * DAY
    assert chains.leads_to(start) == []
    with pytest.raises(EntryNotFoundError):
        chains.memory.get(first.id)
    chains.memory.delete(second.id, permanent=True)
    assert chains.leads_to(start) == []
    shown = chains.memory.recall(mode="recent", include_superseded=True)
    assert {each.entry.content for each in shown} == {"start", "first"}
    chains.memory.add_many([MemoryEntry("first", id=first.id)], on_conflict="replace")
    assert chains.leads_to(start) == ["first"]
    assert chains.memory.get(first.id).content == "first"


@pytest.mark.requirement("C109")
def test_cycles_of_versions_end(chains):
    start = chains.add("start")
    first = chains.add("first")
    chains.memory.link(start.id, first.id)
    second = chains.add("second", first)
    cyclic = chains.memory.add_many(
        [MemoryEntry("first again", id=first.id, supersedes=second.id)], on_conflict="replace"
    )[0]
    versions, rivals = chains.lineage(cyclic, 20)
    assert len(versions) <= 1
    assert rivals == []
    assert len(chains.leads_to(start)) <= 1


@pytest.mark.requirement("C109")
def test_versions_outside_the_scope_are_not_read(chains):
    first = chains.add("first", session_id="s")
    second = chains.add("second", first, session_id="t")
    assert chains.lineage(second) == [["first"], []]
    assert chains.lineage(second, scope=Scope("default", session_id="t")) == [[], []]
    other = chains.add("another's", user_id="bob")
    newer = chains.add("newer", other, user_id="bob")
    assert chains.lineage(newer) == [[], []]  # it is not of the scope
    assert chains.lineage(newer, scope=Scope("default", "bob")) == [["another's"], []]


@pytest.mark.requirement("C109")
def test_ids_of_several_users_are_versions_of_their_own_for_all_users(chains):
    heads = []
    for user in ("alice", "bob"):
        first = chains.add(f"first of {user}", id=UUID(int=1), user_id=user)
        heads.append(chains.add(f"second of {user}", first, user_id=user))
    everyone = Scope("default", all_users=True)
    found = LineageReader(chains.repository.shared).lineages(everyone, heads, 3)
    shown = [[entry.content for entry in lineage.versions] for lineage in found]
    assert shown == [["first of alice"], ["first of bob"]]


def test_a_deadline_that_has_passed_is_raised(chains):
    first = chains.add("first")
    second = chains.add("second", first)
    past = time.monotonic() - 1
    with pytest.raises(DeadlineExceededError):
        LineageReader(chains.repository.shared).lineages(OWN, [second], 3, past)
    with pytest.raises(DeadlineExceededError):
        chains.repository.finder.neighbours(OWN, [(1, 1.0)], HOPS, deadline=past)
