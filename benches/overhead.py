"""A hybrid search without the core and the embedder: `python -m benches.overhead [--rows N]`.

Prints medians in microseconds of calls for ten hits of one user of ten: the whole call, and what is
left of it without the time inside the core's ranking and inside the embedder. Once the ten memories
are in the entry cache, once none is. Memories and queries are those of `benches.ranking`.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from benches.ranking import StoredQueries, entries_of
from mnemic import Memory

ROUNDS = 400


class Stopwatch:
    """Adds up the time spent inside functions."""

    def __init__(self):
        self.seconds = 0.0

    def timed(self, function):
        def call(*given, **named):
            begun = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.perf_counter() - begun

        return call


class TimedCore:
    """The core's index with the functions of a search timed."""

    def __init__(self, core, stopwatch):
        self.core = core
        self.rank = stopwatch.timed(core.rank)
        self.in_first_person = stopwatch.timed(core.in_first_person)

    def __getattr__(self, name):
        return getattr(self.core, name)

    def __len__(self):
        return len(self.core)


@contextmanager
def watched(memory):
    """Lend a stopwatch that runs inside the core and the embedder."""
    stopwatch = Stopwatch()
    index = memory.repository._indexes.active.index  # noqa: SLF001 - nothing public leads there
    embedder = memory.repository._models.embedder  # noqa: SLF001
    core, embed = index._core, embedder.embed_queries  # noqa: SLF001
    index._core, embedder.embed_queries = TimedCore(core, stopwatch), stopwatch.timed(embed)  # noqa: SLF001
    try:
        yield stopwatch
    finally:
        index._core, embedder.embed_queries = core, embed  # noqa: SLF001


def measure(memory, texts, *, is_cached):
    whole, rest = [], []
    cache = memory.repository._cache._entries  # noqa: SLF001
    with watched(memory) as stopwatch:
        for turn in range(ROUNDS):
            if not is_cached:
                cache.clear()
            stopwatch.seconds, begun = 0.0, time.perf_counter()
            found = memory.search(texts[turn % 20], user_id="user 1")
            whole.append(time.perf_counter() - begun)
            rest.append(whole[-1] - stopwatch.seconds)
            assert len(found) == 10
    return [statistics.median(times) * 1e6 for times in (whole, rest)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    rows = parser.parse_args().rows
    queries = StoredQueries()
    folder = tempfile.TemporaryDirectory()
    with folder, Memory(Path(folder.name) / "memories.db", embedder=queries) as memory:
        for entries in entries_of(rows):
            memory.add_many(entries)
        memory.search(queries.texts[0], user_id="user 1")
        for is_cached in (True, False):
            whole, rest = measure(memory, queries.texts, is_cached=is_cached)
            label = "cached" if is_cached else "not cached"
            print(f"{rows:,} rows, entries {label}: {whole:.0f} µs, {rest:.0f} beside the core")


if __name__ == "__main__":
    main()
