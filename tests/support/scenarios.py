"""What tests of LongTermMemory share: a clock, an entry, and running a scenario."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

from mnemic.long_term import LongTermMemory
from mnemic.model import MemoryEntry
from tests.support.embedders import WordEmbedder

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


def entry(content="the user prefers dark mode", **fields):
    given = {"id": uuid4(), "agent_id": "aide", "created_at": NOON, **fields}
    return MemoryEntry(content=content, **given)


def run(scenario, path=":memory:", **options):
    """Run a scenario against a memory that is open for it."""

    async def main():
        given = {"agent_id": "aide", "embedder": WordEmbedder(), **options}
        async with await LongTermMemory.open(path, **given) as memory:
            return await scenario(memory)

    return asyncio.run(main())


def contents(entries):
    return [entry.content for entry in entries]
