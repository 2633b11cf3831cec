"""The cost of an index by another model: `python -m benches.own_index [--rows N] [--rounds N]`.

A file holds short memories of ten users, with random vectors of the memory's own model, and as many
of another model, 384 dimensions each. Prints medians: a build that embeds and stores, one in a
fresh object that reads all stored vectors, one after a single change, one without a change, and
searches with five hypotheses, by all users' memories and by those of one user.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from mnemic import Memory
from mnemic.hyde.own_index import OwnIndex
from mnemic.model import Scope

DIM = 384
USERS = 10
BATCH = 5000
HYPOTHESES = 5
SEARCHES = 50


class Embedder:
    """Gives every text a random vector."""

    dimensions = DIM

    def __init__(self, model):
        self.model = model
        self._chosen = np.random.default_rng(1)

    def embed(self, texts):
        return self._chosen.standard_normal((len(texts), DIM)).astype(np.float32)


def timed(work):
    begun = time.perf_counter()
    result = work()
    return (time.perf_counter() - begun) * 1000, result


def shown(what, milliseconds):
    print(f"{what:44} {statistics.median(milliseconds):10.2f} ms")


def fill(memory, rows):
    texts = [f"sentence {number}, about one thing and another" for number in range(rows)]
    for begin in range(0, rows, BATCH):
        memory.add_many(
            [
                {"content": text, "user_id": f"user {number % USERS}"}
                for number, text in enumerate(texts[begin : begin + BATCH], start=begin)
            ]
        )


def searching(index, rounds):
    chosen = np.random.default_rng(2)
    queries = chosen.standard_normal((SEARCHES, HYPOTHESES, DIM)).astype(np.float32)
    index.search(queries[0])
    return [timed(lambda one=one: index.search(one))[0] for _ in range(rounds) for one in queries]


def measure(path, rows, rounds):
    with Memory(path, embedder=Embedder("own")) as memory:
        fill(memory, rows)
        repository = memory._repository  # noqa: SLF001 - as the engine does
        everyone = Scope("default", all_users=True)

        def index(scope=everyone):
            return OwnIndex(repository, scope, Embedder("another"))

        took, _ = timed(index().build)
        shown(f"{rows} memories: build that embeds and stores", [took])
        shown("build by stored vectors", [timed(index().build)[0] for _ in range(rounds)])
        whole = index()
        whole.build()
        changes = []
        for number in range(rounds):
            memory.add(f"one more {number}", user_id="user 0")
            changes.append(timed(whole.build)[0])
        shown("build after one change", changes)
        shown("build without a change", [timed(whole.build)[0] for _ in range(100)])
        shown("search, five hypotheses, all users", searching(whole, rounds))
        own = index(Scope("default", "user 0"))
        own.build()
        shown("search, five hypotheses, one user", searching(own, rounds))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "a.db", given.rows, given.rounds)


if __name__ == "__main__":
    main()
