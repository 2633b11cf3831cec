"""Exports and imports at the doors: what a view takes, how links come, and what stops an import."""

import asyncio
import contextlib
import io
import json
import time

import pytest

from mnemic.async_memory import AsyncMemory
from mnemic.errors import DuplicateEntryError, InvalidArgumentError
from mnemic.memory import Memory
from mnemic.observability.events import MemoryStoredEvent
from mnemic.repository import export
from tests.support.embedders import WordEmbedder


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as opened:
        yield opened


def test_a_file_is_not_overwritten_because_of_a_word(memory, tmp_path):
    target = tmp_path / "kept.jsonl"
    target.write_text("kept")
    with pytest.raises(InvalidArgumentError, match="overwrite must be True or False, got 'no'"):
        memory.export(target, overwrite="no")
    assert target.read_text() == "kept"


def test_a_view_imports_no_link_between_memories_of_somebody_else(memory):
    newer = memory.add("Moved to Bergen", user_id="bob")
    older = memory.add("Lives in Oslo", user_id="bob")
    view = memory.scoped(user_id="alice")
    own = [view.add("Likes tea"), view.add("Likes coffee")]
    links = [(newer.id, older.id), (own[0].id, own[1].id), (own[0].id, older.id)]
    assert view.import_(_export_of_links(links)).links == 1
    assert memory.links(newer.id, user_id="bob") == []
    assert [(link.from_id, link.to_id) for link in view.links(own[0].id)] == [links[1]]


def _export_of_links(ends, kind="contradicts"):
    lines = [
        {"format": "mnemic", "version": 1, "agent_id": "default",
         "exported_at": "2026-05-01T12:00:00Z"},
        *(
            {"kind": "link", "from_id": str(of), "to_id": str(to), "type": kind,
             "strength": 1.0, "created_at": "2026-05-01T12:00:00Z"}
            for of, to in ends
        ),
        {"kind": "end", "memories": 0, "links": len(ends)},
    ]  # fmt: skip
    return io.StringIO("".join(json.dumps(line) + "\n" for line in lines))


def test_an_import_tells_listeners_in_the_event_loop_it_was_awaited_in():
    exported = io.StringIO()
    with Memory(":memory:", embedder=WordEmbedder()) as source:
        source.add("Lives in Oslo")
        source.export(exported)
    exported.seek(0)

    async def scenario():
        loops = []

        async def listener(_):
            loops.append(asyncio.get_running_loop())

        async with AsyncMemory(":memory:", embedder=WordEmbedder()) as memory:
            memory.events.subscribe(MemoryStoredEvent, listener)
            await memory.import_(exported)
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(scenario())


def test_a_cancelled_import_stores_no_further_batches(monkeypatch):
    monkeypatch.setattr(export, "BATCH", 2)
    exported = io.StringIO()
    with Memory(":memory:", embedder=WordEmbedder()) as source:
        source.add_many([f"text {number}" for number in range(40)])
        source.export(exported)
    exported.seek(0)

    async def scenario():
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncMemory(":memory:", embedder=WordEmbedder()) as memory:

            def progress(_):
                loop.call_soon_threadsafe(begun.set)
                time.sleep(0.01)

            importing = asyncio.create_task(memory.import_(exported, progress=progress))
            await begun.wait()
            importing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await importing
            await asyncio.sleep(0.3)
            assert await memory.count() < 40

    asyncio.run(scenario())


def test_whatever_is_stored_can_be_exported(memory):
    with contextlib.suppress(InvalidArgumentError):
        memory.add("x", metadata={"large": "y" * (65 * 1024 * 1024)})
    exported = io.StringIO()
    memory.export(exported)
    assert exported.getvalue().endswith("\n")


def test_an_import_counts_links_besides_those_of_supersession():
    exported = io.StringIO()
    with Memory(":memory:", embedder=None) as source:
        older = source.add("Lives in Oslo")
        newer = source.add("Lives in Bergen", supersedes=older.id)
        source.link(newer.id, source.add("Likes fjords").id)
        source.export(exported)
    exported.seek(0)
    with Memory(":memory:", embedder=None) as target:
        assert target.import_(exported).links == 1
        assert len(target.links(newer.id)) == 2


def test_a_link_of_supersession_comes_from_the_field_alone(memory):
    newer, older = memory.add("Moved to Bergen"), memory.add("Lives in Oslo")
    memory.import_(_export_of_links([(newer.id, older.id)], "supersedes"))
    assert memory.links(newer.id) == []


def test_an_import_that_is_refused_for_a_used_key_keeps_the_batches_before(memory, monkeypatch):
    monkeypatch.setattr(export, "BATCH", 1)
    exported = io.StringIO()
    with Memory(":memory:", embedder=None) as source:
        source.add("Lives in Oslo")
        source.add("Likes tea", idempotency_key="k")
        source.export(exported)
    exported.seek(0)
    memory.add("Likes coffee", idempotency_key="k")
    with pytest.raises(DuplicateEntryError):
        memory.import_(exported)
    assert memory.count() == 2
