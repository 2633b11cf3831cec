"""Filters and erasure through AsyncLongTermMemory."""

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.memory import Memory
from mnemic.model import MemoryStatus
from tests.support.doors import with_memory
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry

# Filters


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (
            lambda memory: memory.search_by_filter({"OR": [{}, {"metadata.age": {"near": 1}}]}),
            "OR[1]",
        ),
        (lambda memory: memory.search_by_filter({"colour": "red"}), "colour"),
        (lambda memory: memory.get_by_type("opinion"), "opinion"),
        (lambda memory: memory.get_important(0), "limit"),
        (lambda memory: memory.get_recent(1001), "limit"),
    ],
)
@with_memory()
async def test_a_filter_that_cannot_be_understood_names_the_place(memory, call, place):
    with pytest.raises(InvalidArgumentError) as raised:
        await call(memory)
    assert place in str(raised.value)


@pytest.mark.requirement("C161")
@with_memory()
async def test_archived_memories_are_listed_only_when_a_status_is_asked_for(memory):
    await memory.store_batch([entry("kept"), entry("old", status=MemoryStatus.ARCHIVED)])
    assert [one.content for one in await memory.search_by_filter({})] == ["kept"]
    asked = await memory.search_by_filter({"NOT": {"status": "active"}})
    assert [one.content for one in asked] == ["old"]


# A person's wish to be forgotten


def test_the_front_door_deletes_all_of_a_scope_and_no_more():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        for session in ("one", "two"):
            memory.add_many(["a", "b"], user_id="alice", session_id=session)
        memory.add("c")
        assert memory.scoped(user_id="alice").delete_all(session_id="one") == 2
        assert memory.count(user_id="alice") == 2
        assert memory.delete_all(permanent=True) == 1
        assert (memory.count(), memory.count(user_id="alice")) == (0, 2)
