"""Memories whose vectors are at hand, so that no embedder is measured, and what a process holds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np

from benches.support.datasets import DIM, HELD_OUT, queries_of, real_texts, rows_of
from mnemic import Memory, MemoryEntry
from mnemic.model.ids import UuidFactory

MODEL = "stored"
AGENT = "default"
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
USERS = 10
TURNS = 20
MOST_WORDS = 12
AT_ONCE = 5_000

new_id = UuidFactory()


class StoredVectors:
    """Random unit vectors, by the number that ends a text."""

    model, dimensions = MODEL, DIM

    def __init__(self, count, seed=1):
        vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed(self, texts):
        rows = [int(text.rsplit(" ", 1)[1]) % len(self.vectors) for text in texts]
        return self.vectors[rows]

    def entry(self, number):
        """Return a memory with its vector."""
        return entry_of(number, f"memory {number}", self.vectors[number % len(self.vectors)])

    def entries(self, count, first=0):
        return [self.entry(number) for number in range(first, first + count)]


class OneVector:
    """Gives every text the same vector."""

    model, max_tokens, similarity_floor = MODEL, 256, 0.0
    score_floors: ClassVar = {"semantic": 0.0}  # calibrated, as the default embedder

    def __init__(self, dimensions=DIM):
        self.dimensions = dimensions

    def embed(self, texts):
        return np.full((len(texts), self.dimensions), 0.5, np.float32)


class StoredQueries:
    """Gives the embeddings of held-out sentences by their texts."""

    model, dimensions = MODEL, DIM

    def __init__(self):
        vectors = queries_of("real", None, HELD_OUT)
        self.vectors = dict(zip(real_texts()[:HELD_OUT], vectors, strict=True))
        self.texts = short(self.vectors)
        self.other = self.vectors[self.texts[0]]  # for a text put into the first person

    def embed(self, texts):
        return np.stack([self.vectors.get(text, self.other) for text in texts])


def short(texts):
    """Return those of at most twelve words, as questions are."""
    return [text for text in texts if len(text.split()) <= MOST_WORDS]


def entry_of(number, text, vector, model=MODEL, **fields):
    """Return a memory with its vector; its user and session follow from its number if not given."""
    at = BEGIN + timedelta(minutes=number)
    return MemoryEntry(
        id=new_id(at),
        agent_id=AGENT,
        content=text,
        created_at=at,
        importance=number % 100 / 100,
        embedding=vector,
        embedding_model=model,
        **fields,
    )


def of_user(number):
    """Return the fields that make a memory one of ten users', in sessions of twenty turns."""
    return {
        "user_id": f"user {number % USERS}",
        "session_id": f"session {number // (USERS * TURNS)}",
    }


def open_stored(path, rows):
    """Return a memory of ten users that looks its vectors up, filled if it is empty."""
    embedder = StoredVectors(rows)
    embedder.similarity_floor = 0.0  # random vectors are hardly near to any
    embedder.score_floors = {"semantic": 0.0}  # calibrated, as the default embedder
    memory = Memory(path, embedder=embedder)
    if not memory.count(all_users=True):
        memory.add_many(
            {"content": f"memory {number}", "user_id": f"user{number % USERS}"}
            for number in range(rows)
        )
    return memory


def calls_of_search(memory, queries):
    """Return the searches, retrievals and recalls whose 95th percentile has a goal, by name."""
    of_user = {"user_id": "user3"}

    def asked():
        return f"query {next(queries)}"

    return {
        "search": lambda: memory.search(asked(), **of_user),
        "semantic": lambda: memory.search(asked(), search_type="semantic", **of_user),
        "retrieve": lambda: memory.retrieve(asked(), min_score=0.0, use_cache=False, **of_user),
        "recall": lambda: memory.recall(asked(), **of_user),
    }


def fill(memory, rows):
    """Store real sentences of ten users with embeddings of real sentences."""
    texts, vectors = real_texts()[HELD_OUT:], rows_of("real", rows)
    for first in range(0, rows, AT_ONCE):
        memory.add_many(
            entry_of(number, texts[number % len(texts)], vectors[number], **of_user(number))
            for number in range(first, min(rows, first + AT_ONCE))
        )


def resident_bytes():
    """Return this process's resident memory now, and its largest so far (Linux)."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))
