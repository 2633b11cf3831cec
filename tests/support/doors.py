"""Open memories for tests."""

import asyncio
from functools import wraps
from inspect import signature

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


def made_with(run, names, *values, **options):
    """Return a decorator that makes a test of a scenario.

    `run` calls it with what it opens, which have these names; all other arguments are fixtures.
    """

    def decorate(scenario):
        arguments = signature(scenario)
        fixtures = [each for each in arguments.parameters.values() if each.name not in names]

        @wraps(scenario)
        def test(**given):
            def named(*opened):
                own = dict(zip(names, opened, strict=True))
                wanted = own.keys() & arguments.parameters
                return scenario(**given, **{name: own[name] for name in wanted})

            run(named, *values, **options)

        test.__signature__ = arguments.replace(parameters=fixtures)
        return test

    return decorate


def with_memory(**options):
    """Make a test of a scenario with an AsyncLongTermMemory."""
    return made_with(run, ("memory",), **options)
