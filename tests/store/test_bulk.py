"""Writes over many entries: chosen by id and by filter, and decided inside their transaction."""

import threading

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.store import open_store
from mnemic.store.operations import Delete, SoftDelete, Update
from mnemic.store.values import Quotas
from tests.store.contract import (
    AGENT,
    EVERYONE,
    added,
    changed,
    exported,
    matched,
    numbers,
)
from tests.support import filter_twin
from tests.support.clock import NOON
from tests.support.entries import numbered, uid
from tests.support.filter_strategies import filters, population
from tests.support.tiers import examples

RED = {"metadata.color": "red"}
"""A filter that the core decides."""


def by(where=None, ids=None):
    """Return a criteria by filter and by the numbers of ids."""
    return Criteria(
        None if ids is None else [uid(number) for number in ids],
        None if where is None else parse_filter(where),
    )


def forgotten(store, scope, criteria, now=NOON):
    return sorted(numbers(store.write(SoftDelete(scope, criteria, now)).result()))


def deleted(store, scope, criteria):
    return sorted(numbers(store.write(Delete(scope, criteria)).result()))


def updated(store, scope, criteria, *, now=NOON, vectors=None, quota=None, archived=False, **what):
    update = MemoryEntryUpdate(**what)
    written = store.write(
        Update(
            scope,
            criteria,
            change=lambda old: update.applied_to(old, now),
            embedded=vectors,
            now=now,
            include_archived=archived,
            quotas=Quotas(agent=quota),
        )
    )
    return [entry.id.int for entry in written.result()]


def entries(store, scope=EVERYONE):
    return {stored.entry.id.int: stored.entry for stored in exported(store, scope, limit=1000)}


# Updates


def test_many_entries_are_updated_in_the_order_of_their_rows(store):
    count = 700  # more than are read together
    made = [numbered(number, metadata={"even": number % 2 == 0}) for number in range(1, count)]
    added(store, "a", made)
    even = list(range(2, count, 2))
    assert updated(store, AGENT, by({"metadata.even": True}), importance=0.9) == even
    assert [at for at, entry in entries(store).items() if entry.importance == 0.9] == even


# Concurrent writers


def test_an_entry_that_another_opening_changed_is_decided_as_it_is_now(stores):
    mine, other = stores
    red = {"metadata": {"color": "red"}}
    added(mine, "a", [numbered(number, **red) for number in range(1, 5)])
    assert sorted(matched(mine, AGENT, RED)) == [1, 2, 3, 4]
    changed(other, 2, metadata={"color": "blue"})
    changed(other, 3, add_tags=["kept"])
    where = {"AND": [RED, {"NOT": {"tags": {"contains": "kept"}}}]}
    assert forgotten(mine, AGENT, by(where, [1, 2])) == [1]
    assert updated(mine, AGENT, by(where), importance=1.0) == [4]
    assert deleted(mine, AGENT, by(where)) == [1, 4]
    assert sorted(entries(mine)) == [2, 3]


@pytest.mark.parametrize("write", [forgotten, deleted])
def test_of_writers_that_meet_none_deletes_what_no_longer_matches(stores, write):
    """A thread recolors entries, one after the other, while another one deletes the red ones."""
    mine, other = stores
    count = 300
    made = [numbered(number, metadata={"color": "red"}) for number in range(count)]
    added(mine, "a", made)
    recolored, gone = [], []
    begun = threading.Event()

    def recolor():
        for number in range(count):
            if changed(other, number, metadata={"color": "blue"}) is not None:
                recolored.append(number)
            begun.set()

    thread = threading.Thread(target=recolor)
    thread.start()
    begun.wait(60)
    while thread.is_alive():
        gone += write(mine, AGENT, by(RED))
    thread.join()
    gone += write(mine, AGENT, by(RED))
    assert set(recolored).isdisjoint(gone)
    assert sorted(recolored + gone) == list(range(count))
    assert mine.verify().problems == ()


# Random filters


WHERE = filters(120)
ANY_IDS = st.none() | st.lists(st.sampled_from([entry.id for entry in population(120)]), max_size=9)


@examples(50, suppress_health_check=[HealthCheck.too_slow])
@given(where=WHERE, ids=ANY_IDS, user=st.sampled_from(["alice", "bob", None, "everyone"]))
def test_what_a_filter_selects_is_what_a_naive_evaluator_says(where, ids, user):
    scope = Scope("a", all_users=True) if user == "everyone" else Scope("a", user)
    wanted = [
        entry.id
        for entry in population(120)
        if scope.has(entry)
        and filter_twin.matches(where, entry)
        and (ids is None or entry.id in ids)
    ]
    store = open_store("sqlite:///:memory:")
    try:
        added(store, "a", population(120), is_import=True)
        found = store.write(Delete(scope, Criteria(ids, parse_filter(where)))).result()
        assert sorted(found) == sorted(wanted)
        left = {stored.entry.id for stored in exported(store, limit=200)}
        assert left == {entry.id for entry in population(120)} - set(wanted)
        assert store.verify().problems == ()
    finally:
        store.close()
