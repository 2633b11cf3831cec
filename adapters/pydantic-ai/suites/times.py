"""The store over a memory, beside those of the harness in memory and in SQLite; medians in ms.

There are 100 files of 2,000 characters in one directory. Each write is an operation of its own.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from pydantic_ai_harness import memory as harness
from pydantic_ai_mnemic import MnemicMemoryStore

from mnemic import AsyncMemory

FILES = 100
BOUNDS = {"limit": 10, "max_files": 1000, "max_chars": 4000, "max_file_chars": 65_536}
TEXT = "Notes about a project, its people and what they like. " * 37


def path(number):
    return f"alice/main/file{number}.md"


async def each(call):
    taken = []
    for number in range(FILES):
        begun = time.perf_counter()
        await call(number)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


async def measured(store):
    versions = {}

    def operation(kind, number):
        return harness.MemoryOperation(f"{kind}-{number}", "f")

    async def write(number):
        made = await store.write(
            path(number),
            f"{number} {TEXT}",
            expected_version=versions.get(number),
            operation=operation(len(versions) if number in versions else "new", number),
        )
        versions[number] = made.version

    figures = {"write (new)": await each(write), "write (again)": await each(write)}
    figures["read"] = await each(lambda number: store.read(path(number), max_chars=65_536))
    figures["list_paths"] = await each(lambda _: store.list_paths("alice/main/", limit=1001))
    figures["get_operation"] = await each(
        lambda number: store.get_operation(operation("new", number))
    )
    figures["search"] = await each(
        lambda number: store.search("alice/main/", f"people like {number}", **BOUNDS)
    )
    figures["delete"] = await each(
        lambda number: store.delete(path(number), expected_version=versions[number])
    )
    assert await store.list_paths(limit=10) == []
    return figures


async def main():
    with tempfile.TemporaryDirectory() as folder:
        kinds = {}
        for name, options in (("mnemic, MiniLM", {}), ("mnemic, words", {"embedder": None})):
            async with AsyncMemory(Path(folder) / f"{len(kinds)}.db", **options) as memory:
                kinds[name] = await measured(MnemicMemoryStore(memory))
        kinds["SQLite"] = await measured(harness.SqliteMemoryStore(database=f"{folder}/own.db"))
        kinds["in memory"] = await measured(harness.InMemoryStore())
    print("ms".ljust(16), *(name.rjust(16) for name in kinds))
    for figure in kinds["SQLite"]:
        print(figure.ljust(16), *(f"{found[figure]:16.3f}" for found in kinds.values()))


if __name__ == "__main__":
    asyncio.run(main())
