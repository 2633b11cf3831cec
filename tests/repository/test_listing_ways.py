"""A list by filter is the same from the index and from the store, and each lists what it should."""

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic.errors import EntryNotFoundError, OutOfMemoryError
from mnemic.index import NativeIndex
from mnemic.model import MemoryEntryUpdate, MemoryFilter, MemorySortOrder, MemoryStatus, Scope
from mnemic.repository.listing import MAX_ROUNDS, Lister
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import opened
from tests.support.entries import contents
from tests.support.filter_strategies import EVERYONE, SIZES, filters, population, users
from tests.support.tiers import examples

TEA = {"content": {"contains": "TEA"}}
ALL_USERS = Scope("default", all_users=True)
PROFILE = examples(60)
EXPIRIES = (None, NOON + HOUR, None, NOON + timedelta(days=40))
MEMORIES = [
    msgspec.structs.replace(
        entry,
        agent_id="default",
        status=MemoryStatus.ACTIVE,
        forgotten_at=None,
        expires_at=EXPIRIES[at % len(EXPIRIES)],
        access_count=min(entry.access_count, 2**62),
    )
    for at, entry in enumerate(population(SIZES[-1])[:60])
]


def matching(memory, page, scope=ALL_USERS):
    return run_sync(memory.repository.lister.matching(scope, page))


def paged(memory, where, limit, scope=ALL_USERS):
    """Return the pages of a list."""
    found, cursor = [], None
    for _ in range(len(MEMORIES) + 1):
        listing = memory.repository.lister.page(
            scope, limit=limit, cursor=cursor, filters=where, include_deleted=False
        )
        page = run_sync(listing)
        found.append(shown(page.entries))
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("more pages than memories")


def shown(entries):
    return [(one, one.access_count, one.last_accessed_at) for one in entries]


@pytest.fixture
def ways(monkeypatch):
    """Return which way each list took so far."""
    taken = []
    telling(taken, monkeypatch)
    return taken


def telling(taken, patch):
    can_list, listed = Lister.can_list, Lister.listed

    def telling_of_refusals(self, wanted, **options):
        is_listed = can_list(self, wanted, **options)
        if not is_listed:
            taken.append("store")
        return is_listed

    def telling_of_lists(self, wanted, now):
        found = listed(self, wanted, now)
        taken.append("store" if found is None else "index")
        return found

    patch.setattr(Lister, "can_list", telling_of_refusals)
    patch.setattr(Lister, "listed", telling_of_lists)


def by_store(call):
    """Return what a call answers if the store lists everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lister, "can_list", lambda *_given, **_named: False)
        return call()


# The same from both


def updated(**fields):
    def update(memory, entry):
        scope = Scope("default", entry.user_id)
        run_sync(memory.repository.updater.update(scope, entry.id, MemoryEntryUpdate(**fields)))

    return update


CHANGES = {
    "read": lambda memory, entry: memory.get(entry.id, user_id=entry.user_id),
    "delete": lambda memory, entry: memory.delete(entry.id, user_id=entry.user_id),
    "erase": lambda memory, entry: memory.delete(entry.id, permanent=True, user_id=entry.user_id),
    "restore": lambda memory, entry: memory.restore(entry.id, user_id=entry.user_id),
    "rewrite": updated(content="green tea, fish and Straße"),
    "label": updated(add_tags=["web", "TEA"], metadata={"a": 1}),
    "weigh": updated(importance=0.3),
    "archive": updated(status=MemoryStatus.ARCHIVED),
    "search": lambda memory, _entry: memory.search("tea", all_users=True, limit=5),
    "wait": lambda memory, _entry: memory.wait(),
}
changes = st.lists(
    st.tuples(st.sampled_from(list(CHANGES)), st.integers(0, len(MEMORIES) - 1)), max_size=12
)


@PROFILE
@given(data=st.data(), user=users, limit=st.integers(5, 70), offset=st.integers(0, 9))
def test_both_ways_list_the_same_in_the_same_order_with_the_same_accesses(
    data, user, limit, offset
):
    scope = ALL_USERS if user == EVERYONE else Scope("default", user)
    clock, taken = Clock(NOON), []
    with opened(clock=clock) as memory, pytest.MonkeyPatch.context() as patch:
        telling(taken, patch)
        memory.wait = lambda: setattr(clock, "now", clock.now + HOUR)
        memory.add_many(MEMORIES)
        for _ in range(3):
            for name, at in data.draw(changes):
                with suppress(EntryNotFoundError):
                    CHANGES[name](memory, MEMORIES[at])
            where, order = (
                data.draw(filters(SIZES[-1])),
                data.draw(st.sampled_from(MemorySortOrder)),
            )
            page = MemoryFilter(filters=where, limit=limit, offset=offset, sort_by=order)

            def lists(page=page, where=where):
                return shown(matching(memory, page, scope)), paged(memory, where, limit, scope)

            found = lists()
            event(f"{taken[0]}, memories: {min(len(found[0]), 5)}")
            assert found == by_store(lists)


# Which way


@pytest.fixture
def tea():
    """Return an open memory of three cups of tea and water, the newest first."""
    with opened(clock=lambda: NOON) as memory:
        for at, content in enumerate(("water", "green tea", "black tea", "white tea")):
            memory.add(content, created_at=NOON - HOUR * (9 - at), importance=at / 4)
        yield memory


def listed(memory, where=TEA, **options):
    return contents(matching(memory, MemoryFilter(filters=where, **options)))


def test_an_index_without_memory_for_it_leaves_the_list_to_the_store(tea, ways, monkeypatch):
    def failing(_self, _wanted):
        raise OutOfMemoryError("10 bytes of memory are not to be had")

    monkeypatch.setattr(NativeIndex, "listed", failing)
    assert listed(tea) == ["white tea", "black tea", "green tea"]
    assert ways == ["store"]


# Writes meanwhile


def writing(patch, times, write):
    """Let writes come between what the index lists and the reading of the memories."""
    calls, listed = [], NativeIndex.listed

    def and_then_writing(self, wanted):
        found = listed(self, wanted)
        if len(calls) < times:
            calls.append(wanted)
            write(len(calls))
        return found

    patch.setattr(NativeIndex, "listed", and_then_writing)


@pytest.mark.parametrize("times", [1, MAX_ROUNDS - 1, MAX_ROUNDS])
def test_a_memory_that_stops_matching_meanwhile_is_not_listed(tea, ways, monkeypatch, times):
    first, second, _ = matching(tea, MemoryFilter(filters=TEA))
    ways.clear()

    def write(number):
        tea.update(first.id, content=f"coffee {number}")

    writing(monkeypatch, times, write)
    assert listed(tea, limit=2) == ["black tea", "green tea"]
    assert ways == (["index"] if times < MAX_ROUNDS else ["store"])
    assert second.content == "black tea"


def test_a_memory_that_is_gone_meanwhile_leaves_no_gap(tea, ways, monkeypatch):
    first = matching(tea, MemoryFilter(filters=TEA))[0]
    writing(monkeypatch, 1, lambda _number: tea.delete(first.id))
    assert listed(tea, limit=2) == ["black tea", "green tea"]
    assert ways == ["index", "index"]


def test_states_that_the_index_lacks_are_listed_by_the_store(tea, ways):
    tea.delete(matching(tea, MemoryFilter(filters=TEA))[0].id)
    assert listed(tea, {**TEA, "status": "active"}) == ["black tea", "green tea"]
    assert len(listed(tea, include_forgotten=True)) == 3
    assert len(tea.list(filters=TEA, include_deleted=True)) == 3
    assert ways == ["index", "store", "store", "store"]


def test_an_access_that_is_not_written_yet_counts(tea, ways):
    (green,) = matching(tea, MemoryFilter(filters={"content": "green tea"}))
    tea.get(green.id)
    (found,) = matching(tea, MemoryFilter(filters={"access_count": {"gte": 1}}))
    assert (found.id, found.access_count, found.last_accessed_at) == (green.id, 1, NOON)
    by_access = MemorySortOrder.ACCESSED_DESCENDING
    assert listed(tea, sort_by=by_access)[0] == "green tea"
    assert ways == ["index"] * 3
