"""Searches beside a re-embedding: `python -m benches.reembedding [--rows N] [--kind KIND ...]`.

Real sentences of ten users with random vectors of 384 numbers are searched by meaning and keywords
with a pause after each search, the embedding of the query left out: first while the memory is
idle, then while `memory.reembed` embeds all of it, the change of the vectors and the load of the
new index included, then idle again. Another thread adds a memory now and then. Prints the median
and the 95th percentile of both in milliseconds, the ratio of the latter, which shall be at most
1.5, and the longest search; and of the re-embedding its seconds, those of the change of the
vectors, and the longest addition, which waits for that.

The new vectors come from

- "service": 64 texts in 60 ms, in which this process has nothing to do, as of a model in the
  network;
- "minilm": the local model, on this processor.
"""

import argparse
import itertools
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benches import environment
from benches.datasets import real_texts
from mnemic import Memory
from mnemic.embed import MiniLmEmbedder

DIM = 384
USERS = 10
AT_ONCE = 5_000
MOST_WORDS = 12
PAUSE_SECONDS = 0.005
ADDING_SECONDS = 0.2
IDLE_SEARCHES = 1_000
ROWS = 20_000
ALLOWED = 1.5


class RandomEmbedder:
    """A vector for each text, at no cost."""

    max_tokens, similarity_floor, dimensions = None, 0.25, DIM

    def __init__(self, model="random"):
        self.model = model
        self._random = np.random.default_rng(0)

    def embed(self, texts):
        vectors = self._random.standard_normal((len(texts), DIM), np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Service(RandomEmbedder):
    """The same, after the time that a model in the network takes for many texts at once."""

    def embed(self, texts):
        if len(texts) > 1:
            time.sleep(0.06 * len(texts) / 64)
        return super().embed(texts)


EMBEDDERS = {"service": lambda: Service("service"), "minilm": MiniLmEmbedder}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kind", nargs="*", choices=EMBEDDERS, default=["service"])
    given = parser.parse_args()
    environment.restart_at_their_best()
    print(environment.title(environment.machine()))
    for kind in given.kind:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            fill(path, given.rows)
            measure(path, given.rows, kind)


def fill(path, rows):
    texts = real_texts()
    with Memory(path, embedder=RandomEmbedder()) as memory:
        for first in range(0, rows, AT_ONCE):
            for user in range(USERS):
                some = range(first + user, min(rows, first + AT_ONCE), USERS)
                memory.add_many([texts[at % len(texts)] for at in some], user_id=f"user {user}")


def measure(path, rows, kind):
    short = [text for text in real_texts()[:2000] if len(text.split()) <= MOST_WORDS]
    queries = itertools.cycle(short)
    # The queries of both models cost nothing, so that the searches alone are compared.
    with Memory(path, embedder=RandomEmbedder(), query_cache=0) as memory:
        searched(memory, queries, enough(100))
        idle = searched(memory, queries, enough(IDLE_SEARCHES))
        report, running, added = beside(memory, queries, EMBEDDERS[kind]())
        changed = memory.repository.reembedding.switch_seconds
        assert report.is_complete
        assert report.embedded >= rows
    with Memory(path, embedder=None) as memory:
        assert memory.verify().ok
    with Memory(path, embedder=RandomEmbedder(report.model), query_cache=0) as memory:
        searched(memory, queries, enough(100))
        idle += searched(memory, queries, enough(IDLE_SEARCHES))
    ratio = np.quantile(running, 0.95) / np.quantile(idle, 0.95)
    print(f"\n{rows:,} memories, {kind}: {report.seconds:.1f} s, change {changed:.2f} s")
    for name, seconds in (("idle", idle), ("beside", running), ("additions", added)):
        p50, p95, longest = 1e3 * np.quantile(seconds, (0.5, 0.95, 1))
        figures = f"p50 {p50:7.2f}, p95 {p95:7.2f}, max {longest:7.1f} ms"
        print(f"{name:10} {len(seconds):6,} calls, {figures}")
    print(f"p95 beside / idle: {ratio:.2f} (at most {ALLOWED})", flush=True)


def enough(number):
    """Return whether so many searches were done."""
    return lambda done: done >= number


def searched(memory, queries, is_enough):
    """Search with pauses until it is enough; return the seconds of each search."""
    seconds = []
    while not is_enough(len(seconds)):
        number = len(seconds)
        query, user = next(queries), f"user {number % USERS}"
        begun = time.perf_counter()
        found = memory.search(query, user_id=user, limit=10)
        seconds.append(time.perf_counter() - begun)
        assert found
        time.sleep(PAUSE_SECONDS)
    return seconds


def beside(memory, queries, embedder):
    """Search while another thread embeds again; return its report, and the seconds of calls."""
    reports, added = [], []

    def reembed():
        reports.append(memory.reembed(embedder))

    def add():
        while not reports:
            begun = time.perf_counter()
            memory.add(f"a new memory {len(added)}", user_id="user 0")
            added.append(time.perf_counter() - begun)
            time.sleep(ADDING_SECONDS)

    threads = [threading.Thread(target=reembed), threading.Thread(target=add)]
    for thread in threads:
        thread.start()
    seconds = searched(memory, queries, lambda _: bool(reports) or not threads[0].is_alive())
    for thread in threads:
        thread.join()
    return reports[0], seconds, added


if __name__ == "__main__":
    main()
