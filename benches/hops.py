"""Stages of a HyDE turn after the embedding: `python -m benches.hops [--rows N ...] [--rounds N]`.

One user's memories with vectors of 384 dimensions, each linked to four others at random, every
tenth superseded twice. For each size: search by five hypotheses and neighbours at depth 1 together
(`overhead`), the versions of what they found, the search alone, and the neighbours of ten random
memories at depths 1 to 3. Prints medians and upper quartiles in milliseconds. Each round takes
other hypotheses, so that most memories are read from the file; `again` is an overhead whose
memories are in the cache.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benches.datasets import rows_of, unit
from mnemic import MemoryEntry
from mnemic.hyde import HydeConfig
from mnemic.hyde.search import found_by_hypotheses, together, with_versions
from mnemic.model import Hops, LinkType, MemoryLink, NewEntry, Scope, UuidFactory
from mnemic.repository import Repository
from mnemic.store import open_store
from mnemic.store.values import StoredLink

DIM = 384
LINKS = 4
SUPERSEDED = 10
HYPOTHESES = 5
FOUND = 10
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
KINDS = [kind for kind in LinkType if kind is not LinkType.SUPERSEDES]

new_id = UuidFactory()


def fill(path, vectors):
    """Store memories with these vectors, their links, and two later versions of every tenth."""
    random, rows = np.random.default_rng(0), len(vectors)
    store = open_store(path)
    entries = [entry_of(number, vector) for number, vector in enumerate(vectors)]
    store.add("default", [NewEntry(entry) for entry in entries], now=BEGIN).result()
    ends = random.integers(1, rows, (rows, LINKS))
    kinds = random.choice(KINDS, (rows, LINKS))
    strengths = random.uniform(0.5, 1, (rows, LINKS))
    links = [
        MemoryLink(entries[at].id, entries[(at + to) % rows].id, kind, strength, BEGIN)
        for at in range(rows)
        for to, kind, strength in zip(ends[at], kinds[at], strengths[at], strict=True)
    ]
    store.add_links(Scope("default"), [StoredLink(link, None) for link in links]).result()
    for _ in range(2):
        for at in range(0, rows, SUPERSEDED):
            entries[at] = entry_of(rows + at, vectors[at], supersedes=entries[at].id)
        newer = [NewEntry(entry) for entry in entries[::SUPERSEDED]]
        store.add("default", newer, now=BEGIN).result()
    store.close()


def entry_of(number, vector, **fields):
    at = BEGIN + timedelta(seconds=number)
    return MemoryEntry(
        id=new_id(at),
        agent_id="default",
        content=f"memory {number} of a project that goes on",
        created_at=at,
        embedding=vector,
        embedding_model="stored",
        **fields,
    )


def hypotheses_of(vectors, rounds):
    """Return the hypotheses of each round: vectors near stored ones."""
    random = np.random.default_rng(1)
    chosen = vectors[random.integers(0, len(vectors), (rounds, HYPOTHESES))]
    return unit(chosen + 0.03 * random.normal(size=chosen.shape).astype(np.float32))


class Stages:
    """The stages of a turn over one memory, each timed."""

    def __init__(self, repository):
        self.repository, self.scope = repository, Scope("default")
        self.config = HydeConfig(retrieval_top_k=FOUND)

    def search(self, vectors):
        return found_by_hypotheses(self.repository, self.scope, vectors, self.config)

    def hops(self, rows, depth):
        hops = Hops(depth, self.config.decays, limit=self.config.max_neighbours)
        starts = [(row, 0.5) for row in rows]
        return self.repository.finder.neighbours(self.scope, starts, hops)

    def overhead(self, vectors):
        searched = self.search(vectors)
        return together(searched.candidates, searched.neighbours)

    def versions(self, memories):
        return with_versions(self.repository, self.scope, memories, self.config)


def measured(repository, vectors, rounds):
    """Return the milliseconds of each stage."""
    stages, random = Stages(repository), np.random.default_rng(2)
    hypotheses = iter(hypotheses_of(vectors, 2 * rounds + 1))
    stages.overhead(next(hypotheses))
    taken = {}

    def timed(name, call, *arguments):
        begun = time.perf_counter()
        answer = call(*arguments)
        taken.setdefault(name, []).append(1e3 * (time.perf_counter() - begun))
        return answer

    for _ in range(rounds):
        given = next(hypotheses)
        memories = timed("overhead", stages.overhead, given)
        timed("again", stages.overhead, given)
        timed("versions", stages.versions, memories)
        timed("search", stages.search, next(hypotheses))
        for depth in (1, 2, 3):
            rows = random.integers(1, len(vectors), FOUND).tolist()
            timed(f"hops {depth}", stages.hops, rows, depth)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--vectors", choices=("real", "clustered", "uniform"), default="real")
    given = parser.parse_args()
    for rows in given.rows:
        vectors = rows_of(given.vectors, rows, DIM)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            fill(path, vectors)
            repository = Repository(path, "default", embedder=None, embedding_model="stored")
            taken = measured(repository, vectors, given.rounds)
            asyncio.run(repository.close())
        for name, times in taken.items():
            upper = statistics.quantiles(times, n=4)[2]
            print(f"{rows:>7} {name:<9} {statistics.median(times):7.3f} {upper:7.3f}")


if __name__ == "__main__":
    main()
