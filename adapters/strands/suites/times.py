"""Times beside the stores in the wheel: 2,000 memories, then some more, and searches.

Medians in milliseconds. mnemic embeds each text, and writes it to disk.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from strands.storage import LocalFileStorage
from strands.vended_memory_stores.file_memory_store import FileMemoryStore
from strands.vended_memory_stores.test_memory_store import TestMemoryStore
from strands_mnemic import MnemicMemoryStore

SIZE = 2_000
ROUNDS = 50
SUBJECTS = ("the garden", "my sister", "a train to Bergen", "the red car", "our kitchen", "a piano")
VERBS = ("asked about", "forgot", "talked of", "remembered", "sold", "painted", "saw", "liked")


def text(at):
    subject, number = SUBJECTS[at % 6], at * 7919 % 1000
    return f"On day {at} I {VERBS[at % 8]} {subject} and told number {number}"


async def each(call, rounds):
    times = []
    for turn in rounds:
        begun = time.perf_counter()
        await call(turn)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


async def measure(store):
    async def add(turn):
        await store.add(text(turn))

    async def search(turn):
        query = f"Who {VERBS[turn % 8]} number {turn * 7919 % 1000}?"
        assert await store.search(query, {"max_search_results": 5})

    figures = {"add, the first 100": await each(add, range(100))}
    for at in range(100, SIZE):
        await add(at)
    await search(0)
    figures["add"] = await each(add, range(SIZE, SIZE + ROUNDS))
    figures["search"] = await each(search, range(ROUNDS))
    return figures


async def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mnemic = MnemicMemoryStore(folder / "a.db", name="notes")
        stores = {
            "mnemic": mnemic,
            "TestMemory": TestMemoryStore(name="notes", path=str(folder / "b.json")),
            "FileMemory": FileMemoryStore(name="notes", storage=LocalFileStorage(str(folder))),
        }
        found = {kind: await measure(store) for kind, store in stores.items()}
        await mnemic.memory.close()
    print(f"{SIZE:,} memories, ms".ljust(20), *(kind.rjust(12) for kind in found))
    for figure in next(iter(found.values())):
        print(figure.ljust(20), *(f"{of[figure]:12.2f}" for of in found.values()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
