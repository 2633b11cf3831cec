"""Random operations on the adapter and on the harness's own store, which have to agree."""

import asyncio
import random

import pytest
from pydantic_ai_harness import memory as harness
from pydantic_ai_mnemic import MnemicMemoryStore

from mnemic import Memory

FOLDERS = ("", "alice/main/", "bob/main/", "alice/main/deeper/")
NAMES = ("MEMORY.md", "notes.md", "b-1.txt")
TEXTS = ("", " \n", "likes tea", "Line\r\nline", "ünïcode 😀", "x" * 300)
METADATA = (None, {}, {"by": "agent"}, {"by": "user", "why": "é"})


class Pair:
    """Both stores, and the versions that each calls by another name."""

    def __init__(self, memory, seed):
        self.stores = harness.InMemoryStore(), MnemicMemoryStore(memory)
        self.random = random.Random(seed)  # noqa: S311 - repeatable
        self.versions = {}
        self.known = []
        self.operations = []

    async def both(self, call):
        results = []
        for at, store in enumerate(self.stores):
            try:
                results.append(await call(store, at))
            except (ValueError, TypeError, RuntimeError) as error:
                results.append(type(error))
        return results

    def same(self, theirs, ours):
        """Check that two results are alike, and remember which versions belong together."""
        if hasattr(theirs, "version") and theirs.version is not None:
            if theirs.version not in self.versions:
                assert ours.version not in self.versions.values()
                self.versions[theirs.version] = ours.version
            assert self.versions[theirs.version] == ours.version
            assert type(theirs) is type(ours)
            for name in ("content", "truncated", "operation_id", "metadata", "replayed", "existed"):
                assert getattr(theirs, name, None) == getattr(ours, name, None), name
        else:
            assert theirs == ours

    def path(self):
        return self.random.choice(FOLDERS) + self.random.choice(NAMES)

    async def expected(self, path):
        """Return versions that are often the present ones, in the words of both stores."""
        current = await self.stores[0].read(path, max_chars=1000)
        choice = self.random.random()
        if choice < 0.7:
            version = current and current.version
        elif choice < 0.85 or not self.versions:
            version = None
        else:
            version = self.random.choice(list(self.versions))
        if current is not None and version == current.version:  # files get versions by being read
            self.same(current, await self.stores[1].read(path, max_chars=1000))
        return version, self.versions.get(version)

    def operation(self):
        choice = self.random.random()
        if choice < 0.4:
            return None
        if choice < 0.55 and self.operations:
            return self.random.choice(self.operations[-20:])
        if choice < 0.6 and self.operations:
            return harness.MemoryOperation(self.random.choice(self.operations[-20:]).id, "another")
        self.operations.append(harness.MemoryOperation(f"op-{len(self.operations)}", "arguments"))
        return self.operations[-1]

    async def step(self):
        kind = self.random.choice(
            ("read", "write", "write", "metadata", "metadata", "delete", "list", "operation", "bad")
        )
        path, operation = self.path(), self.operation()
        if kind == "read":
            size = self.random.choice((1, 5, 1000))
            results = await self.both(lambda store, _: store.read(path, max_chars=size))
        elif kind == "list":
            prefix = self.random.choice((*FOLDERS, "alice", "bob/main/b", "zoe/"))
            limit = self.random.choice((1, 3, 1001))
            results = await self.both(lambda store, _: store.list_paths(prefix, limit=limit))
        elif kind == "operation":
            wanted = operation or harness.MemoryOperation("never", "x")
            results = await self.both(lambda store, _: store.get_operation(wanted))
        elif kind == "bad":
            bad = self.random.choice(("", "a//b", "../x", "a/./b", "a b", "/x", "é", "a" * 201))
            results = await self.both(lambda store, _: store.read(bad, max_chars=5))
        else:
            versions = await self.expected(path)
            text, facts = self.random.choice(TEXTS), self.random.choice(METADATA)

            def call(store, at):
                options = {"expected_version": versions[at], "operation": operation}
                if kind == "write":
                    return store.write(path, text, **options)
                if kind == "metadata":
                    return store.write_with_metadata(path, text, metadata=facts, **options)
                return store.delete(path, **options)

            results = await self.both(call)
        self.same(*results)


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_random_operations_agree_with_the_harness_s_store(seed):
    async def run(memory):
        pair = Pair(memory, seed)
        for _ in range(1000):
            await pair.step()
        assert len(pair.versions) > 200
        assert len(pair.operations) > 200

    with Memory(":memory:", embedder=None) as memory:
        asyncio.run(run(memory))
