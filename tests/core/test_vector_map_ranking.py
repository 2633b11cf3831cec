"""Weights, priors, united queries, threads and counts of VectorMap, against a naive twin.

The twin scores every row in float64 in the documented order, multiplies by the weight, adds the
prior and sorts. Long scans and sealed segments are reached from 2,000,000 components on.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import VectorMap
from tests.support.tiers import examples
from tests.support.vector_map_twin import Twin, answer, stored

LARGEST = float(np.finfo(np.float32).max)

ROW_KINDS = ["plain", "tied", "extreme", "norms", "near", "zero"]
EXTREMES = np.array([0, 1e-45, -1e-42, 1e-30, 1, -1, 1e30, -1e30, LARGEST, -LARGEST], np.float32)


def make_rows(numbers, kind, count, dim):
    rows = numbers.standard_normal((count, dim)).astype(np.float32)
    if kind == "tied":
        rows = rows[numbers.integers(0, max(1, count // 12), count)]
    elif kind == "extreme":
        odd = numbers.random((count, dim)) < 0.3
        rows = np.where(odd, numbers.choice(EXTREMES, (count, dim)), rows)
    elif kind == "norms":
        rows *= (10.0 ** numbers.uniform(-44, 37, (count, 1))).astype(np.float32)
    elif kind == "near":
        rows = rows[:1] + rows * np.float32(1e-7)
    elif kind == "zero":
        rows[numbers.random(count) < 0.7] = 0
    return rows


PRIOR_KINDS = ["none", "small", "subset", "unknown", "huge", "tiny", "mixed", "equal", "cancel"]


def make_prior(numbers, kind, ids, weighted):
    """Ids, some of them unknown, and float32 values; "cancel" leaves only rounding of a score."""
    if kind == "none":
        return None
    values = numbers.standard_normal(len(ids)).astype(np.float32)
    scales = {"huge": 1e30, "tiny": 1e-30, "small": 0.1}
    values *= np.float32(scales.get(kind, 1))
    if kind == "mixed":
        values *= (10.0 ** numbers.uniform(-30, 30, len(ids))).astype(np.float32)
    elif kind == "equal":
        values[:] = -2.5
    elif kind == "cancel":
        values = np.clip(-weighted, -LARGEST, LARGEST).astype(np.float32)
    if kind in {"subset", "unknown"}:
        order = numbers.permutation(len(ids))[: len(ids) // 3]
        ids, values = ids[order], values[order]
    if kind == "unknown":
        ids = np.append(ids, [-1000, 10**12])
        values = np.append(values, np.float32([1e20, -5]))
    return ids, values


class Scene:
    """A small map, its twin and some queries, all from one seed."""

    def __init__(self, *, seed, kind, metric, count, dim, query_count):
        self.numbers = np.random.default_rng(seed)
        self.rows = make_rows(self.numbers, kind, count, dim)
        self.ids = self.numbers.permutation(3 * count)[:count].astype(np.int64) - count
        self.ids[self.ids == -1] = 2 * count  # -1 is no row's id
        self.vectors = VectorMap(dim, metric=metric)
        self.vectors.replace(self.ids, self.rows)
        self.twin = Twin(self.ids, self.vectors.get(self.ids))
        self.queries = make_rows(self.numbers, kind, query_count, dim)
        for position in range(0, query_count if count else 0, 2):
            self.queries[position] = self.rows[self.numbers.integers(count)]
        self.similarities = [
            self.twin.similarities(stored(self.vectors, query)) for query in self.queries
        ]

    def prior(self, kind, weight):
        weighted = self.twin.scores(self.similarities[0], weight)
        return make_prior(self.numbers, kind, self.twin.ids, weighted)

    def allowed(self, share):
        kept = self.twin.ids[self.numbers.random(len(self.twin.ids)) < share]
        return np.append(kept, [777_777, -777_777])

    def least(self, kind, scores):
        """A threshold: far off, or one of the scores, or just beside it."""
        if kind == "none" or (kind in {"on", "above", "below"} and len(scores) == 0):
            return None
        if kind in {"-inf", "inf", "0"}:
            return float(kind)
        score = float(self.numbers.choice(np.partition(scores, -20 % len(scores))[-20:]))
        with np.errstate(over="ignore", under="ignore"):
            beside = {"above": np.nextafter(score, np.inf), "below": np.nextafter(score, -np.inf)}
        return float(beside.get(kind, score))

    def change(self):
        """Overwrite, insert and remove some rows; the twin follows."""
        numbers, dim = self.numbers, self.vectors.dim
        overwritten = self.ids[numbers.random(len(self.ids)) < 0.2]
        changed = np.union1d(overwritten, np.arange(5_000, 5_020))
        self.vectors.upsert(changed, numbers.standard_normal((len(changed), dim)))
        removed = self.ids[numbers.random(len(self.ids)) < 0.3]
        assert self.vectors.remove(removed) == len(removed)
        self.ids = np.setdiff1d(np.union1d(self.ids, changed), removed)
        self.twin = Twin(self.ids, self.vectors.get(self.ids))
        self.similarities = [
            self.twin.similarities(stored(self.vectors, query)) for query in self.queries
        ]


def scenes(queries):
    return st.builds(
        Scene,
        seed=st.integers(0, 2**32),
        kind=st.sampled_from(ROW_KINDS),
        metric=st.sampled_from(["inner_product", "cosine"]),
        count=st.integers(0, 60) | st.integers(60, 300),
        dim=st.integers(1, 70),
        query_count=queries,
    )


weights = st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 0.3, 1.0, 1e9, 1e30]) | st.floats(0, 10)
least_kinds = st.sampled_from(["none", "on", "on", "above", "below", "-inf", "inf", "0"])
ks = st.integers(0, 12) | st.integers(0, 400)


@pytest.mark.requirement("C154", "R343", "R344", "T014")
@examples(400)
@given(
    scenes(st.integers(1, 4)),
    weights,
    st.sampled_from(PRIOR_KINDS),
    least_kinds,
    st.sampled_from([None, 0.0, 0.05, 0.5, 0.95]),
    ks,
    st.integers(1, 4),
    st.booleans(),
)
def test_every_ranking_is_that_of_the_formula(  # noqa: PLR0917
    scene, weight, prior_kind, least_kind, share, k, threads, united
):
    prior = scene.prior(prior_kind, weight)
    similarities = np.max(scene.similarities, axis=0) if united else scene.similarities[0]
    scores = scene.twin.scores(similarities, weight, prior)
    least = scene.least(least_kind, scores)
    allow = None if share is None else scene.allowed(share)
    made = None if prior is None else scene.vectors.prior(*prior)
    hits = scene.vectors.search(
        scene.queries if united else scene.queries[0],
        k=k,
        allow=allow,
        min_score=least,
        weight=weight,
        prior=made,
        combine="max" if united else None,
        threads=threads,
    )
    assert answer(hits) == scene.twin.best(scores, k, least, allow)
    if not united and least is not None:
        arguments = {"min_score": least, "weight": weight, "prior": made, "allow": allow}
        counted = scene.vectors.count(scene.queries[0], **arguments)
        assert type(counted) is int
        assert counted == scene.twin.kept(scores, least, allow).sum()


@examples(100)
@given(
    scenes(st.integers(1, 70)),
    weights,
    st.sampled_from(PRIOR_KINDS),
    least_kinds,
    st.sampled_from([None, 0.1, 0.6]),
    ks,
    st.integers(1, 4),
)
def test_a_batch_gives_each_query_the_bits_it_gets_alone(  # noqa: PLR0917
    scene, weight, prior_kind, least_kind, share, k, threads
):
    prior = scene.prior(prior_kind, weight)
    all_scores = [scene.twin.scores(one, weight, prior) for one in scene.similarities]
    least = scene.least(least_kind, all_scores[0])
    allow = None if share is None else scene.allowed(share)
    arguments = {
        "allow": None if allow is None else scene.vectors.select(allow),
        "min_score": least,
        "weight": weight,
        "prior": None if prior is None else scene.vectors.prior(*prior),
    }
    batch = scene.vectors.search(scene.queries, k=k, threads=threads, **arguments)
    assert batch.ids.shape == batch.scores.shape == (len(scene.queries), k)
    assert batch.counts.dtype == np.int64
    for position, (query, scores) in enumerate(zip(scene.queries, all_scores, strict=True)):
        alone = answer(scene.vectors.search(query, k=k, **arguments))
        assert answer(batch, position) == alone == scene.twin.best(scores, k, least, allow)
    if least is not None:
        counts = scene.vectors.count(scene.queries, **arguments)
        assert counts.dtype == np.int64
        kept = [scene.twin.kept(scores, least, allow).sum() for scores in all_scores]
        assert counts.tolist() == kept


@examples(100)
@given(scenes(st.just(3)), weights, st.sampled_from(PRIOR_KINDS[1:]), st.booleans())
def test_a_prior_and_a_selection_used_again_follow_the_map(scene, weight, prior_kind, flush):
    prior = scene.prior(prior_kind, weight)
    made = scene.vectors.prior(*prior)
    assert len(made) == len(prior[0])
    allow = np.append(scene.allowed(0.6), np.arange(5_000, 5_010))
    selection = scene.vectors.select(allow)
    for _ in range(3):
        scores = scene.twin.scores(scene.similarities[0], weight, prior)
        arguments = {"weight": weight, "prior": made}
        everything = scene.vectors.search(scene.queries[0], k=7, **arguments)
        assert answer(everything) == scene.twin.best(scores, 7)
        for k in (3, 500):
            hits = scene.vectors.search(scene.queries[0], k=k, allow=selection, **arguments)
            assert answer(hits) == scene.twin.best(scores, k, allow=allow)
        least = scene.least("on", scores)
        if least is not None:
            counted = scene.vectors.count(scene.queries[0], min_score=least, **arguments)
            assert counted == scene.twin.kept(scores, least).sum()
        scene.change()
        if flush:
            scene.vectors.flush()


def test_scores_that_are_minus_and_plus_zero_tie():
    vectors = VectorMap(1, metric="inner_product")
    vectors.upsert([1, 2, 3], [[-1e-30], [1e-30], [0]])
    prior = vectors.prior([1, 2, 3], [-0.0, 0.0, -0.0])
    # 1e-300 · 1e-60 underflows to a zero of either sign, and a prior of -0 keeps it.
    for made in (None, prior):
        hits = vectors.search([1e-30], k=2, weight=1e-300, prior=made)
        assert answer(hits) == ([1, 2], [0, 0])
        for least in (0.0, -0.0):
            arguments = {"min_score": least, "weight": 1e-300, "prior": made}
            assert vectors.search([1e-30], **arguments).ids.tolist() == [1, 2, 3]
            assert vectors.count([1e-30], **arguments) == 3


@pytest.mark.parametrize("weight", [5e-324, 1e-320, 1e-310, 1e-300])
def test_scores_that_are_hardly_above_nothing_are_still_compared_exactly(weight):
    rows = np.random.default_rng(4).random((200, 1)).astype(np.float32)
    vectors = VectorMap(1, metric="inner_product")
    vectors.upsert(range(200), rows)
    twin = Twin(np.arange(200), rows)
    for query in ([1], [-1]):
        scores = twin.scores(twin.similarities(query), weight)
        assert answer(vectors.search(query, k=5, weight=weight)) == twin.best(scores, 5)
        least = float(np.sort(scores)[-50])
        found = vectors.search(query, k=5, weight=weight, min_score=least)
        assert answer(found) == twin.best(scores, 5, least)
        counted = vectors.count(query, min_score=least, weight=weight)
        assert counted == twin.kept(scores, least).sum()


def test_united_queries_without_a_query_or_a_row_give_no_hit_or_the_plain_answer():
    vectors = VectorMap(2)
    assert answer(vectors.search([[1, 0], [0, 1]], combine="max")) == ([], [])
    vectors.upsert([1, 2], [[1, 0], [0, 1]])
    assert answer(vectors.search([0, 1], combine="max")) == ([2, 1], [1, 0])
    assert answer(vectors.search([[0, 1]], combine="max")) == ([2, 1], [1, 0])
