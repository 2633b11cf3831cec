"""What type checkers know of `add`: mypy and basedpyright read this file (`make types`)."""

import asyncio
from typing import Literal, assert_type
from uuid import UUID

from mnemic import AsyncMemory, CheckedEntry, Memory, MemoryEntry, ScopedMemory
from mnemic.model import ScoredMemory


def test_a_check_gives_a_checked_entry_and_its_absence_an_entry() -> None:
    with Memory(":memory:", embedder=None) as memory:
        assert_type(memory.add("I live in Oslo"), MemoryEntry)
        assert_type(memory.add("I live in Oslo").id, UUID)
        checked = memory.add("I live in Rome", check="contradictions")
        assert_type(checked, CheckedEntry)
        assert_type(checked.contradictions, tuple[ScoredMemory, ...])
        assert isinstance(checked, CheckedEntry)
        view = memory.scoped(user_id="ann")
        assert_type(view, ScopedMemory)
        assert_type(view.add({"content": "tea"}, check="contradictions"), CheckedEntry)


def test_the_awaited_call_has_the_same_types() -> None:
    async def scenario() -> None:
        async with AsyncMemory(":memory:", embedder=None) as memory:
            assert_type(await memory.add("tea", user_id="ann"), MemoryEntry)
            assert_type(await memory.add("tea", check="contradictions"), CheckedEntry)

    asyncio.run(scenario())


def test_whether_to_check_may_be_a_variable() -> None:
    def added(memory: Memory, check: Literal["contradictions"] | None) -> MemoryEntry:
        return memory.add("tea", check=check)

    with Memory(":memory:", embedder=None) as memory:
        assert isinstance(added(memory, "contradictions"), CheckedEntry)


def test_an_entry_is_made_of_texts_and_lists() -> None:
    entry = MemoryEntry(
        "tea",
        id="00000000-0000-0000-0000-000000000007",
        created_at="2026-05-04",
        expires_at="2027-01-01",
        type="event",
        tags=["a"],
        metadata={"a": 1},
        embedding=[1.0, 2.0],
    )
    assert_type(entry.id, UUID)
    assert entry.tags == ("a",)
