"""Stages of a HyDE turn after the embedding: `python -m benches.hops [--rows N ...] [--rounds N]`.

One user's memories with vectors of 384 dimensions, each linked to four others at random, every tenth
superseded twice. For each size: search by five hypotheses, neighbours at depth 1 to 3 of ten found
memories, both together at depth 1 (`overhead`), and the versions of what was found. Prints medians
and upper quartiles in milliseconds; each round takes other hypotheses.
"""

import argparse
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benches.datasets import rows_of, unit
from mnemic import Memory, MemoryEntry
from mnemic.hyde import HydeConfig
from mnemic.hyde.search import expanded, found_by_hypotheses, with_versions
from mnemic.model import Hops, LinkType, MemoryLink, NewEntry, Scope, UuidFactory
from mnemic.store.values import StoredLink

DIM = 384
LINKS = 4
SUPERSEDED = 10
HYPOTHESES = 5
FOUND = 10
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
KINDS = [kind for kind in LinkType if kind is not LinkType.SUPERSEDES]

new_id = UuidFactory()


def fill(memory, rows):
    random = np.random.default_rng(0)
    vectors = rows_of("clustered", rows, DIM)
    entries = [entry_of(number, vector) for number, vector in enumerate(vectors)]
    store = memory._repository._store
    store.add("default", [NewEntry(entry) for entry in entries], now=BEGIN).result()
    links = [
        StoredLink(MemoryLink(entries[at].id, entries[to].id, kind, strength, BEGIN), None)
        for at in range(rows)
        for to, kind, strength in zip(
            random.integers(0, rows, LINKS),
            random.choice(KINDS, LINKS),
            random.uniform(0.5, 1, LINKS),
            strict=True,
        )
        if at != to
    ]
    store.add_links(Scope("default"), links).result()
    for start in (0, 1):
        again = [
            entry_of(rows + at, vectors[at], supersedes=entries[at].id)
            for at in range(0, rows, SUPERSEDED)
        ]
        store.add("default", [NewEntry(entry) for entry in again], now=BEGIN).result()
        for at, entry in zip(range(0, rows, SUPERSEDED), again, strict=True):
            entries[at] = entry
        del start
    return vectors


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

    def __init__(self, memory):
        self.repository, self.scope = memory._repository, Scope("default")
        self.config = HydeConfig(retrieval_top_k=FOUND)

    def search(self, vectors):
        return found_by_hypotheses(self.repository, self.scope, vectors, self.config)

    def hops(self, candidates, depth):
        starts = [(candidate.row, candidate.score) for candidate in candidates]
        hops = Hops(depth, self.config.decays, limit=self.config.max_neighbours)
        return self.repository.finder.neighbours(self.scope, starts, hops)

    def overhead(self, vectors):
        return expanded(self.repository, self.scope, self.search(vectors), self.config)

    def versions(self, memories):
        return with_versions(self.repository, self.scope, memories, self.config)


def measured(memory, vectors, rounds):
    stages = Stages(memory)
    given = hypotheses_of(vectors, rounds)
    stages.overhead(given[0])
    taken = {}

    def timed(name, call, *arguments):
        begun = time.perf_counter()
        answer = call(*arguments)
        taken.setdefault(name, []).append(1e3 * (time.perf_counter() - begun))
        return answer

    for one in given:
        candidates = timed("search", stages.search, one)
        for depth in (1, 2, 3):
            timed(f"hops {depth}", stages.hops, candidates, depth)
        memories = timed("overhead", stages.overhead, one)
        timed("versions", stages.versions, memories)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            with Memory(path, embedder=None, embedding_model="stored") as memory:
                taken = measured(memory, fill(memory, rows), given.rounds)
        for name, times in taken.items():
            upper = statistics.quantiles(times, n=4)[2]
            print(f"{rows:>7} {name:<9} {statistics.median(times):7.3f} {upper:7.3f}")


if __name__ == "__main__":
    main()
