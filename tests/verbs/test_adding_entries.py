"""`add` takes a text, an entry or a dict; what an entry leaves open comes from the memory."""

from datetime import timedelta
from typing import get_type_hints
from uuid import UUID

import pytest

from mnemic import CheckedEntry, Memory, MemoryEntry
from mnemic.compat import LongTermMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.verbs.adding import AddFields, AsyncAddVerbs
from tests.support.clock import NOON
from tests.support.signatures import parameters

ID = UUID(int=7)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def memory():
    ids = iter(range(100, 200))
    options = {"clock": lambda: NOON, "id_factory": lambda _: UUID(int=next(ids))}
    with Memory(":memory:", "aide", embedder=None, **options) as opened:
        yield opened


def test_the_memory_gives_an_entry_what_it_leaves_open(memory):
    new = MemoryEntry("tea", category="drinks")
    stored = memory.scoped(project_id="p").add(new, user_id="ann", session_id="s")
    assert (stored.id, stored.agent_id, stored.created_at) == (UUID(int=100), "aide", NOON)
    assert (stored.user_id, stored.project_id, stored.session_id) == ("ann", "p", "s")
    assert (stored.category, stored.updated_at, stored.is_new) == ("drinks", NOON, False)
    assert memory.get(stored.id, user_id="ann") == stored
    assert new == MemoryEntry("tea", category="drinks")  # it can be stored again
    assert memory.add(new).id == UUID(int=101)


def test_an_entry_keeps_what_it_has(memory):
    given = {
        "id": ID,
        "created_at": "2026-04-01",
        "user_id": "ann",
        "project_id": "p",
        "session_id": "s",
        "type": "event",
        "role": "user",
        "speaker": "Ann",
        "message_id": "m-1",
        "position": 2,
        "importance": 0.9,
        "tags": ["a"],
        "metadata": {"k": [1]},
        "expires_at": "2027-01-01",
        "category": "c",
        "source": "notes.md",
        "sensitive": True,
    }
    stored = memory.add(MemoryEntry("tea", **given))
    expected = MemoryEntry("tea", **given, agent_id="aide")
    assert stored == memory.get(ID, user_id="ann") == expected
    for name in set(given) - {"id"}:
        named = {name: given[name]}
        of_dict = memory.add({"content": f"tea {name}", **named})
        of_entry = memory.add(MemoryEntry(f"tea {name}", **named))
        assert getattr(of_dict, name) == getattr(of_entry, name) == getattr(expected, name)


def test_a_stored_memory_shares_no_metadata_with_the_entry(memory):
    new = MemoryEntry("tea", metadata={"k": [1]})
    stored = memory.add(new)
    new.metadata["k"].append(2)
    assert stored.metadata == memory.get(stored.id).metadata == {"k": [1]}


BESIDE = {
    "role": "user",
    "speaker": "Ann",
    "created_at": NOON,
    "type": "event",
    "tags": ["a"],
    "importance": 0.6,
    "metadata": {"a": 1},
    "sensitive": True,
    "supersedes": ID,
    "id": ID,
}


@pytest.mark.parametrize("name", BESIDE)
def test_fields_stand_in_the_entry_and_not_beside_it(memory, name):
    named = {name: BESIDE[name]}
    with pytest.raises(
        InvalidEntryError, match=rf"{name} stands beside .* MemoryEntry\(…, {name}="
    ):
        memory.add(MemoryEntry("tea"), **named)
    with pytest.raises(InvalidEntryError, match=rf'write {{"content": …, "{name}": …}}'):
        memory.add({"content": "tea"}, **named)
    with pytest.raises(InvalidEntryError, match="idempotency_key stands beside"):
        memory.add({"content": "tea", "idempotency_key": "a"}, idempotency_key="b")
    assert memory.count() == 0


def test_the_arguments_of_add_but_those_of_the_call_are_tried_above():
    of_the_call = {"content", "user_id", "session_id", "idempotency_key", "on_duplicate", "check"}
    assert parameters(Memory.add) - of_the_call == set(BESIDE)
    assert set(AddFields.__annotations__) == parameters(Memory.add) - {"content", "check"}


def test_a_call_cannot_name_another_user_or_session_than_the_entry(memory):
    for content in (
        MemoryEntry("tea", user_id="ann", session_id="s"),
        {"content": "tea", "user_id": "ann", "session_id": "s"},
    ):
        for named in ({"user_id": "bob"}, {"user_id": "ann", "session_id": "t"}):
            with pytest.raises(InvalidArgumentError, match="cannot be"):
                memory.add(content, **named)
        with pytest.raises(InvalidArgumentError, match="cannot be"):
            memory.scoped(user_id="bob").add(content)
        assert memory.add(content, user_id="ann").session_id == "s"
    assert memory.count(all_users=True) == 2


def test_a_record_of_another_agent_or_scope_is_refused(memory):
    record = {"id": ID, "created_at": NOON}
    with pytest.raises(InvalidEntryError, match="its agent is 'other', not 'aide'"):
        memory.add(MemoryEntry("tea", agent_id="other", **record))
    with pytest.raises(InvalidEntryError, match="a record is stored in its own scope"):
        memory.add(MemoryEntry("tea", agent_id="aide", **record), user_id="ann")
    stored = memory.add(MemoryEntry("tea", agent_id="aide", **record))
    assert (stored.id, stored.user_id) == (ID, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "got NoneType$"),
        (5, "got int$"),
        (b"tea", "got bytes; add_many takes a list$"),
        (["tea"], "got list; add_many takes a list$"),
        ({}, "content is missing"),
        ({"content": "tea", "colour": "red"}, r"unknown fields \['colour'\]"),
    ],
)
def test_what_is_no_memory_is_refused(memory, content, message):
    with pytest.raises(InvalidEntryError, match=message):
        memory.add(content)


def test_several_entries_get_successive_microseconds_where_they_name_no_time(memory):
    given = [MemoryEntry("a"), "b", MemoryEntry("c", created_at="2026-04-01"), {"content": "d"}]
    stored = memory.add_many(given, user_id="ann")
    times = [NOON, NOON + MICROSECOND, stored[2].created_at, NOON + 2 * MICROSECOND]
    assert [each.created_at for each in stored] == times
    assert {each.user_id for each in stored} == {"ann"}
    own = memory.add_many([MemoryEntry("e", embedding=[1.0, 0.0])], embeddings=[[0.0, 1.0]])
    assert own[0].embedding.tolist() == [0.0, 1.0]


def test_a_long_term_memory_takes_new_entries_too():
    with LongTermMemory(":memory:", agent_id="aide", embedder=None, clock=lambda: NOON) as memory:
        first = memory.store(MemoryEntry("a", user_id="ann"), idempotency_key="k")
        assert memory.retrieve(first, user_id="ann").created_at == NOON
        assert memory.store(MemoryEntry("a", user_id="ann"), idempotency_key="k") == first
        ids = memory.store_batch([MemoryEntry("b"), MemoryEntry("c")], idempotency_keys=["x", None])
        assert [memory.retrieve(each).created_at - NOON for each in ids] == [
            timedelta(),
            MICROSECOND,
        ]
        with pytest.raises(InvalidEntryError, match="memory 1 of the list: entry must be a Memory"):
            memory.store_batch([MemoryEntry("d"), "e"])
        with pytest.raises(InvalidEntryError, match="entry must be a MemoryEntry, got dict"):
            memory.store({"content": "d"})


def test_an_entry_is_checked_for_contradictions_in_its_own_scope():
    with Memory(":memory:", embedder=None) as memory:
        memory.add(MemoryEntry("I live in Oslo", user_id="ann"))
        memory.add("I live in Rome", user_id="bob")
        for new in (
            MemoryEntry("I live in Bergen", user_id="ann"),
            {"content": "I live in Bergen", "user_id": "ann"},
        ):
            checked = memory.add(new, check="contradictions")
            assert isinstance(checked, CheckedEntry)
            assert checked.contradictions[0].memory.content == "I live in Oslo"
            assert {each.memory.user_id for each in checked.contradictions} == {"ann"}
            memory.delete(checked.id, user_id="ann", permanent=True)


def test_the_overloads_of_add_have_the_types_of_its_arguments():
    hints = get_type_hints(AsyncAddVerbs.add)
    assert {name: hints[name] for name in AddFields.__annotations__} == get_type_hints(AddFields)
