"""What tests of the retrieval service share: vectors by hand, memories at a time, a service."""

import asyncio
import math
import threading
from uuid import uuid4

import numpy as np

from mnemic import AsyncMemory, MemoryEntry
from mnemic.model import ExpandedQuery, MemoryQuery
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from mnemic.retrieval import AsyncRetrievalService
from tests.support.clock import DAY, NOON, Clock
from tests.support.doors import made_with
from tests.support.embedders import WordEmbedder

QUERY = MemoryQuery.semantic("query")
EVERYTHING = MemoryQuery.filtered({})
EVENTS = (MemoryRetrievalCompletedEvent, ContextAugmentedEvent, QueryExpandedEvent)


class FixedEmbedder:
    """Gives each text the vector that was written down for it; what is unknown has none of them.

    The first axis is the query's, the second the context's, the third for the rest.
    """

    def __init__(self, vectors=None, floor=None):
        self.model, self.dimensions, self.max_tokens = "fixed", 4, None
        self.similarity_floor = floor
        self.vectors = {"query": (1, 0, 0, 0), "context": (0, 1, 0, 0), **(vectors or {})}
        self.texts = []

    def embed(self, texts):
        self.texts.extend(texts)
        known = [self.vectors.get(text, (0, 0, 0, 1)) for text in texts]
        return np.array(known, dtype=np.float32).reshape(-1, self.dimensions)

    def near(self, text, query=0.0, context=0.0):
        """Write down the vector of a text by its cosines, and return the text."""
        self.vectors[text] = (query, context, math.sqrt(max(0.0, 1 - query**2 - context**2)), 0)
        return text


def record(content, *, days=0.0, user=None, **fields):
    """Return a memory of so many days ago."""
    given = {"id": uuid4(), "agent_id": "aide", "created_at": NOON - days * DAY, **fields}
    return MemoryEntry(content=content, user_id=user, **given)


def serve(scenario, *, path=":memory:", memory=None, track_access=False, **options):
    """Run a scenario with an open memory and a retrieval service of it.

    Answers leave scores as they are unless accesses are to be counted.
    """

    async def main():
        given = {"embedder": FixedEmbedder(), "clock": Clock(), **(memory or {})}
        async with AsyncMemory(path, "aide", **given) as opened:
            service = AsyncRetrievalService(opened, track_access=track_access, **options)
            return await asyncio.wait_for(scenario(opened, service), 60)

    return asyncio.run(main())


def served(**options):
    """Make a test of a scenario with an open memory and a retrieval service of it."""
    return made_with(serve, ("memory", "service"), **options)


def found(result):
    """Return the contents of an answer, in its order."""
    return [ranked.entry.content for ranked in result]


def words(**options):
    return {"embedder": WordEmbedder(dimensions=512), **options}


async def store_near(memory, *similarities, **fields):
    """Store memories named by their similarity with the query."""
    near = memory.embedder.near
    texts = [near(f"near {similarity}", similarity) for similarity in similarities]
    return await memory.add_many([record(text, **fields) for text in texts])


class Adding:
    """An expander that always adds the same terms."""

    def __init__(self, *terms, confidence=0.9):
        self.terms, self.confidence = terms, confidence

    async def expand(self, query, ask):  # noqa: ARG002 - the contract
        return ExpandedQuery(
            original=query,
            expanded=" ".join([query, *self.terms]),
            added_terms=self.terms,
            confidence=self.confidence,
        )


class AskingFirst(Adding):
    """Adds its terms after it has asked for related texts."""

    async def expand(self, query, ask):
        await ask(query)
        return await super().expand(query, ask)


async def counts(memory, stored):
    """Return how often each was accessed."""
    page = await memory.list(include_deleted=True)
    count_of = {one.id: one.access_count for one in page}
    return [count_of[one.id] for one in stored]


class Gated(FixedEmbedder):
    """An embedder that lets the query wait."""

    def __init__(self):
        super().__init__()
        self.asked, self.gate = threading.Event(), threading.Event()
        self.queries, self.error = 0, None

    def embed(self, texts):
        if "query" in texts:
            self.queries += 1
            self.asked.set()
            assert self.gate.wait(30)
            if self.error is not None:
                raise self.error
        return super().embed(texts)


async def until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came about")


def heard_by(memory):
    heard = []
    for kind in EVENTS:
        memory.events.subscribe(kind, heard.append)
    return heard


async def three_near(memory, **fields):
    """Store memories of similarity .9, .7 and .5 that are alike but for that."""
    near = memory.embedder.near
    texts = [near("middle", 0.7), near("nearest", 0.9), near("farthest", 0.5)]
    return await memory.add_many([record(text, **fields) for text in texts])
