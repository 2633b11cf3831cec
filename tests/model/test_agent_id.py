"""An agent that is named by a GUID is one agent, however that is spelled."""

import asyncio
import io
from uuid import UUID

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.compat import AsyncLongTermMemory, AsyncMemoryRetriever
from mnemic.errors import InvalidEntryError
from mnemic.model.ids import canonical, is_same_agent, stored_spelling
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import Add
from mnemic.store.sqlite.store import SqliteStore
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry

GUID = UUID("6d3cfa7e-2f41-4d0b-9f5e-0a1b2c3d4e5f")
CANONICAL = f"agent:{GUID.hex}"
SPELLINGS = [
    CANONICAL,
    f"agent:{GUID}",
    f"AGENT:{str(GUID).upper()}",
    f"Agent:{{{GUID}}}",
    f"agent:({GUID})",
    f"agent:{{{GUID.hex.upper()}}}",
    f"agent:urn:uuid:{GUID}",
    f"agent:URN:UUID:{{{GUID}}}",
]
OTHERS = [
    str(GUID),
    GUID.hex,
    f"agent: {GUID}",
    f"agent:{{{GUID}",
    f"agent:{{{GUID})",
    f"agent:{GUID}0",
    f"agent:{GUID.hex[:-1]}",
    f"agent:{GUID.hex[:-1]}g",
    "agent:smith",
    "agent:",
    "aide",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_guid_has_one_canonical_form(spelling):
    assert canonical(spelling) == CANONICAL
    assert is_same_agent(spelling, CANONICAL)


@pytest.mark.parametrize("other", OTHERS)
def test_any_other_text_is_an_agent_by_itself(other, tmp_path):
    assert canonical(other) is None
    assert not is_same_agent(other, CANONICAL)
    with Memory(tmp_path / "a.db", other, embedder=None) as memory:
        assert memory.agent_id == other
        memory.add("kept")
    with Memory(tmp_path / "a.db", CANONICAL, embedder=None) as memory:
        assert memory.count() == 0


def test_all_spellings_open_one_memory_at_every_door(tmp_path):
    path = tmp_path / "a.db"

    async def scenario():
        for number, spelling in enumerate(SPELLINGS):
            async with AsyncMemory(path, spelling, embedder=WordEmbedder()) as memory:
                assert memory.agent_id == memory.scope.agent_id == CANONICAL
                await memory.add(f"note {number}")
                assert await memory.scoped(user_id=None).count() == 2 * number + 1
            async with AsyncLongTermMemory(
                path, agent_id=spelling, embedder=WordEmbedder()
            ) as memory:
                await memory.store(entry("more", agent_id=SPELLINGS[-1 - number]))
                assert await memory.count() == 2 * number + 2
                found = await AsyncMemoryRetriever(memory).recall("note", user_id=None)
                assert {hit.memory.agent_id for hit in found} == {CANONICAL}

    asyncio.run(scenario())
    with Memory(path, SPELLINGS[3], embedder=None, read_only=True) as memory:
        assert memory.count() == 2 * len(SPELLINGS)


def test_an_entry_of_another_agent_is_still_refused():
    with (
        Memory(":memory:", CANONICAL, embedder=None) as memory,
        pytest.raises(InvalidEntryError, match="its agent is"),
    ):
        memory.add_many([entry("x", agent_id=f"agent:{UUID(int=1)}")])


def test_an_export_of_one_spelling_is_imported_under_another(tmp_path):
    lines = io.StringIO()
    with Memory(tmp_path / "a.db", SPELLINGS[1], embedder=None) as memory:
        memory.add("kept")
        memory.export(lines)
    lines.seek(0)
    with Memory(tmp_path / "b.db", SPELLINGS[2], embedder=None) as memory:
        assert memory.import_(lines).stored == 1
        assert memory.list().entries[0].agent_id == CANONICAL


def stored_as(path, *spellings):
    """Make a file as it was when each spelling was an agent: the store takes them as they are."""
    store = SqliteStore(path)
    for spelling in spellings:
        new = NewEntry(entry(f"of {spelling}", agent_id=spelling))
        store.write(Add(spelling, [new], now=NOON)).result()
    store.close()


def contents(path, spelling, **options):
    with Memory(path, spelling, embedder=None, **options) as memory:
        return [each.content for each in memory.list()]


@pytest.mark.parametrize("stored", SPELLINGS)
def test_a_file_with_another_spelling_opens_to_its_memories_by_every_spelling(stored, tmp_path):
    path = tmp_path / "a.db"
    stored_as(path, stored)
    for spelling in SPELLINGS:
        for options in ({}, {"read_only": True}):
            assert contents(path, spelling, **options) == [f"of {stored}"]
    with Memory(path, SPELLINGS[0], embedder=None) as memory:
        memory.add_many([entry("new", agent_id=SPELLINGS[4])])
        assert memory.count() == 2
        assert len(memory.search("new")) == 1


def test_where_several_spellings_were_agents_each_still_finds_its_own(tmp_path):
    path = tmp_path / "a.db"
    stored_as(path, *SPELLINGS[:3])
    for spelling in SPELLINGS[:3]:
        assert contents(path, spelling) == [f"of {spelling}"]
    for spelling in SPELLINGS[3:]:
        assert contents(path, spelling) == [f"of {CANONICAL}"]
    assert stored_spelling(SPELLINGS[0], SPELLINGS[1:3]) == min(SPELLINGS[1:3])
