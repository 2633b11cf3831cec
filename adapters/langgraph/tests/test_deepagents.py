"""deepagents' StoreBackend keeps files in the store as in the one in memory."""

import asyncio

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore

pytest.importorskip("deepagents")

from deepagents.backends import StoreBackend


def shown(answer):
    """Return an answer without the times of files."""
    if isinstance(answer, dict):
        times = {"created_at", "modified_at"}
        return {name: shown(value) for name, value in answer.items() if name not in times}
    if isinstance(answer, list):
        return [shown(each) for each in answer]
    return shown(vars(answer)) if hasattr(answer, "__dict__") else answer


def steps():
    """Yield the names of calls of a backend, with their arguments."""
    yield "write", "/notes/a.md", "one\ntwo\nthree\n"
    yield "write", "/notes/b.md", "two peanuts"
    yield "write", "/notes/deep/c.txt", "x" * 50_000
    yield "write", "/notes/a.md", "again"
    yield "read", "/notes/a.md"
    yield "read", "/notes/a.md", 1, 1
    yield "read", "/missing"
    yield "edit", "/notes/a.md", "two", "zwei"
    yield "edit", "/notes/a.md", "absent", "zwei"
    yield "read", "/notes/a.md"
    yield "ls", "/notes/"
    yield "glob", "*.md", "/notes"
    yield "grep", "peanuts"
    yield "upload_files", [("/up/load.bin", b"\x00\xff"), ("/up/text.txt", b"text")]
    yield "download_files", ["/up/load.bin", "/up/text.txt", "/missing"]
    yield "delete", "/notes/b.md"
    yield "ls", "/notes/"
    for n in range(250):
        yield "write", f"/many/{n:03d}.txt", f"file {n}"
    yield "ls", "/many/"


def played(store, user="ann"):
    backend = StoreBackend(namespace=lambda _: (user, "filesystem"), store=store)
    return [shown(getattr(backend, name)(*given)) for name, *given in steps()]


async def played_awaited(store):
    backend = StoreBackend(namespace=lambda _: ("ann", "filesystem"), store=store)
    return [shown(await getattr(backend, f"a{name}")(*given)) for name, *given in steps()]


def test_a_backend_answers_as_over_the_store_in_memory(tmp_path):
    expected = played(InMemoryStore())
    with MnemicStore.from_conn_string(str(tmp_path / "a.db")) as store:
        assert played(store) == expected
        assert played(store, "bob") == expected
        assert store.list_namespaces() == [("ann", "filesystem"), ("bob", "filesystem")]
    with MnemicStore.from_conn_string(str(tmp_path / "a.db")) as store:
        backend = StoreBackend(namespace=lambda _: ("ann", "filesystem"), store=store)
        assert len(backend.ls("/many/").entries) == 250


def test_an_awaited_backend_answers_as_over_the_store_in_memory(tmp_path):
    async def run():
        async with AsyncMnemicStore.from_conn_string(str(tmp_path / "a.db")) as store:
            return await played_awaited(store)

    assert asyncio.run(run()) == asyncio.run(played_awaited(InMemoryStore()))
