"""Numbers and distinct values by filter are the same from the index and from the store."""

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic import MemoryEntry
from mnemic.errors import OutOfMemoryError
from mnemic.index import NativeIndex
from mnemic.model import MemoryFilter, MemoryStatus, MemoryType
from mnemic.repository.listing import MAX_SKIPPED, Lister
from tests.support.clock import HOUR, NOON
from tests.support.distinct_twin import distinct, keys_of
from tests.support.doors import opened
from tests.support.entries import contents
from tests.support.filter_strategies import (
    EVERYONE,
    KEYS,
    SIZES,
    WORDS,
    filters,
    paths,
    population,
    texts,
    users,
)
from tests.support.filter_twin import matches
from tests.support.tiers import examples

PROFILE = examples(150)
MEMORIES = [
    msgspec.structs.replace(
        entry, agent_id="default", status=MemoryStatus.ACTIVE, forgotten_at=None, expires_at=None
    )
    for entry in population(SIZES[-1])
]
NAMES = (
    *("role", "speaker", "session_id", "project_id", "category", "scope", "source", "message_id"),
    *("type", "tags"),
)
fields = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(KEYS).map(lambda key: ("metadata", key)),
    st.sampled_from(paths(SIZES[-1])).map(lambda path: ("metadata", *path)),
)
prefixes = (
    st.none() | texts.map(lambda text: text[:2]) | st.sampled_from(WORDS).map(lambda w: w[:1])
)


@pytest.fixture(scope="module")
def memory():
    """Return an open memory of the population, whose index is loaded."""
    with opened(clock=lambda: NOON, track_access=False) as memory:
        memory.add_many(MEMORIES)
        yield memory


def by_store(call):
    """Return what a call answers if the store decides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lister, "can_decide", lambda *_given: False)
        return call()


def scoped(user):
    return {"all_users": True} if user == EVERYONE else {"user_id": user}


def matching(where, user):
    inside = [entry for entry in MEMORIES if user in (EVERYONE, entry.user_id)]
    return [entry for entry in inside if matches(where, entry)]


@PROFILE
@given(where=filters(SIZES[-1]), user=users)
def test_both_ways_count_the_memories_of_the_twin(memory, where, user):
    def counted():
        return memory.count(filters=where, **scoped(user))

    expected = len(matching(where, user))
    event("none" if expected == 0 else "some")
    assert counted() == by_store(counted) == expected
    assert memory.count(filters=MemoryFilter(filters=where), **scoped(user)) == expected


@PROFILE
@given(
    where=st.just({}) | filters(SIZES[-1], depth=1),
    user=users,
    counted=st.tuples(fields, prefixes),
    page=st.tuples(st.integers(1, 20) | st.just(10_000), st.integers(0, 9)),
)
def test_both_ways_have_the_distinct_values_of_the_twin(memory, where, user, counted, page):
    (field, prefix), (limit, offset) = counted, page
    prefix = None if field == "type" else prefix

    def values():
        options = {"filters": where, "prefix": prefix, "limit": limit, "offset": offset}
        return memory.distinct(field, **options, **scoped(user))

    expected = distinct(matching(where, user), field, prefix)[offset : offset + limit]
    event("none" if not expected else "some")
    found = values()
    assert keys_of(found) == expected
    assert by_store(values) == found
    assert msgspec.json.encode(by_store(values)) == msgspec.json.encode(found)


# Which way


@pytest.fixture
def ways(monkeypatch):
    """Return which way each answer took so far."""
    taken = []
    answer = Lister._if_current

    def telling(self, from_index):
        found = answer(self, from_index)
        taken.append("store" if found is None else "index")
        return found

    monkeypatch.setattr(Lister, "_if_current", telling)
    return taken


def test_the_index_answers_where_it_is_current_and_the_store_otherwise(tmp_path, ways):
    with opened(tmp_path / "a.db", embedder=None) as memory:
        memory.add(MemoryEntry("tea", category="a", metadata={"k": 1}))
        assert (memory.count(), len(memory.distinct("category"))) == (1, 1)
        assert ways == []
        memory.search("tea")
        assert (memory.count(), len(memory.distinct("category"))) == (1, 1)
        assert ways == ["index", "index"]
        with opened(tmp_path / "a.db", embedder=None) as other:
            other.add(MemoryEntry("ferry", category="b", metadata={"k": 2}))
        assert memory.count(filters={"metadata.k": {"gt": 0}}) == 2
        assert [one.value for one in memory.distinct(("metadata", "k"))] == [1, 2]
        assert ways[2:] == ["store", "store"]
        memory.search("tea")
        assert memory.count() == 2
        assert ways[4:] == ["index"]


@pytest.mark.parametrize("name", ["counted", "distinct"])
def test_an_index_without_memory_for_it_leaves_the_answer_to_the_store(monkeypatch, name):
    def failing(*_given):
        raise OutOfMemoryError("10 bytes of memory are not to be had")

    monkeypatch.setattr(NativeIndex, name, failing)
    with opened() as memory:
        memory.add("tea", tags=["a"])
        assert memory.count(filters={"tags": ["a"]}) == 1
        assert [one.value for one in memory.distinct("tags")] == ["a"]


# Offsets of lists


@pytest.mark.parametrize("embedder", [{}, {"embedder": None}])
def test_an_offset_skips_memories_of_the_list_and_of_what_follows_a_cursor(embedder):
    with opened(**embedder) as memory:
        memory.add_many(
            [{"content": f"{at}", "created_at": NOON + HOUR * at, "tags": ["x"]} for at in range(9)]
        )
        for where in (None, {"tags": {"contains": "x"}}, {"created_at": {"gte": NOON}}):
            page = memory.list(filters=where, limit=3, offset=2)
            assert contents(page) == ["6", "5", "4"]
            following = memory.list(filters=where, limit=2, offset=1, cursor=page.cursor)
            assert contents(following) == ["2", "1"]
            assert contents(memory.list(filters=where, cursor=following.cursor)) == ["0"]
            assert memory.list(filters=where, offset=9).entries == ()
            assert memory.list(filters=where, offset=2**63 - 1).cursor is None


def test_a_long_list_of_all_memories_is_skipped_by_the_index(monkeypatch):
    read = []
    get_rows = Lister._read
    monkeypatch.setattr(
        Lister,
        "_read",
        lambda self, wanted, *rest: read.append(wanted) or get_rows(self, wanted, *rest),
    )
    count = MAX_SKIPPED + 40
    with opened() as memory:
        memory.add_many(
            [{"content": f"{at}", "created_at": NOON + HOUR * at} for at in range(count)]
        )
        for offset in (0, MAX_SKIPPED, MAX_SKIPPED + 1, count - 1):
            assert contents(memory.list(limit=1, offset=offset)) == [f"{count - 1 - offset}"]
    assert [wanted.offset for wanted in read] == [MAX_SKIPPED + 1, count - 1]


def test_accesses_that_are_not_written_yet_count_both_ways():
    for embedder in ({}, {"embedder": None}):
        with opened(**embedder) as memory:
            first, second = (
                memory.add(MemoryEntry("tea", category="a")),
                memory.add(MemoryEntry("ferry", category="b")),
            )
            memory.get(first.id)
            read = {"access_count": {"gte": 1}}
            assert memory.count(filters=read) == 1
            assert [one.value for one in memory.distinct("category", filters=read)] == ["a"]
            assert second.access_count == 0


def test_filters_of_the_status_are_decided_by_the_store(ways):
    with opened() as memory:
        old = memory.add(MemoryEntry("tea at noon", category="a"))
        memory.add(MemoryEntry("tea at four", category="b", supersedes=old.id))
        assert memory.count() == 1
        assert memory.count(filters={"status": "superseded"}) == 1
        assert memory.count(filters={"status": {"in": ["active", "superseded"]}}) == 2
        found = memory.distinct("category", filters={"status": "superseded"})
        assert [(one.value, one.count) for one in found] == [("a", 1)]
    assert ways == ["index"]


def test_types_are_members_and_whole_numbers_are_ints():
    with opened(embedder=None) as memory:
        for loaded in (False, True):
            memory.add("a", type="event", metadata={"n": 2.0})
            memory.add("b", type="fact", metadata={"n": 2})
            memory.add("c", type="fact", metadata={"n": 0.5})
            found = memory.distinct("type")
            assert [one.value for one in found] == [MemoryType.FACT, MemoryType.EVENT]
            assert all(isinstance(one.value, MemoryType) for one in found)
            numbers = [one.value for one in memory.distinct("metadata.n")]
            assert [(type(one), one) for one in numbers] == [(float, 0.5), (int, 2)]
            if not loaded:
                memory.search("a")
