"""Two builds beside each other: `python -m benches.versions FOLDER [--rows N]`.

FOLDER holds the package of another build (its `python/`, with the extension in it). Each build runs
in a process of its own over the same real sentences of ten users, with random vectors; the two take
turns in bursts of twenty calls, so that a slow moment of the machine affects both. Prints the size
of each index and the processor time that filling it takes, the language of each memory detected
where the build does that; then medians of processor time in microseconds, and the median ratio of
neighbouring bursts, this build over the other. `--only-fill` fills both three times in turn, and
ends.
"""

import argparse
import statistics
import time
import uuid

import numpy as np

from benches.support.builds import HERE, Build, serve
from benches.support.datasets import DIM, HELD_OUT, real_texts
from benches.support.memories import TURNS, USERS, short
from mnemic._core import RECORD_COLUMNS
from mnemic.index import NativeIndex, RankInputs
from mnemic.model import Scope
from mnemic.model.ranking import BY_SEARCH_TYPE
from mnemic.model.rows import RowBatch
from mnemic.model.search import Search

BURST = 20
ROUNDS = 40
KINDS = ("keyword", "hybrid", "semantic", "hybrid of all users", "add")


class Index:
    """The index of the build that is imported, filled."""

    def __init__(self, rows):
        self.texts = list(real_texts())
        self.queries = short(self.texts[:HELD_OUT])
        random = np.random.default_rng(0)
        self.vectors = random.standard_normal((rows, DIM)).astype(np.float32)
        self.rows, self.turn, self.index = rows, 0, NativeIndex(DIM)
        records = [self.record(row) for row in range(rows)]
        numbers = list(range(1, rows + 1))
        begun = time.process_time()
        self.index.apply(RowBatch(None, 1, records, numbers, self.vectors, []))
        self.seconds = time.process_time() - begun

    def record(self, number):
        given = {
            "row": number + 1,
            "agent_id": "a",
            "id": uuid.UUID(int=number + 1).bytes,
            "created_at": number * 10**6,
            "updated_at": number * 10**6,
            "content": self.texts[(HELD_OUT + number) % len(self.texts)],
            "user_id": f"user {number % USERS}",
            "session_id": f"session {number // (USERS * TURNS)}",
            "importance": 0.5,
            "type_name": "str",
            "version": 1,
        }
        numbers = ("memory_type", "status", "access_count", "is_sensitive", "is_encrypted")
        given.update(dict.fromkeys(numbers, 0))
        return tuple(given.get(column) for column in RECORD_COLUMNS)

    def burst(self, kind):
        """Return the mean of the sixteen fastest of twenty calls, in microseconds."""
        times = []
        for _ in range(BURST):
            call = self.call(kind)
            begun = time.thread_time()
            call()
            times.append(time.thread_time() - begun)
        return statistics.mean(sorted(times)[:16]) * 1e6

    def call(self, kind):
        self.turn += 1
        if kind == "add":
            row = self.rows + self.turn
            batch = [self.record(row)], np.array([row + 1]), self.vectors[:1], [], [], []
            return lambda: self.index._core.apply(*batch)  # noqa: SLF001 - without the queue
        wanted = self.wanted(kind)
        return lambda: self.index.rank(*wanted)

    def wanted(self, kind):
        ranking = BY_SEARCH_TYPE[kind.split()[0]]
        everybody = kind.endswith("all users")
        vector = self.vectors[self.turn % len(self.vectors)][None] if ranking.similarity else None
        text = self.queries[self.turn % len(self.queries)]
        scope = Scope("a", all_users=True) if everybody else Scope("a", "user 3")
        return Search(text=text, limit=10, ranking=ranking), RankInputs(scope, 10**15, vector)


def serve_index(rows):
    index = Index(rows)
    time.sleep(2)  # background work after loading
    size = index.index._core.nbytes  # noqa: SLF001 - the core's own figure
    serve((size, index.seconds), lambda kind: [index.burst(kind)])


def started(folder, rows):
    build = Build("benches.versions", folder, "--serve", "--rows", rows)
    size, seconds = build.first
    print(f"{folder}: {size / 1e6:.1f} MB, filled in {seconds:.2f} s")
    return build


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=HERE, help="python/ of another build")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--only-fill", action="store_true", help="fill both indexes, three times")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve_index(given.rows)
        return
    if given.only_fill:
        for folder in (given.folder, HERE) * 3:
            started(folder, given.rows).close()
        return
    both = [started(folder, given.rows) for folder in (given.folder, HERE)]
    for kind in KINDS:
        pairs = []
        for turn in range(ROUNDS):
            order = both if turn % 2 else both[::-1]
            times = {build: build.ask(kind)[0] for build in order}
            pairs.append([times[build] for build in both])
        other, this = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(this / other for other, this in pairs)
        print(f"{given.rows:,} · {kind}: {other:.0f} → {this:.0f} µs, {ratio:.2f} of it")
    for build in both:
        build.close()


if __name__ == "__main__":
    main()
