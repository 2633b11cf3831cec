"""Many awaited searches at once: `python -m benches.awaited [FOLDER] [--rows N] [--embed-ms MS]`.

A hundred coroutines search one memory together, each over one user of ten; memories and queries are
real sentences with their embeddings. The same searches one after the other, by the plain `Memory`,
are the peer. FOLDER holds the package of another build (its `python/`, with the extension in it):
then both builds run, each in a process of its own, in turns. Prints medians in milliseconds of a
hundred searches, and the median ratios of neighbouring turns, each of several rounds.

With `--embed-ms` each call of the embedder takes so long, however many texts it has, as one in the
network does, and no vector of a query is kept; the calls for a hundred searches are printed too.
Without it all vectors are in a table, and a build that keeps those of queries asks for each once.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benches.support import memories
from benches.support.builds import HERE, Build, serve
from mnemic import AsyncMemory, Memory

CALLERS = 100
ROUNDS = 7
PROCESS_TURNS = 20
KINDS = ("awaited", "plain")


class SlowQueries(memories.StoredQueries):
    """Looks embeddings up, takes a while for each call, and counts the calls."""

    def __init__(self, milliseconds):
        super().__init__()
        self.seconds, self.calls = milliseconds / 1e3, 0

    def embed(self, texts):
        self.calls += 1
        if self.seconds:
            time.sleep(self.seconds)
        return super().embed(texts)


class Server:
    """Searches a file by both doors of the build that is imported."""

    def __init__(self, path, queries, options):
        self.queries, self.texts = queries, queries.texts
        self.turn = 0
        self.loop = asyncio.new_event_loop()
        self.plain = Memory(path, embedder=queries, **options)
        self.awaited = AsyncMemory(path, embedder=queries, **options)

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


def serve_searches(rows, milliseconds):
    options = {"query_cache": 0} if milliseconds else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.db"
        with Memory(path, embedder=memories.StoredQueries()) as memory:
            memories.fill(memory, rows)
        server = Server(path, SlowQueries(milliseconds), options)
        for kind in KINDS:
            server.rounds(kind)
        serve((), server.rounds)
        server.close()


def in_turns(builds):
    """Return the milliseconds of each turn, and the calls of a round, by build and kind."""
    times = {(build, kind): [] for build in builds for kind in KINDS}
    calls = {}
    for turn in range(PROCESS_TURNS):
        for build in builds if turn % 2 else builds[::-1]:
            for kind in KINDS:
                took, calls[build, kind] = build.ask(kind)
                times[build, kind].append(took)
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
        serve_searches(given.rows, given.embed_ms)
        return
    folders = [HERE] if given.folder is None else [HERE, given.folder]
    sizes = "--rows", given.rows, "--embed-ms", given.embed_ms
    builds = [Build("benches.awaited", folder, "--serve", *sizes) for folder in folders]
    times, calls = in_turns(builds)
    for build, name in zip(builds, ("this build", "the other build"), strict=False):
        awaited, plain = (times[build, kind] for kind in KINDS)
        medians = f"awaited {statistics.median(awaited):.1f}, plain {statistics.median(plain):.1f}"
        print(f"{name}, {given.rows:,} rows: {medians} ms, ratio {ratio(awaited, plain):.2f}")
        made = ", ".join(f"{kind} {calls[build, kind]:.0f}" for kind in KINDS)
        print(f"  calls of the embedder for {CALLERS} searches: {made}")
    if given.folder is not None:
        this, other = builds
        for kind in KINDS:
            gain = ratio(times[other, kind], times[this, kind])
            print(f"{kind}: {gain:.2f} times the other build's throughput")
    for build in builds:
        build.close()


if __name__ == "__main__":
    main()
