"""Texts, paths and operations of any kind are stored or refused, and lose no other file."""

import asyncio

import hostile
import pytest
from pydantic_ai_harness import memory as harness
from pydantic_ai_mnemic import MnemicMemoryStore

from mnemic import Memory

PATH = "alice/main/MEMORY.md"
BOUNDS = {"limit": 5, "max_files": 100, "max_chars": 1000, "max_file_chars": 1000}


def played(play):
    with Memory(":memory:") as memory:
        asyncio.run(play(MnemicMemoryStore(memory)))


async def written(store, path=PATH, text="tea", **fields):
    """Write a file beside another one, which stays as it is, and return the refusals."""
    await store.write("alice/main/other.md", "other", expected_version=None)
    with hostile.refusals(ValueError, TypeError) as refused:
        await store.write_with_metadata(
            path, text, expected_version=None, **{"metadata": None} | fields
        )
    assert (await store.read("alice/main/other.md", max_chars=10)).content == "other"
    if refused:
        assert await store.list_paths(limit=10) == ["alice/main/other.md"]
    return refused


@hostile.texts
def test_a_text(text):
    async def play(store):
        if not await written(store, text=text):
            assert (await store.read(PATH, max_chars=2**21)).content == text
        found = await store.search("alice/main/", text, **BOUNDS)
        assert isinstance(found, harness.MemorySearchResult)

    played(play)


@hostile.names
@pytest.mark.parametrize("path", ["{}", "alice/main/{}", "alice/{}/MEMORY.md"])
def test_a_path(path, name):
    async def play(store):
        given = path.format(name)
        refused = await written(store, given)
        for call in (store.read(given, max_chars=10), store.list_paths(given, limit=10)):
            with hostile.refusals(ValueError):
                assert await call or refused
        with hostile.refusals(ValueError):
            await store.search(given, "tea", **BOUNDS)

    played(play)


@hostile.names
def test_an_operation(name):
    async def play(store):
        operation = harness.MemoryOperation(name, name)
        with hostile.refusals():
            assert await store.get_operation(operation) is None
        if not await written(store, operation=operation):
            assert (await store.get_operation(operation)).replayed

    played(play)


@hostile.metadatas
def test_metadata(metadata):
    async def play(store):
        if not await written(store, metadata=metadata):
            assert (await store.read(PATH, max_chars=10)).metadata == metadata

    played(play)
