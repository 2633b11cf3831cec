"""Candidate sources that are not to be relied on, and exact ones that write down their calls."""

from random import Random

import numpy as np

from tests.support.exact_source import ExactSource

NOBODYS = (-1, 0, 2**62, -(2**63), 2**63 - 1)
"""Rows that no store gives."""


class RandomSource:
    """Proposes any rows: often too few, of other users, stale, unknown, twice.

    Args:
        dim: Dimension of the vectors.
        seed: Makes its choices repeatable.
        share: Share of the selected rows that it may propose.
    """

    is_exact = False
    nbytes = 0

    def __init__(self, dim, seed=0, share=0.5):
        self.dim, self.share = dim, share
        self.chance = Random(seed)  # noqa: S311 - data for a test
        self.rows = set()

    def add(self, rows, vectors):
        assert rows.dtype == np.int64
        assert vectors.shape == (len(rows), self.dim)
        self.rows.update(rows.tolist())

    def remove(self, rows):  # they stay: stale rows
        assert rows.dtype == np.int64

    def nearest(self, _vectors, k, selected):
        known = np.array(sorted(self.rows), np.int64)
        allowed = known if selected is None else known[selected.contains(known)]
        some = [row for row in allowed.tolist() if self.chance.random() < self.share]
        others = self.chance.sample(sorted(self.rows), min(3, len(self.rows)))
        proposed = some + others + list(NOBODYS) + some[:3]
        self.chance.shuffle(proposed)
        while len(proposed) < k:  # as many as requested, though hardly any of them new
            proposed.append(proposed[len(proposed) // 2])
        return np.array(proposed[:k], np.int64)


class RecordingSource(ExactSource):
    """The exact source, with a list of the requests it had."""

    def __init__(self, dim):
        super().__init__(dim)
        self.requests = []

    def nearest(self, vectors, k, selected):
        self.requests.append((vectors.shape[0], k, selected))
        return super().nearest(vectors, k, selected)


class FailingSource(RecordingSource):
    """Raises, or returns no rows, where a test says so."""

    fails_to_add = False
    answer = None

    def add(self, rows, vectors):
        if self.fails_to_add:
            raise OSError("a secret of the source")
        super().add(rows, vectors)

    def nearest(self, vectors, k, selected):
        found = super().nearest(vectors, k, selected)
        if self.answer is None:
            raise ValueError("a secret of the source")
        return self.answer(found)


class Made:
    """A factory that keeps the sources it made."""

    def __init__(self, kind, **options):
        self.kind, self.options, self.sources = kind, options, []

    def __call__(self, dim):
        self.sources.append(self.kind(dim, **self.options))
        return self.sources[-1]

    @property
    def last(self):
        return self.sources[-1]
