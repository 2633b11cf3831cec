"""The searched sets: rows with their queries, the right answers and a filled map."""

from functools import cached_property

import numpy as np

from benches.support.datasets import DIM, queries_of, rows_of
from benches.support.exact import best_ids, recall
from benches.support.systems import Mnemic

QUERIES = 64
KINDS = ("real", "uniform", "clustered")
SMALL_TO_LARGE = tuple((kind, n, DIM) for n in (1_000, 10_000, 100_000) for kind in KINDS)
WIDE = (("clustered", 100_000, 768), ("clustered", 100_000, 1536))
HUNDRED_THOUSAND = ("real", 100_000, DIM)
MILLION = ("real", 1_000_000, DIM)
# Exact peers add in float32, so rows closer than its rounding may swap at the cut.
FLOAT32_RECALL = 0.99


class Case:
    def __init__(self, kind, count, dim, queries=QUERIES):
        self.of = (kind, count, dim)
        self.name = f"{kind} {count:,} x {dim:,}"
        self.rows = rows_of(kind, count, dim)
        self.queries = queries_of(kind, self.rows, queries)

    @cached_property
    def right(self):
        return best_ids(self.rows, self.queries)

    @cached_property
    def mnemic(self):
        return Mnemic(self.rows)

    def build(self, system):
        """Return a system that holds the rows; the map is built once for all uses."""
        return self.mnemic if system is Mnemic else system(self.rows)

    def check(self, system, answers):
        """Check a system's answers to the first queries, in their order; return the recall."""
        right = self.right[: len(answers)]
        answers = np.asarray(answers)
        found = recall(answers, right)
        if isinstance(system, Mnemic):
            assert np.array_equal(answers, right)
        elif system.exact:
            assert found >= FLOAT32_RECALL, system.name
        assert answers.min() >= 0, "an id that does not exist"
        assert answers.max() < len(self.rows), "an id that does not exist"
        assert all(len(set(row)) == len(row) for row in answers.tolist()), "an id twice"
        return found
