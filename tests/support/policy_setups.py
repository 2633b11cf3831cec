"""Memories, embedders and doors for tests of the retrieval policy."""

import asyncio
import re
import time

import numpy as np

from mnemic.memory import AsyncMemory, Memory
from mnemic.policy import (
    INTERLEAVED,
    AsyncRetrievalPolicy,
    RetrievalConfig,
    RetrievalPolicy,
    RetrievalRequest,
)
from tests.support.clock import NOON, SECOND, Clock

SCORE = re.compile(r"score (\d\.\d+)")


class ScoredEmbedder:
    """Gives a text with `score 0.7` in it a similarity of .7 to any text without a score."""

    def __init__(self, similarity_floor=None):
        self.model, self.dimensions, self.max_tokens = "scored", 2, None
        self.similarity_floor = similarity_floor
        self.texts = []
        self.delay, self.failure = 0.0, None

    def embed(self, texts):
        self.texts += texts
        if self.delay:
            time.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    @staticmethod
    def vector(text):
        found = SCORE.search(text)
        score = float(found[1]) if found else 1.0
        return [score, (1 - score * score) ** 0.5]


def asked(message="what about tea", user="alice", session="s-1", **fields):
    """Return a request."""
    return RetrievalRequest(message=message, user_id=user, session_id=session, **fields)


class PolicySetup:
    """A memory, its clock and its embedder, with the policy of one door.

    A scenario is a generator: it yields requests, whose payloads come back, and functions of the
    memory, whose results come back. An error is raised where it yielded.
    """

    def __init__(self, *, is_async, entries=(), floor=None, **options):
        self.clock = Clock()
        self.embedder = ScoredEmbedder(floor)
        self.is_async = is_async
        self.entries = list(entries)
        config = {key: options.pop(key) for key in [*options] if key in FIELDS}
        self.config = INTERLEAVED.overridden(**{"search_type": "semantic", **config})
        self.options = options

    def run(self, scenario):
        """Run a scenario, which gets the setup."""
        if self.is_async:
            asyncio.run(self._awaited(scenario(self)))
        else:
            self._plain(scenario(self))

    def ask(self, request):
        """Return the payload of a request."""
        payloads = []

        def steps(_):
            payloads.append((yield request))

        self.run(steps)
        return payloads[0]

    def _given(self):
        return {"embedder": self.embedder, "clock": self.clock}

    def _plain(self, steps):
        with Memory(":memory:", **self._given()) as memory:
            for number, (content, fields) in enumerate(self.entries):
                memory.add(content, **self._fields(number, fields))
            policy = self.policy = RetrievalPolicy(memory, self.config, **self.options)
            step = next(steps, None)
            while step is not None:
                try:
                    found = step(memory) if callable(step) else policy.run(step)
                except Exception as error:  # noqa: BLE001 - the scenario's to judge
                    step = thrown(steps, error)
                else:
                    step = sent(steps, found)

    async def _awaited(self, steps):
        async with AsyncMemory(":memory:", **self._given()) as memory:
            for number, (content, fields) in enumerate(self.entries):
                await memory.add(content, **self._fields(number, fields))
            policy = self.policy = AsyncRetrievalPolicy(memory, self.config, **self.options)
            step = next(steps, None)
            while step is not None:
                try:
                    found = await (step(memory) if callable(step) else policy.run(step))
                except Exception as error:  # noqa: BLE001 - the scenario's to judge
                    step = thrown(steps, error)
                else:
                    step = sent(steps, found)

    @staticmethod
    def _fields(number, fields):
        given = {"user_id": "alice", "session_id": "s-1", "type": "fact"}
        return {"created_at": NOON - (1000 - number) * SECOND, **given, **fields}


def thrown(steps, error):
    """Raise an error in a scenario; return its next step, None at its end."""
    try:
        return steps.throw(error)
    except StopIteration:
        return None


def sent(steps, found):
    """Send a result to a scenario; return its next step, None at its end."""
    try:
        return steps.send(found)
    except StopIteration:
        return None


FIELDS = set(RetrievalConfig.__struct_fields__)
