"""Many awaited searches at once: `python -m benches.awaited [FOLDER] [--rows N] [--embed-ms MS]`.

A hundred coroutines search one memory together, each over one user of ten; memories and queries are
those of `benches.ranking`. The same searches one after the other, by the plain `Memory`, are the
peer. FOLDER holds the package of another build (its `python/`, with the extension in it): then both
builds run, each in a process of its own, in turns. Prints medians in milliseconds of a hundred
searches, and the median ratios of neighbouring turns, each of several rounds.

With `--embed-ms` each call of the embedder takes so long, however many texts it has, as one in the
network does, and no vector of a query is kept; the calls for a hundred searches are printed too.
Without it all vectors are in a table, and a build that keeps those of queries asks for each once.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benches.datasets import queries_of, real_texts, rows_of
from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.model import UuidFactory

CALLERS = 100
ROUNDS = 7
PROCESS_TURNS = 20
USERS = 10
SESSION = 20
HELD_OUT = 1000
MOST_WORDS = 12
DIM = 384
MODEL = "stored"
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
KINDS = ("awaited", "plain")

new_id = UuidFactory()


class StoredQueries:
    """Gives the embeddings of held-out sentences by their texts."""

    model, dimensions = MODEL, DIM

    def __init__(self, milliseconds=0.0):
        self.seconds, self.calls = milliseconds / 1e3, 0
        vectors = queries_of("real", None, HELD_OUT)
        self.vectors = dict(zip(real_texts()[:HELD_OUT], vectors, strict=True))
        self.texts = [text for text in self.vectors if len(text.split()) <= MOST_WORDS]
        self.other = self.vectors[self.texts[0]]  # for a text put into the first person

    def embed(self, texts):
        self.calls += 1
        if self.seconds:
            time.sleep(self.seconds)
        return np.stack([self.vectors.get(text, self.other) for text in texts])


def entry_of(number, text, vector):
    at = BEGIN + timedelta(minutes=number)
    return MemoryEntry(
        id=new_id(at),
        agent_id="default",
        content=text,
        created_at=at,
        user_id=f"user {number % USERS}",
        session_id=f"session {number // (USERS * SESSION)}",
        importance=number % 100 / 100,
        embedding=vector,
        embedding_model=MODEL,
    )


def fill(path, queries, rows):
    texts, vectors = real_texts()[HELD_OUT:], rows_of("real", rows)
    made = [entry_of(at, texts[at % len(texts)], vectors[at]) for at in range(rows)]
    with Memory(path, embedder=queries) as memory:
        for first in range(0, rows, 5000):
            memory.add_many(made[first : first + 5000])


class Server:
    """Searches a file by both doors of the build that is imported."""

    def __init__(self, path, queries, options):
        self.queries, self.texts = queries, queries.texts
        self.turn = 0
        self.loop = asyncio.new_event_loop()
        self.plain = Memory(path, embedder=queries, **options)
        opening = AsyncMemory.open(path, embedder=queries, **options)
        self.awaited = self.loop.run_until_complete(opening)

    def rounds(self, kind):
        """Return the median milliseconds of several rounds, and the calls of one."""
        before = self.queries.calls
        took = statistics.median(self.round(kind) for _ in range(ROUNDS))
        return took, (self.queries.calls - before) / ROUNDS

    def round(self, kind):
        """Return the milliseconds of a hundred searches."""
        self.turn += CALLERS
        texts = [self.texts[(self.turn + at) % len(self.texts)] for at in range(CALLERS)]
        begun = time.perf_counter()
        if kind == "plain":
            found = [self.plain.search(text, user_id="user 1") for text in texts]
        else:
            found = self.loop.run_until_complete(self.search_together(texts))
        took = time.perf_counter() - begun
        assert all(len(hits) == 10 for hits in found)
        return took * 1e3

    async def search_together(self, texts):
        return await asyncio.gather(
            *(self.awaited.search(text, user_id="user 1") for text in texts)
        )

    def close(self):
        self.plain.close()
        self.loop.run_until_complete(self.awaited.close())
        self.loop.close()


def serve(rows, milliseconds):
    queries = StoredQueries(milliseconds)
    options = {"query_cache": 0} if milliseconds else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.db"
        fill(path, StoredQueries(), rows)
        server = Server(path, queries, options)
        for kind in KINDS:
            server.rounds(kind)
        print("ready", flush=True)
        for line in sys.stdin:
            print(*server.rounds(line.strip()), flush=True)
        server.close()


def started(folder, rows, milliseconds):
    sizes = "--rows", str(rows), "--embed-ms", str(milliseconds)
    command = [sys.executable, "-m", "benches.awaited", "--serve", *sizes]
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    process = subprocess.Popen(  # noqa: S603 - this very program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout.readline() == "ready\n"
    return process


def measured(process, kind):
    process.stdin.write(f"{kind}\n")
    process.stdin.flush()
    took, calls = process.stdout.readline().split()
    return float(took), float(calls)


def in_turns(processes):
    """Return the milliseconds of each turn, and the calls of a round, by process and kind."""
    times = {(process, kind): [] for process in processes for kind in KINDS}
    calls = {}
    for turn in range(PROCESS_TURNS):
        for process in processes if turn % 2 else processes[::-1]:
            for kind in KINDS:
                took, calls[process, kind] = measured(process, kind)
                times[process, kind].append(took)
    return times, calls


def ratio(above, below):
    return statistics.median(np.divide(above, below))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="python/ of another build")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--embed-ms", type=float, default=0.0, help="milliseconds of each call")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.rows, given.embed_ms)
        return
    here = Path(__file__).parents[1] / "python"
    folders = [here] if given.folder is None else [here, given.folder]
    processes = [started(folder, given.rows, given.embed_ms) for folder in folders]
    times, calls = in_turns(processes)
    for process, name in zip(processes, ("this build", "the other build"), strict=False):
        awaited, plain = (times[process, kind] for kind in KINDS)
        medians = f"awaited {statistics.median(awaited):.1f}, plain {statistics.median(plain):.1f}"
        print(f"{name}, {given.rows:,} rows: {medians} ms, ratio {ratio(awaited, plain):.2f}")
        made = ", ".join(f"{kind} {calls[process, kind]:.0f}" for kind in KINDS)
        print(f"  calls of the embedder for {CALLERS} searches: {made}")
    if given.folder is not None:
        this, other = processes
        for kind in KINDS:
            gain = ratio(times[other, kind], times[this, kind])
            print(f"{kind}: {gain:.2f} times the other build's throughput")
    for process in processes:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
