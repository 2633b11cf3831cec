"""VectorMap: search time, recall of its answer, memory."""

import numpy as np

from benches.datasets import DIM, queries_of, rows_of
from benches.exact import K, best_ids, recall
from mnemic import VectorMap

KINDS = ("real", "uniform")
SIZES = (1_000, 10_000, 100_000)
QUERIES = 64


class Timed:
    """Half a second of measuring each, one process each."""

    rounds = 1
    repeat = (3, 100, 0.5)
    sample_time = 0.005
    warmup_time = 0.05
    timeout = 120


def save_sets():
    """Make the sets once for all benchmarks; each starts from the files in its own process."""
    for kind in KINDS:
        rows = rows_of(kind, max(SIZES))
        queries = queries_of(kind, rows, QUERIES)
        np.save(f"{kind}-rows.npy", rows)
        np.save(f"{kind}-queries.npy", queries)
        for count in SIZES:
            np.save(f"{kind}-{count}-right.npy", best_ids(rows[:count], queries))


class Search(Timed):
    params = (KINDS, SIZES)
    param_names = ("kind", "rows")

    def setup_cache(self):
        save_sets()

    setup_cache.timeout = 900

    def setup(self, kind, count):
        self.rows = np.load(f"{kind}-rows.npy", mmap_mode="r")[:count]
        self.queries = np.load(f"{kind}-queries.npy")
        self.vectors = VectorMap(DIM, metric="inner_product")
        self.vectors.replace(np.arange(count), self.rows)
        self.selections = {
            every: self.vectors.select(np.arange(0, count, every)) for every in (10, 100)
        }
        self.turn = 0

    def next_query(self):
        self.turn += 1
        return self.queries[self.turn % QUERIES]

    def time_search(self, _kind, _count):
        self.vectors.search(self.next_query(), k=K)

    def time_search_batch_of_8(self, _kind, _count):
        self.vectors.search(self.queries[:8], k=K)

    def time_search_batch_of_64(self, _kind, _count):
        self.vectors.search(self.queries, k=K)

    def time_selection_of_1_percent(self, _kind, _count):
        self.vectors.search(self.next_query(), k=K, allow=self.selections[100])

    def time_selection_of_10_percent(self, _kind, _count):
        self.vectors.search(self.next_query(), k=K, allow=self.selections[10])

    def time_upsert_one(self, _kind, _count):
        self.vectors.upsert([0], self.rows[:1])

    def track_recall(self, kind, count):
        right = np.load(f"{kind}-{count}-right.npy")
        return recall([self.vectors.search(query, k=K).ids for query in self.queries], right)


class Replace(Timed):
    """The rows come from a generator, quickly, so that they and the map are all the memory."""

    def setup(self):
        self.rows = rows_of("uniform", max(SIZES))
        self.ids = np.arange(len(self.rows))

    def replaced(self):
        vectors = VectorMap(DIM, metric="inner_product")
        vectors.replace(self.ids, self.rows)
        return vectors

    def time_replace(self):
        self.replaced()

    def peakmem_rows_alone(self):
        """What the rows below take by themselves."""

    def peakmem_replace(self):
        self.replaced()

    def track_bytes_per_float32_byte(self):
        return self.replaced().nbytes / self.rows.nbytes
