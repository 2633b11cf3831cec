"""What tests of the retrieval service share: vectors by hand, memories at a time, a service."""

import asyncio
import math
from uuid import uuid4

import numpy as np

from mnemic import AsyncMemory, MemoryEntry
from mnemic.retrieval import RetrievalService
from tests.support.clock import DAY, NOON, Clock


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
        async with await AsyncMemory.open(path, "aide", **given) as opened:
            service = RetrievalService(opened, track_access=track_access, **options)
            return await asyncio.wait_for(scenario(opened, service), 60)

    return asyncio.run(main())


def found(result):
    """Return the contents of an answer, in its order."""
    return [ranked.entry.content for ranked in result]
