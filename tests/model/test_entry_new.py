"""A new entry needs its content alone; until a memory stores it, the rest has placeholders."""

import copy
import pickle
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import numpy as np
import pytest

from mnemic import Memory, MemoryEntry, MemoryType
from mnemic.errors import ArgumentMismatchError, InvalidEntryError
from mnemic.model import enc_hook
from tests.support.clock import NOON
from tests.support.parsed import parameters_of
from tests.support.paths import ROOT

ID = UUID(int=7)
PLACEHOLDERS = {"id", "agent_id", "created_at"}


def test_the_content_is_given_by_position_and_all_else_by_name():
    entry = MemoryEntry("Likes tea", category="drinks", tags=["tea"], type="preference")
    assert entry == MemoryEntry(content="Likes tea", category="drinks", tags=("tea",), type=3)
    assert (entry.tags, entry.type) == (("tea",), MemoryType.PREFERENCE)
    with pytest.raises(ArgumentMismatchError, match="by position it takes content"):
        MemoryEntry("Likes tea", "aide")
    with pytest.raises(ArgumentMismatchError, match="missing a required argument: 'content'"):
        MemoryEntry(category="drinks")
    with pytest.raises(ArgumentMismatchError, match="no argument 'ttl'; did you mean 'expires_at'"):
        MemoryEntry("Likes tea", ttl=3)


def test_times_may_be_texts_in_iso_8601():
    times = ("created_at", "updated_at", "last_accessed_at", "forgotten_at", "expires_at")
    entry = MemoryEntry("tea", **dict.fromkeys(times, "2026-05-01T14:00:00+02:00"))
    assert {getattr(entry, name) for name in times} == {NOON}
    assert MemoryEntry("tea", created_at="2026-05-04").updated_at == datetime(
        2026, 5, 4, tzinfo=UTC
    )
    with pytest.raises(InvalidEntryError, match="expires_at is not an ISO 8601 time: 'soon'"):
        MemoryEntry("tea", expires_at="soon")


def test_what_it_leaves_open_is_neither_shown_nor_written():
    entry = MemoryEntry("Likes tea", category="drinks")
    assert entry.is_new
    assert repr(entry) == "MemoryEntry(content='Likes tea')"
    assert not PLACEHOLDERS & set(entry.to_dict())
    assert not PLACEHOLDERS & {name for name, _ in entry.__rich_repr__()}
    named = MemoryEntry("Likes tea", id=ID, created_at=NOON)
    assert repr(named) == "MemoryEntry(id=…000000000007, content='Likes tea')"
    assert PLACEHOLDERS & set(named.to_dict()) == {"id", "created_at"}
    assert MemoryEntry("Likes tea", id=None, created_at=None) == MemoryEntry("Likes tea")


def test_new_entries_are_equal_by_their_fields():
    one, same, other = MemoryEntry("tea"), MemoryEntry("tea"), MemoryEntry("tea", category="c")
    assert one == same != other
    assert {one, same, other} == {one, other}
    assert MemoryEntry("tea", id=ID, agent_id="a", created_at=NOON) != one


def of_numbers(_, given):
    return np.array(given, np.float32)


def test_it_stays_new_in_copies():
    entry = MemoryEntry("tea", metadata={"a": 1}, embedding=[1.0, 2.0])
    for copied in (
        copy.copy(entry),
        copy.deepcopy(entry),
        pickle.loads(pickle.dumps(entry)),  # noqa: S301 - our own
        msgspec.structs.replace(entry),
        msgspec.json.decode(
            msgspec.json.encode(entry, enc_hook=enc_hook), type=MemoryEntry, dec_hook=of_numbers
        ),
        msgspec.json.decode(entry.to_json(), type=MemoryEntry, dec_hook=of_numbers),
    ):
        assert copied == entry
        assert (copied.is_new, copied.names_id, copied.names_time) == (True, False, False)
        assert copied.embedding.tolist() == [1.0, 2.0]


def test_the_nil_uuid_and_the_first_moment_are_named_like_any_other():
    first = datetime.min.replace(tzinfo=UTC)
    entry = MemoryEntry("tea", id=UUID(int=0), created_at=first)
    assert (entry.names_id, entry.names_time) == (True, True)
    with Memory(":memory:", embedder=None) as memory:
        stored = memory.add(entry)
        assert (stored.id, stored.created_at, stored.updated_at) == (UUID(int=0), first, first)


@pytest.mark.parametrize("missing", ["id", "created_at"])
def test_an_entry_with_an_agent_is_a_record_and_has_an_id_and_a_time(missing):
    given = {"id": ID, "agent_id": "aide", "created_at": NOON}
    assert not MemoryEntry("tea", **given).is_new
    del given[missing]
    with pytest.raises(InvalidEntryError, match="leave agent_id out of a new one"):
        MemoryEntry("tea", **given)
    with pytest.raises(msgspec.ValidationError, match="leave agent_id out of a new one"):
        msgspec.json.decode('{"content": "tea", "agent_id": "aide"}', type=MemoryEntry)
    with pytest.raises(InvalidEntryError, match="leave agent_id out of a new one"):
        msgspec.structs.replace(MemoryEntry("tea"), agent_id="aide")


def test_type_checkers_read_the_fields_that_there_are():
    declared = parameters_of(ROOT / "python/mnemic/model/entry.py", "MemoryEntry", "__init__")
    assert sorted(declared) == sorted(["self", *MemoryEntry.__struct_fields__])
