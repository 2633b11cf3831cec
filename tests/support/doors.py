"""Open memories for tests."""

import asyncio

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.memory import Memory
from tests.support.embedders import WordEmbedder


def opened(path=":memory:", agent_id="default", **options):
    """Open a memory that embeds by words."""
    return Memory(path, agent_id, **{"embedder": WordEmbedder(), **options})


def run(scenario, path=":memory:", **options):
    """Run a scenario with an AsyncLongTermMemory of the agent `aide`, which is open for it."""

    async def main():
        given = {"agent_id": "aide", "embedder": WordEmbedder(), **options}
        async with AsyncLongTermMemory(path, **given) as memory:
            return await scenario(memory)

    return asyncio.run(main())
