"""What tests of recall share: texts that name their similarity, and a scripted judge."""

import asyncio
import math
import re
from uuid import UUID

import numpy as np

from mnemic.contradictions import Judgement
from mnemic.memory import Memory
from mnemic.model import MemoryRetrieverOptions
from mnemic.recall import AsyncMemoryRetriever
from tests.support.clock import DAY, NOON, Clock
from tests.support.doors import made_with
from tests.support.doors import run as run_memory
from tests.support.entries import entry

RECENCY, FREQUENCY, IMPORTANCE = 0.25 / 0.70, 0.20 / 0.70, 0.25 / 0.70
"""The documented weights of what does not depend on a query, scaled to add up to 1."""


class NamedSimilarities:
    """An embedder for which "tea ~0.8" has the cosine 0.8 with every text that names none."""

    model, dimensions, max_tokens = "named", 2, None

    def __init__(self, floor=None):
        self.similarity_floor = floor
        self.texts = []

    def embed(self, texts):
        self.texts += texts
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    def vector(self, text):
        named = re.search(r"~(-?[\d.]+)", text)
        cosine = float(named[1]) if named else 1.0
        return cosine, math.sqrt(1 - cosine**2)


class ScriptedJudge:
    """Gives what a test says of each text, and remembers what it was asked."""

    def __init__(self, confidences, reason="as the script says"):
        self.confidences, self.reason, self.asked = confidences, reason, []

    async def judge(self, statement, others):
        await asyncio.sleep(0)  # as one that asks a language model
        self.asked.append((statement, list(others)))
        return [Judgement(self.confidences.get(text, 0.0), self.reason) for text in others]


def run(scenario, path=":memory:", *, options=None, judge=None, log_queries=True, **given):
    """Run a scenario against a memory and its retriever; its clock is `given["clock"]`."""
    given = {"clock": Clock(), "embedder": NamedSimilarities(), **given}

    async def with_retriever(memory):
        retriever = AsyncMemoryRetriever(memory, options, judge=judge, log_queries=log_queries)
        return await scenario(memory, retriever)

    return run_memory(with_retriever, path, **given)


def recalling(**options):
    """Make a test of a scenario with a memory and its retriever."""
    return made_with(run, ("memory", "retriever"), **options)


def mine(content, **fields):
    """Return a memory of the user u."""
    return entry(content, **{"user_id": "u", **fields})


def texts(result):
    return [scored.memory.content for scored in result]


def scores(result):
    return [scored.score for scored in result]


async def counts(memory, user_id="u"):
    """Return how often each memory was accessed, as the store tells."""
    found = await memory.search_by_filter({}, user_id=user_id)
    return {each.content: each.access_count for each in found}


def salience(memory, now=NOON):
    """Return what a memory is worth whatever is asked, by the documented weights."""
    last = memory.last_accessed_at or memory.created_at
    recency = 0.5 ** (max(0.0, (now - last) / DAY) / 7)
    frequency = min(1.0, math.log(memory.access_count + 1) / math.log(101))
    return RECENCY * recency + FREQUENCY * frequency + IMPORTANCE * memory.importance


STATUSES = ("active", "archived", "superseded")
OWN_ORDERS = ("recent", "important", "frequent")
MODES = ("relevant", *OWN_ORDERS)
UNTRACKED = MemoryRetrieverOptions(track_access=False)


def numbered(number):
    return UUID(int=number)


def ids(result):
    return [scored.memory.id.int for scored in result]


def opened(path=":memory:", **options):
    return Memory(path, "aide", **{"embedder": NamedSimilarities(), "clock": Clock(), **options})


def asked(memory, method, *arguments, options=UNTRACKED, **named):
    """Ask a retriever of a memory that is used with plain calls."""
    retriever = AsyncMemoryRetriever(memory, options)
    return asyncio.run(getattr(retriever, method)(*arguments, **named))


async def by_every_method(retriever, **fields):
    """Return what every way to recall gives, by name; links lead from the memory "start"."""
    named = {"user_id": "u", **fields}
    found = {mode: await retriever.recall("q", **named, mode=mode) for mode in MODES}
    found["temporal"] = await retriever.recall_temporal(NOON - 99 * DAY, NOON + DAY, **named)
    found["topic"] = await retriever.recall_temporal(
        NOON - 99 * DAY, NOON + DAY, topic_filter="q", **named
    )
    user_id = named.pop("user_id")
    found["type"] = await retriever.recall_by_type("fact", user_id, **named)
    return found
