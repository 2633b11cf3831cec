"""Small memories with engines over them, through both doors."""

import asyncio
from contextlib import asynccontextmanager

from mnemic import AsyncMemory
from mnemic.hyde import AsyncHydeEngine, HydeConfig
from tests.support.clock import Clock
from tests.support.doors import made_with
from tests.support.hyde_twin import LineModel, TableEmbedder

WINDOW = ["user: which port?"]
AXES = {
    "east": (1, 0, 0, 0),
    "north": (0, 1, 0, 0),
    "up": (0, 0, 1, 0),
    "later": (0, 0, 0, 1),
    "north-east": (0.8, 0.6, 0, 0),
    "half east": (0.6, 0, 0, 0.8),
    "weakly east": (0.3, 0, 0, 0.9539392),
}
"""Texts with unit vectors, of which some point the same way in part."""


class World:
    """A memory, its embedder, a language model and an engine over them."""

    def __init__(self, memory, embedder, model, engine, clock):
        self.memory, self.embedder, self.model = memory, embedder, model
        self.engine, self.clock = engine, clock
        self.ids = {}

    async def add(self, *contents, **fields):
        """Store memories by their texts; return their ids."""
        for content in contents:
            stored = await self.memory.add(content, **fields)
            self.ids[content] = stored.id
        return [self.ids[content] for content in contents]

    async def ask(self, turn="turn-1", window=WINDOW):
        """Return the contents that a turn gets, in order."""
        return [one.content for one in await self.engine.retrieve(turn, window)]

    async def until(self, holds, seconds=20):
        """Wait until a condition, or a coroutine function's result, holds."""
        async with asyncio.timeout(seconds):
            while True:
                result = holds()
                if await result if asyncio.iscoroutine(result) else result:
                    return
                await asyncio.sleep(0.005)


@asynccontextmanager
async def world(*contents, lines=("east",), model=None, table=None, started=True, **options):
    """Open a memory with some memories, and an engine that is ready.

    Args:
        contents: Texts of memories; those of the axes have the axes' vectors.
        lines: Answer of the language model.
        model: The language model, in place of one that answers with the lines.
        table: Further vectors by text.
        started: Whether the engine is started, and waited for.
        options: `path`, `engine_options`, `memory_options`, and options of the configuration.
    """
    embedder = options.pop("embedder", None) or TableEmbedder({**AXES, **(table or {})})
    model = LineModel(lines) if model is None else model
    path, clock = options.pop("path", ":memory:"), options.pop("clock", None) or Clock()
    given = {"embedder": embedder, "clock": clock, **options.pop("memory_options", {})}
    of_engine = options.pop("engine_options", {})
    async with AsyncMemory(path, **given) as memory:
        engine = AsyncHydeEngine(memory, embedder, model, HydeConfig(**options), **of_engine)
        made = World(memory, embedder, model, engine, clock)
        await made.add(*contents)
        try:
            if started:
                engine.start()
                await engine.ready(20)
            yield made
        finally:
            await engine.aclose()


def run(scenario, *contents, **options):
    """Run a coroutine function with a world, to its end; nothing may take a minute."""

    async def main():
        async with asyncio.timeout(60), world(*contents, **options) as made:
            return await scenario(made)

    return asyncio.run(main())


def in_world(*contents, **options):
    """Make a test of a scenario with a world."""
    return made_with(run, ("w",), *contents, **options)
