"""What a memory takes longer where all is sealed: `python -m benches.sealing [--memories N]`.

Two files with the same memories, one of them sealed, are opened without snapshots, searched and
added to in turns; the answers must be equal. Last, the sealed one is given other keys.
"""

import argparse
import os
import statistics
import tempfile
import time

import numpy as np

from benches.support.datasets import DIM
from benches.support.memories import OneVector
from benches.support.timing import timed
from mnemic import Encryption, Memory, MemoryEntry

ROUNDS = 5
USER = "alice"
BATCH = 2000
SEARCHES = 400


class Memories:
    """Two files with the same memories, one of them sealed; they take turns.

    Args:
        folder: Where the files are made.
        number: Number of memories of one user, with vectors of 384 dimensions.
    """

    def __init__(self, folder, number):
        self.number = number
        self.key = os.urandom(32)
        self.paths = {"plain": f"{folder}/plain.db", "sealed": f"{folder}/sealed.db"}
        random = np.random.default_rng(23)
        self.queries = random.standard_normal((SEARCHES, DIM)).astype(np.float32)
        for kind in self.paths:
            random = np.random.default_rng(42)
            with self.opened(kind) as memory:
                for first in range(0, number, BATCH):
                    texts = [text_of(at) for at in range(first, min(number, first + BATCH))]
                    vectors = random.standard_normal((len(texts), DIM)).astype(np.float32)
                    memory.add_many(texts, user_id=USER, embeddings=list(vectors))

    def opened(self, kind, key=None):
        encryption = None
        if kind == "sealed":
            encryption = Encryption(key or self.key, encrypt_all=True)
        return Memory(
            self.paths[kind], embedder=OneVector(), snapshots=False, encryption=encryption
        )

    def opening(self):
        """Return the median seconds until the first answer, by kind."""
        taken = {kind: [] for kind in self.paths}
        for kind in [*self.paths] * ROUNDS:
            begun = time.perf_counter()
            with self.opened(kind) as memory:
                assert len(memory.search("topic", user_id=USER, limit=10)) == 10
                taken[kind].append(time.perf_counter() - begun)
        return {kind: statistics.median(seconds) for kind, seconds in taken.items()}

    def searching(self):
        """Return the median milliseconds of a hybrid search for a given vector, by kind."""
        taken = {kind: [] for kind in self.paths}
        with self.opened("plain") as plain, self.opened("sealed") as sealed:
            for at, query in enumerate(self.queries):
                answers = []
                for kind, memory in (("plain", plain), ("sealed", sealed)):
                    seconds, found = timed(search_once, memory, text_of(at), query)
                    taken[kind].append(1000 * seconds)
                    answers.append([(hit.content, hit.score) for hit in found])
                assert answers[0] == answers[1]
        return {kind: statistics.median(seconds) for kind, seconds in taken.items()}

    def adding(self):
        """Return the median microseconds of a durable addition with a given vector, by kind."""
        taken = {kind: [] for kind in self.paths}
        with self.opened("plain") as plain, self.opened("sealed") as sealed:
            for at, vector in enumerate(self.queries):
                for kind, memory in (("plain", plain), ("sealed", sealed)):
                    text = text_of(self.number + at)
                    seconds, _ = timed(add_once, memory, text, vector)
                    taken[kind].append(1e6 * seconds)
        return {kind: statistics.median(each) for kind, each in taken.items()}

    def rotating(self):
        """Return the memories a second that another key is given to, the median of rounds."""
        rates = []
        with self.opened("sealed") as memory:
            for _ in range(ROUNDS):
                seconds, number = timed(memory.rotate_key, os.urandom(32))
                rates.append(number / seconds)
            assert memory.verify().ok
        return statistics.median(rates)


def text_of(number):
    return (
        f"Memory {number} is about the topic {number % 97} and a few other words of {number % 7}."
    )


def search_once(memory, text, vector):
    return memory.search(text, vector=vector, user_id=USER, limit=10)


def add_once(memory, text, vector):
    return memory.add(MemoryEntry(text, embedding=vector), user_id=USER)


def memories(number):
    """Print what sealing costs a memory."""
    with tempfile.TemporaryDirectory() as folder:
        both = Memories(folder, number)
        print(f"{number:,} memories of one user, {DIM} dimensions: plain / sealed")
        opening = both.opening()
        ratio = opening["sealed"] / opening["plain"]
        print(f"opened and searched     {shown(opening, '.2f')} s, {ratio:.2f} x")
        print(f"hybrid search, p50      {shown(both.searching(), '.3f')} ms")
        adding = both.adding()
        more = adding["sealed"] - adding["plain"]
        print(f"durable add, p50        {shown(adding, '.0f')} µs, {more:+.0f} µs")
        print(f"rotate_key              {both.rotating():,.0f} memories/s")


def shown(figures, form):
    return " / ".join(format(figures[kind], form) for kind in ("plain", "sealed"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    memories(parser.parse_args().memories)


if __name__ == "__main__":
    main()
