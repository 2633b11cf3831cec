"""The session over a memory, beside the SDK's own in SQLite. Both are files; medians in ms.

A call awaits one operation on a session that has 200 items; messages have 60 characters.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from agents import SQLiteSession
from openai_agents_mnemic import MnemicSession

from mnemic import AsyncMemory

ITEMS = 200
ROUNDS = 100
TEXT = "I would rather take the night train to Oslo than fly, thanks"


def messages(count):
    return [{"role": "user", "content": f"{TEXT} {number}"} for number in range(count)]


async def each(call):
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


async def measured(session):
    await session.add_items(messages(ITEMS))
    figures = {"get_items(20)": await each(lambda: session.get_items(20))}
    figures["get_items()"] = await each(session.get_items)
    assert len(await session.get_items()) == ITEMS
    figures["add_items of 1"] = await each(lambda: session.add_items(messages(1)))
    figures["add_items of 5"] = await each(lambda: session.add_items(messages(5)))
    figures["pop_item"] = await each(session.pop_item)
    return figures


async def main():
    with tempfile.TemporaryDirectory() as folder:
        kinds = {}
        for name, options in (("mnemic, MiniLM", {}), ("mnemic, words", {"embedder": None})):
            async with AsyncMemory(Path(folder) / f"{len(kinds)}.db", **options) as memory:
                kinds[name] = await measured(MnemicSession("s", memory, user_id="alice"))
        own = SQLiteSession("s", Path(folder) / "own.db")
        kinds["SQLiteSession"] = await measured(own)
        own.close()
    print("ms".ljust(16), *(name.rjust(16) for name in kinds))
    for figure in kinds["SQLiteSession"]:
        print(figure.ljust(16), *(f"{found[figure]:16.3f}" for found in kinds.values()))


if __name__ == "__main__":
    asyncio.run(main())
