"""VectorMap: search time, recall of its answer, memory."""

import numpy as np

from mnemic import VectorMap

DIM = 384
K = 10


def unit_rows(count, seed=0):
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(8, count // 100), DIM), dtype=np.float32)
    rows = centres[random.integers(0, len(centres), count)]
    rows += 0.7 * random.standard_normal(rows.shape, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Search:
    params = (1_000, 10_000, 100_000)
    param_names = ("rows",)

    def setup(self, count):
        self.rows = unit_rows(count)
        self.vectors = VectorMap(DIM, metric="inner_product")
        self.vectors.replace(np.arange(count), self.rows)
        self.queries = unit_rows(64, seed=1)
        self.selection = self.vectors.select(np.arange(0, count, 100))

    def time_search(self, _count):
        self.vectors.search(self.queries[0], k=K)

    def time_search_batch_of_64(self, _count):
        self.vectors.search(self.queries, k=K)

    def time_selection_of_1_percent(self, _count):
        self.vectors.search(self.queries[0], k=K, allow=self.selection)

    def time_upsert_one(self, _count):
        self.vectors.upsert([0], self.rows[:1])

    def track_recall(self, count):
        wide = self.rows.astype(np.float64)
        found = 0
        for query in self.queries:
            scores = wide @ query.astype(np.float64)
            best = np.lexsort((np.arange(count), -scores))[:K]
            found += len(set(best) & set(self.vectors.search(query, k=K).ids.tolist()))
        return found / (K * len(self.queries))

    def track_bytes_per_float32_byte(self, _count):
        return self.vectors.nbytes / self.rows.nbytes


class Replace:
    def setup(self):
        self.rows = unit_rows(100_000)

    def time_replace(self):
        VectorMap(DIM).replace(np.arange(len(self.rows)), self.rows)

    def peakmem_replace(self):
        VectorMap(DIM).replace(np.arange(len(self.rows)), self.rows)
