"""Two builds beside each other: `python -m benches.versions FOLDER [--rows N]`.

FOLDER holds the package of another build (its `python/`, with the extension in it). Each build runs
in a process of its own over the same real sentences of ten users, with random vectors; the two take
turns in bursts of twenty calls, so that a slow moment of the machine affects both. Prints the size
of each index and the processor time that filling it takes, the language of each memory detected
where the build does that; then medians in microseconds, and the median ratio of neighbouring
bursts, this build over the other. `--only-fill` fills both three times in turn, and ends.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np

from benches.datasets import real_texts
from mnemic._core import RECORD_COLUMNS
from mnemic.index import NativeIndex
from mnemic.model import BY_SEARCH_TYPE, RowBatch, Scope, Search

try:
    from mnemic.index import RankInputs
except ImportError:  # an earlier build
    RankInputs = None
    try:
        from mnemic.index import RankRequest
    except ImportError:  # a still earlier one
        from mnemic.index import Wanted as RankRequest

DIM = 384
USERS = 10
BURST = 20
ROUNDS = 40
KINDS = ("keyword", "hybrid", "semantic", "hybrid of all users", "add")


class Index:
    """The index of the build that is imported, filled."""

    def __init__(self, rows):
        self.texts = list(real_texts())
        self.queries = [text for text in self.texts[:1000] if len(text.split()) <= 12]
        random = np.random.default_rng(0)
        self.vectors = random.standard_normal((rows, DIM)).astype(np.float32)
        self.rows, self.turn, self.index = rows, 0, NativeIndex(DIM)
        records = [self.record(row) for row in range(rows)]
        numbers = np.arange(1, rows + 1)
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
            "content": self.texts[(1000 + number) % len(self.texts)],
            "user_id": f"user {number % USERS}",
            "session_id": f"session {number // 200}",
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
            begun = time.perf_counter()
            call()
            times.append(time.perf_counter() - begun)
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
        vector = self.vectors[self.turn % len(self.vectors)][None]
        text = self.queries[self.turn % len(self.queries)]
        wanted = {"text": text, "limit": 10, "ranking": ranking}
        scope = Scope("a", all_users=True) if everybody else Scope("a", "user 3")
        inputs = {"scope": scope, "now": 10**15, "vectors": vector if ranking.similarity else None}
        if RankInputs is None:
            return (RankRequest(**wanted, **inputs),)
        return Search(**wanted), RankInputs(**inputs)


def serve(rows):
    index = Index(rows)
    time.sleep(2)  # background work after loading
    size = index.index._core.nbytes  # noqa: SLF001 - the core's own figure
    print(size, index.seconds, flush=True)
    for line in sys.stdin:
        print(index.burst(line.strip()), flush=True)


def started(folder, rows):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benches.versions", "--serve", "--rows", str(rows)]
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    pipe = subprocess.PIPE
    process = subprocess.Popen(  # noqa: S603 - this very program
        command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=root
    )
    *_, size, seconds = process.stdout.readline().split()
    print(f"{folder}: {int(size) / 1e6:.1f} MB, filled in {float(seconds):.2f} s")
    return process


def ended(process):
    process.stdin.close()
    process.wait()


def measured(process, kind):
    process.stdin.write(f"{kind}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="python/ of another build")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--only-fill", action="store_true", help="fill both indexes, three times")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.rows)
        return
    here = Path(__file__).parents[1] / "python"
    if given.only_fill:
        for folder in (given.folder, here) * 3:
            ended(started(folder, given.rows))
        return
    both = [started(folder, given.rows) for folder in (given.folder, here)]
    for kind in KINDS:
        pairs = []
        for turn in range(ROUNDS):
            order = both if turn % 2 else both[::-1]
            times = {process: measured(process, kind) for process in order}
            pairs.append([times[process] for process in both])
        other, this = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(this / other for other, this in pairs)
        print(f"{given.rows:,} · {kind}: {other:.0f} → {this:.0f} µs, {ratio:.2f} of it")
    for process in both:
        ended(process)


if __name__ == "__main__":
    main()
