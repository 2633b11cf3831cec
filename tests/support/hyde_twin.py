"""A naive twin of the HyDE engine over plain lists, and the fakes that both are fed with.

It shares no code with the package: cosines are summed exactly, and every path of every length is
walked. Order and limits are those of the documents with their rulings.
"""

import asyncio
import itertools
import math
import threading
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import numpy as np

from mnemic.model import LinkType
from tests.support.clock import NOON

DECAYS = {
    LinkType.REFINES: 0.9,
    LinkType.CONTRADICTS: 0.9,
    LinkType.SUPERSEDES: 0.0,
    LinkType.RELATED: 0.7,
    LinkType.DERIVED_FROM: 0.7,
    LinkType.REINFORCES: 0.7,
}
"""Shares of a score that a hop of each type leaves."""


# Fakes


class LineModel:
    """A language model that answers with given lines, fails, waits, or never answers.

    Args:
        lines: Lines of its answer.
        text: The answer, whatever its type, in place of the lines.
        failure: An error that it raises.
        hangs: Whether it never answers.
        gate: An event without which it does not answer; None answers at once.
    """

    model = "lines"

    def __init__(self, lines=(), *, text=None, failure=None, hangs=False, gate=None):
        self.lines, self.failure, self.hangs, self.gate = list(lines), failure, hangs, gate
        self.text = text
        self.calls = []
        self.cancelled = 0
        self.entered = Signal()

    @property
    def answer(self):
        """The next answer."""
        return "\n".join(self.lines) if self.lines else self.text

    @property
    def is_shut(self):
        """Whether it does not answer yet."""
        return self.hangs or (self.gate is not None and not self.gate.is_set())

    async def complete(self, prompt, *, system=None):
        self.calls.append((prompt, system))
        self.entered.set()
        try:
            while self.is_shut:  # noqa: ASYNC110 - another thread may open it
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return self.answer


class PlainLineModel(LineModel):
    """A language model whose `complete` is no coroutine."""

    def complete(self, prompt, *, system=None):
        self.calls.append((prompt, system))
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(60)
        if self.failure is not None:
            raise self.failure
        return self.answer


class Signal(threading.Event):
    """An event between threads and tasks of any event loop."""

    async def wait(self, seconds=30):
        async with asyncio.timeout(seconds):
            while not self.is_set():  # noqa: ASYNC110 - another thread may set it
                await asyncio.sleep(0.001)


class TableEmbedder:
    """An embedder with the vectors of a table; those of other texts follow from the texts.

    Attributes:
        table: Vectors by text.
        calls: The texts of each call.
        failure: An error that it raises from now on, or None.
        result: What it returns in place of vectors, made from their number; None for the vectors.
        gate: An event without which it does not answer; None answers at once.
    """

    max_tokens = None
    similarity_floor = None
    join_calls = False

    def __init__(self, table=None, *, dimensions=4, model="table"):
        self.table = table if table is not None else {}
        self.dimensions, self.model = dimensions, model
        self.calls, self.failure, self.result, self.gate = [], None, None, None
        self.entered = Signal()

    def vector(self, text):
        """Return the vector of a text as floats."""
        if text in self.table:
            return list(self.table[text])
        seed = np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace")))
        return seed.normal(size=self.dimensions).tolist()

    def embed(self, texts):
        self.calls.append(list(texts))
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(60)
        if self.failure is not None:
            raise self.failure
        if self.result is not None:
            return self.result(len(texts))
        rows = [self.vector(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)

    @property
    def texts(self):
        """All texts that it has embedded."""
        return [text for call in self.calls for text in call]


# Ranking


@dataclass
class Kept:
    """A memory of the twin."""

    id: UUID
    vectors: list
    user: str | None = None
    updated_at: object = NOON
    supersedes: UUID | None = None
    is_superseded: bool = False
    is_archived: bool = False
    is_present: bool = True
    is_erased: bool = False


class Found(NamedTuple):
    """A result: by search if there is no relation, else by a hop."""

    id: UUID
    score: float
    relation: LinkType | None = None
    via: UUID | None = None


class Options(NamedTuple):
    """The options that a ranking follows from."""

    top_k: int = 10
    depth: int = 1
    min_similarity: float = 0.0
    drop_off: float | None = None
    max_neighbours: int = 10
    follow_incoming: bool = False


@dataclass
class Twin:
    """All memories of one agent, in dicts."""

    memories: dict = field(default_factory=dict)
    links: dict = field(default_factory=dict)
    """(from, to, type) to strength"""

    def add(self, kept):
        if kept.supersedes is not None:
            self.memories[kept.supersedes].is_superseded = True
        self.memories[kept.id] = kept

    def unlink(self, id_):
        """Drop the links from and to a memory that is deleted permanently."""
        self.links = {
            (start, end, kind): strength
            for (start, end, kind), strength in self.links.items()
            if id_ not in (start, end)
        }

    def is_head(self, kept, user):
        return (
            kept.is_present and kept.user == user and not (kept.is_superseded or kept.is_archived)
        )

    def found(self, queries, user, options):
        """Return what the search finds: best cosine, floor, order, cut, drop-off.

        The vectors of a superseded memory count for its head.
        """
        best = {}
        for kept in self.memories.values():
            head = self.head_of(kept.id, user) if kept.is_present else None
            for query, vector in itertools.product(queries, kept.vectors if head else ()):
                best[head] = max(best.get(head, -1.0), cosine(query, vector))
        scored = [(score, self.memories[head]) for head, score in best.items()]
        kept = [(score, one) for score, one in scored if score >= options.min_similarity]
        kept.sort(key=lambda pair: (-pair[0], -pair[1].updated_at.timestamp(), pair[1].id))
        kept = kept[: options.top_k]
        if options.drop_off is not None and kept:
            least = max(kept[0][0], 0.0) - options.drop_off
            kept = [pair for pair in kept if max(pair[0], 0.0) >= least]
        return [Found(one.id, max(score, 0.0)) for score, one in kept]

    def head_of(self, id_, user, seen=frozenset()):
        """Return the head that stands for a memory: itself, or the newest that replaced it."""
        kept = self.memories.get(id_)
        if kept is None or kept.is_erased or kept.user != user or id_ in seen:
            return None
        if self.is_head(kept, user):
            return id_
        if not kept.is_superseded:
            return None
        heads = {
            self.head_of(one.id, user, seen | {id_})
            for one in self.memories.values()
            if one.supersedes == id_
        } - {None}
        by_age = sorted(heads, key=lambda h: (-self.memories[h].updated_at.timestamp(), h))
        return by_age[0] if by_age else None

    def steps(self, id_, user, options):
        """Return the memories that a hop leads to: head, type, factor."""
        for (start, end, kind), strength in self.links.items():
            heads = [self.head_of(end, user)] if start == id_ else []
            if end == id_ and options.follow_incoming and self.is_head(self.memories[start], user):
                heads.append(start)  # links from an old version are no longer followed
            for head in heads:
                if head is not None and head != id_ and DECAYS[kind] * strength > 0:
                    yield head, kind, DECAYS[kind] * strength

    def neighbours(self, starts, user, options):
        """Return the best path to each memory that is no start, over every path."""
        begun = {start.id for start in starts}
        best, frontier = {}, [(start.id, start.score) for start in starts]
        for _ in range(options.depth):
            reached = [
                Found(head, score * factor, kind, id_)
                for id_, score in frontier
                for head, kind, factor in self.steps(id_, user, options)
                if head not in begun
            ]
            for one in reached:
                if one.id not in best or one.score > best[one.id].score:
                    best[one.id] = one
            frontier = [(one.id, one.score) for one in reached]
        ordered = sorted(best.values(), key=lambda one: (-one.score, one.id))
        return ordered[: options.max_neighbours]

    def retrieve(self, queries, user=None, options=None):
        """Return all results, the best first."""
        options = options or Options()
        found = self.found(queries, user, options)
        together = [*found, *self.neighbours(found, user, options)]
        return sorted(together, key=lambda one: -one.score)


def cosine(left, right):
    """Return the cosine of two lists, summed exactly; 0 if one has no direction."""
    lengths = math.hypot(*left) * math.hypot(*right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0
