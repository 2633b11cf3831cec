"""Reads over many memories: by ids, as numbers, as values, in pages."""

from uuid import UUID

import pytest

from mnemic import Memory, errors
from tests.support.clock import HOUR, NOON
from tests.support.entries import contents


def verb(name, given, *arguments, **options):
    """Call a verb of a memory with some memories."""
    with Memory(":memory:", embedder=None, clock=lambda: NOON) as memory:
        memory.add_many(given)
        return getattr(memory, name)(*arguments, **options)


ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
THREE_MEMORIES = [
    {"content": "one", "id": ONE, "category": "a/x", "tags": ["t"], "created_at": NOON},
    {"content": "two", "id": TWO, "category": "a/y", "tags": ["t", "u"], "created_at": NOON - HOUR},
    {"content": "three", "id": THREE, "category": "b", "user_id": "alice", "created_at": NOON},
]


def test_get_many_returns_the_memories_in_the_order_of_the_ids_without_unknown_ones():
    found = verb("get_many", THREE_MEMORIES, [TWO, str(ONE), UUID(int=9), TWO])
    assert contents(found) == ["two", "one", "two"]
    assert contents(verb("get_many", THREE_MEMORIES, (THREE, ONE), user_id="alice")) == ["three"]
    everybody = verb("get_many", THREE_MEMORIES, {THREE: 1, ONE: 1}.keys(), all_users=True)
    assert contents(everybody) == ["three", "one"]
    assert verb("get_many", THREE_MEMORIES, []) == []
    for wrong in ("text", [None], ["x"], 5):
        with pytest.raises((errors.InvalidArgumentError, errors.InvalidEntryError)):
            verb("get_many", THREE_MEMORIES, wrong)


def test_many_ids_are_read_and_each_counts_one_access():
    with Memory(":memory:", embedder=None, clock=lambda: NOON) as memory:
        ids = [entry.id for entry in memory.add_many([f"{at}" for at in range(300)])]
        assert contents(memory.get_many([*reversed(ids), ids[0]])) == [
            *(f"{at}" for at in reversed(range(300))),
            "0",
        ]
        assert {entry.access_count for entry in memory.list(limit=300)} == {1}


def test_all_users_are_read_by_id_in_pages_and_as_numbers():
    assert verb("get", THREE_MEMORIES, THREE, all_users=True).content == "three"
    with pytest.raises(errors.EntryNotFoundError):
        verb("get", THREE_MEMORIES, THREE)
    page = verb("list", THREE_MEMORIES, all_users=True, limit=2)
    assert contents(page) == ["one", "three"]
    assert contents(verb("list", THREE_MEMORIES, all_users=True, offset=2)) == ["two"]
    assert verb("count", THREE_MEMORIES, all_users=True) == 3
    assert verb("count", THREE_MEMORIES, filters={"category": {"prefix": "a/"}}) == 2
    assert verb("count", THREE_MEMORIES) == 2


def test_an_id_of_several_users_is_ambiguous_for_all_users():
    alike = {"id": ONE, "created_at": NOON}
    twice = [{"content": user, "user_id": user, **alike} for user in ("alice", "bob")]
    for name, wanted in (("get", ONE), ("get_many", [ONE])):
        with pytest.raises(errors.AmbiguousIdError):
            verb(name, twice, wanted, all_users=True)
    assert contents(verb("get_many", twice, [ONE], user_id="bob")) == ["bob"]
    assert contents(verb("list", twice, all_users=True)) == ["alice", "bob"]


@pytest.mark.parametrize("options", [{"offset": -1}, {"offset": 1.0}, {"offset": True}])
def test_an_offset_of_a_list_is_a_whole_number(options):
    with Memory(":memory:", embedder=None) as memory, pytest.raises(errors.InvalidEntryError):
        memory.list(**options)


def test_a_view_of_one_user_is_not_widened():
    with Memory(":memory:", embedder=None) as memory:
        alice = memory.scoped(user_id="alice")
        for call in (
            lambda: alice.get(ONE, all_users=True),
            lambda: alice.get_many([ONE], all_users=True),
            lambda: alice.list(all_users=True),
            lambda: alice.count(all_users=True),
            lambda: alice.distinct("tags", all_users=True),
        ):
            with pytest.raises(errors.InvalidArgumentError, match="does not go with a view"):
                call()
        with pytest.raises(errors.FilterError):
            alice.count(filters={"user_id": "bob"})
