"""Scenarios of AsyncLongTermMemory whose memories are numbered and whose clock is theirs."""

from tests.support import doors, entries
from tests.support.clock import DAY, Clock
from tests.support.entries import uid

RETENTION = 90 * DAY


def entry(number, content="tea at noon", **fields):
    return entries.entry(content, id=uid(number), **fields)


def run(scenario, path=":memory:", **options):
    """Run a scenario with a memory and its clock."""

    clock = Clock()
    doors.run(lambda memory: scenario(memory, clock), path, clock=clock, **options)


async def numbers_found(memory, query="tea", **scope):
    return [hit.entry.id.int for hit in await memory.search_semantic(query, 10, 0, **scope)]


def with_memory_and_clock(**options):
    """Make a test of a scenario with a memory and its clock."""
    return doors.made_with(run, ("memory", "clock"), **options)
