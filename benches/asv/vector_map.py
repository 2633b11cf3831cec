"""VectorMap: search time, recall of its answer, memory."""

from functools import cache
from itertools import cycle

import numpy as np

from benches.asv import Timed
from benches.support.datasets import DIM, queries_of, rows_of
from benches.support.exact import K, best_ids, recall
from mnemic import VectorMap

KINDS = ("real", "uniform")
SIZES = (1_000, 10_000, 100_000)
QUERIES = 64


class Filled:
    """A filled map, its queries and selections, from the files that `Search.setup_cache` made."""

    def __init__(self, kind, count):
        self.rows = np.load(f"{kind}-rows.npy", mmap_mode="r")[:count]
        self.queries = np.load(f"{kind}-queries.npy")
        self.upcoming = cycle(self.queries)
        self.vectors = VectorMap(DIM, metric="inner_product")
        self.vectors.replace(np.arange(count), self.rows)
        self.vectors.flush()
        random = np.random.default_rng(2)
        self.selections = {
            share: self.vectors.select(random.choice(count, count // share, replace=False))
            for share in (10, 100)
        }

    def search(self, allow=None):
        return self.vectors.search(next(self.upcoming), k=K, allow=allow)


filled = cache(Filled)


class Search(Timed):
    params = (KINDS, SIZES)
    param_names = ("kind", "rows")

    def setup_cache(self):
        for kind in KINDS:
            rows = rows_of(kind, max(SIZES))
            queries = queries_of(kind, rows, QUERIES)
            np.save(f"{kind}-rows.npy", rows)
            np.save(f"{kind}-queries.npy", queries)
            for count in SIZES:
                np.save(f"{kind}-{count}-right.npy", best_ids(rows[:count], queries))

    setup_cache.timeout = 900

    def time_search(self, kind, count):
        filled(kind, count).search()

    def time_search_batch_of_8(self, kind, count):
        of = filled(kind, count)
        of.vectors.search(of.queries[:8], k=K)

    def time_search_batch_of_64(self, kind, count):
        of = filled(kind, count)
        of.vectors.search(of.queries, k=K)

    def time_selection_of_1_percent(self, kind, count):
        of = filled(kind, count)
        of.search(of.selections[100])

    def time_selection_of_10_percent(self, kind, count):
        of = filled(kind, count)
        of.search(of.selections[10])

    def time_upsert_one(self, kind, count):
        of = filled(kind, count)
        of.vectors.upsert([0], of.rows[:1])

    def track_recall(self, kind, count):
        of = filled(kind, count)
        right = np.load(f"{kind}-{count}-right.npy")
        return recall([of.vectors.search(query, k=K).ids for query in of.queries], right)


@cache
def made_up_rows():
    """Return rows made without a model, so that only they and the map take memory."""
    return rows_of("uniform", max(SIZES))


def replaced():
    vectors = VectorMap(DIM, metric="inner_product")
    vectors.replace(np.arange(max(SIZES)), made_up_rows())
    return vectors


class Replace(Timed):
    def time_replace(self):
        replaced()

    def peakmem_rows_alone(self):
        made_up_rows()

    def peakmem_replace(self):
        replaced()

    def track_bytes_per_float32_byte(self):
        return replaced().nbytes / made_up_rows().nbytes
