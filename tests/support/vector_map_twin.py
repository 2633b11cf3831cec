"""A naive twin of VectorMap's ranking with weights, priors and several queries."""

import numpy as np

from mnemic import VectorMap


class Twin:
    """What a map should answer: every row scored, in the documented order."""

    def __init__(self, ids, rows):
        order = np.argsort(ids, kind="stable")
        self.ids = np.asarray(ids, np.int64)[order]
        groups = -(-rows.shape[1] // 8)
        padded = np.zeros((len(rows), groups * 8), np.float32)
        padded[:, : rows.shape[1]] = rows[order]
        self.groups = padded.reshape(len(rows), groups, 8).transpose(1, 0, 2).astype(np.float64)

    def similarities(self, query):
        """Exact products summed over eight lanes and the fixed tree."""
        padded = np.zeros(len(self.groups) * 8)
        padded[: len(query)] = query
        lanes = np.zeros((len(self.ids), 8))
        for group, part in zip(self.groups, padded.reshape(-1, 8), strict=True):
            lanes += group * part
        a, b, c, d, e, f, g, h = lanes.T
        return ((a + e) + (c + g)) + ((b + f) + (d + h))

    def scores(self, similarities, weight=1.0, prior=None):
        """`weight * similarity + prior`, rounded to float64 once each."""
        with np.errstate(over="ignore", under="ignore"):
            weighted = weight * similarities
        if prior is None:
            return weighted
        ids, values = prior
        added = np.zeros(len(self.ids))
        places = {row_id: place for place, row_id in enumerate(self.ids.tolist())}
        for row_id, value in zip(ids.tolist(), values.tolist(), strict=True):
            if row_id in places:
                added[places[row_id]] = value
        return weighted + added

    def kept(self, scores, least=None, allow=None):
        kept = np.ones(len(scores), bool) if least is None else scores >= least
        return kept if allow is None else kept & np.isin(self.ids, allow)

    def best(self, scores, k, least=None, allow=None):
        kept = np.flatnonzero(self.kept(scores, least, allow))
        best = kept[np.argsort(-scores[kept], kind="stable")[:k]]
        return self.ids[best].tolist(), scores[best].tolist()


def stored(vectors, query):
    """`query` as the map compares it: under cosine, scaled as a row would be."""
    one = VectorMap(vectors.dim, metric=vectors.metric)
    one.upsert(0, query)
    return one.get(0)


def answer(hits, position=None):
    """One answer as lists; checks the padding where it is one of a batch."""
    if position is None:
        assert hits.counts is None
        return hits.ids.tolist(), hits.scores.tolist()
    count = hits.counts[position]
    assert (hits.ids[position, count:] == -1).all()
    assert np.isneginf(hits.scores[position, count:]).all()
    return hits.ids[position, :count].tolist(), hits.scores[position, :count].tolist()
