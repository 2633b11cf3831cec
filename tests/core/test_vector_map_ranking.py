"""Weights, priors, united queries, threads and counts of VectorMap, against a naive twin.

The twin scores every row in float64 in the documented order, multiplies by the weight, adds the
prior and sorts. Long scans and sealed segments are reached from 2,000,000 components on.
"""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic import VectorMap, errors

LARGEST = float(np.finfo(np.float32).max)


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


# Small maps, drawn by hypothesis.

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


@settings(max_examples=400, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(scenes(st.just(3)), weights, st.sampled_from(PRIOR_KINDS[1:]), st.booleans())
def test_a_prior_and_a_selection_used_again_follow_the_map(scene, weight, prior_kind, seal):
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
        if seal:
            scene.vectors.seal()


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


def prior_of(ids, values):
    return lambda vectors: vectors.prior(ids, values)


def search_with(**arguments):
    return lambda vectors: vectors.search([1, 0], **arguments)


def count_with(**arguments):
    return lambda vectors: vectors.count([1, 0], **arguments)


REFUSED = [
    (search_with(k=-1), errors.InvalidArgumentError, "k must .*found -1"),
    (search_with(threads=0), errors.InvalidArgumentError, "threads must .*found 0"),
    (search_with(threads=-2), errors.InvalidArgumentError, "threads must .*found -2"),
    (search_with(combine="min"), errors.InvalidArgumentError, "combine must .*'?min'?"),
    (search_with(weight=-1), errors.InvalidArgumentError, "weight must .*found -1"),
    (search_with(weight=np.nan), errors.InvalidArgumentError, "weight must .*found NaN"),
    (search_with(weight=np.inf), errors.InvalidArgumentError, "weight must .*found inf"),
    (search_with(weight=1.1e30), errors.InvalidArgumentError, "weight must .*from 0 to 1e30"),
    (search_with(min_score=np.nan), errors.InvalidArgumentError, "min_score .*NaN"),
    (count_with(min_score=np.nan), errors.InvalidArgumentError, "min_score .*NaN"),
    (count_with(min_score=0, weight=-1), errors.InvalidArgumentError, "weight must .*found -1"),
    (count_with(min_score=0, allow=["a"]), errors.ArrayTypeError, "whole numbers"),
    (lambda v: v.count([1, 0, 0], min_score=0), errors.DimensionMismatchError, "3 components"),
    (lambda v: v.count([np.inf, 0], min_score=0), errors.NonFiniteVectorError, "query"),
    (prior_of([1, 2], [1]), errors.CountMismatchError, "2 ids .* 1"),
    (prior_of([1, 2], [1, np.nan]), errors.NonFiniteVectorError, "prior .*row 1"),
    (prior_of([1], [-np.inf]), errors.NonFiniteVectorError, "prior .*row 0"),
    (prior_of([1], [1e300]), errors.NonFiniteVectorError, "prior .*row 0"),
    (prior_of([4, 1, 4], [1, 2, 3]), errors.DuplicateIdError, "id 4"),
    (prior_of(["a"], [1]), errors.ArrayTypeError, "whole numbers"),
    (prior_of([1], ["a"]), errors.ArrayTypeError, "numbers"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_arguments_out_of_range_are_refused(call, error, message):
    vectors = VectorMap(2)
    vectors.upsert([1, 2], [[1, 0], [0, 1]])
    with pytest.raises(error, match=message):
        call(vectors)
    assert answer(vectors.search([1, 0])) == ([1, 2], [1, 0])


# Large maps: long scans, several segments, sketches.


def low_dimensional(numbers, count, dim):
    rows = numbers.standard_normal((count, 64)) @ numbers.standard_normal((64, dim))
    return rows + 0.02 * numbers.standard_normal((count, dim))


def clustered(numbers, count, dim):
    centres = numbers.standard_normal((40, dim))
    return centres[numbers.integers(0, 40, count)] + 0.3 * numbers.standard_normal((count, dim))


def uniform(numbers, count, dim):
    return numbers.uniform(-1, 1, (count, dim))


def with_outliers(numbers, count, dim):
    rows = numbers.standard_normal((count, dim))
    rows[:, ::97] *= 100
    return rows


def with_mixed_norms(numbers, count, dim):
    rows = numbers.standard_normal((count, dim)) * 10 ** numbers.uniform(-6, 6, (count, 1))
    rows[::19] *= 1e-42 / np.abs(rows[::19]).max(axis=1, keepdims=True)
    rows[::23] = 0
    return rows


def with_repeats(numbers, count, dim):
    return low_dimensional(numbers, count // 30, dim)[numbers.integers(0, count // 30, count)]


class Large:
    """A large map, its twin, and calls with the answers they must have."""

    def __init__(self, rows, metric="inner_product", seed=0):
        self.numbers = np.random.default_rng(seed)
        count, dim = rows.shape
        self.ids = self.numbers.permutation(count).astype(np.int64) * 2 - 500
        self.vectors = VectorMap(dim, metric=metric)
        self.vectors.replace(self.ids, rows)
        kept = self.vectors.get(self.ids)
        self.twin = Twin(self.ids, kept)
        self.queries = self.make_queries(kept)
        prepared = [stored(self.vectors, query) for query in self.queries]
        self.similarities = [self.twin.similarities(query) for query in prepared]
        self.calls = [*self.plain(), *self.limited(), *self.selected(), *self.fused()]

    def make_queries(self, rows):
        numbers, some = self.numbers, rows[5:400:50].astype(np.float64)
        noise = numbers.standard_normal(some.shape) * some.std(axis=1, keepdims=True)
        axes = np.linalg.svd(rows[:300], full_matrices=False)[2][:64]
        beside = noise[0] - axes.T @ (axes @ noise[0])
        made = [some[0], some[1] + 0.3 * noise[1], noise[2], beside, -some[3], 1e-30 * some[4]]
        return np.array(made, np.float32)

    def plain(self):
        for query, similarities in zip(self.queries, self.similarities, strict=True):
            for arguments in ({"k": 1}, {"k": 10}, {"k": 100, "threads": 2}):
                yield query, arguments, similarities, {}
        yield self.queries, {"k": 10}, self.similarities, {}
        yield self.queries[:2], {"k": 5, "threads": 3}, self.similarities[:2], {}
        united = np.max(self.similarities[:3], axis=0)
        yield self.queries[:3], {"k": 10, "combine": "max"}, united, {}

    def limited(self):
        for query, similarities in zip(self.queries[:3], self.similarities, strict=False):
            edge = np.sort(similarities)[-20]
            for least in (edge, np.nextafter(edge, np.inf), np.nextafter(edge, -np.inf)):
                yield query, {"k": 25, "min_score": least}, similarities, {}

    def selected(self):
        count = len(self.ids)
        parts = [self.ids[: count // 10], self.ids[count // 3 :][:300], self.ids[8150:8250]]
        for share in (0.001, 0.01, 0.1, 0.5):
            parts += [self.numbers.choice(self.ids, int(count * share), replace=False)]
        for position, allow in enumerate(parts):
            selection = self.vectors.select(allow)
            which = position % 4
            arguments = {"k": 10, "allow": selection}
            yield self.queries[which], arguments, self.similarities[which], {}
            yield self.queries, arguments, self.similarities, {}

    def fused(self):
        spread = float(np.std(self.similarities[2]))
        values = self.numbers.standard_normal(len(self.ids)).astype(np.float32)
        cancelled = (self.twin.ids, (-0.7 * self.similarities[1]).astype(np.float32))
        half = self.ids[::2], (spread * values[::2]).astype(np.float32)
        one = np.append(self.ids[7:8], 10**9), np.array([1e30, 1e30], np.float32)
        allow = self.vectors.select(self.ids[::7])
        for prior in (half, one, cancelled):
            made = self.vectors.prior(*prior)
            formula = {"weight": 0.7, "prior": prior}
            arguments = {"k": 10, "weight": 0.7, "prior": made}
            yield self.queries[1], arguments, self.similarities[1], formula
            yield self.queries[1], {**arguments, "threads": 4}, self.similarities[1], formula
            yield self.queries[1], {**arguments, "allow": allow}, self.similarities[1], formula
            yield self.queries[:5], arguments, self.similarities[:5], formula
            united = np.max(self.similarities[:3], axis=0)
            yield self.queries[:3], {**arguments, "combine": "max"}, united, formula

    def check_state(self, expected):
        for (query, arguments, _, _), wanted in zip(self.calls, expected, strict=True):
            hits = self.vectors.search(query, **arguments)
            found = [answer(hits)] if hits.counts is None else []
            found += [answer(hits, at) for at in range(0 if hits.counts is None else len(query))]
            assert found == wanted
        self.check_counts()

    def expected(self):
        for _, arguments, similarities, formula in self.calls:
            allow = arguments.get("allow")
            allow = None if allow is None else allow.ids
            least = arguments.get("min_score")
            each = similarities if isinstance(similarities, list) else [similarities]
            all_scores = [self.twin.scores(one, **formula) for one in each]
            yield [self.twin.best(scores, arguments["k"], least, allow) for scores in all_scores]

    def check_counts(self):
        allow = self.ids[::3]
        edges = np.sort(self.similarities[1])[[-1, -10, len(self.ids) // 2, 0]]
        beside = [np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [np.inf, -np.inf]]
        for least in np.concatenate([edges, *beside]).tolist():
            kept = [int((similarities >= least).sum()) for similarities in self.similarities]
            assert self.vectors.count(self.queries, min_score=least).tolist() == kept
            counted = self.vectors.count(self.queries[1], min_score=least, allow=allow)
            assert counted == self.twin.kept(self.similarities[1], least, allow).sum()

    def check(self):
        """Compare all calls before sealing, beside it and after it."""
        expected = list(self.expected())
        self.check_state(expected)
        sealing = threading.Thread(target=self.vectors.seal)
        sealing.start()
        self.check_state(expected)
        sealing.join()
        self.check_state(expected)


LARGE = [
    (low_dimensional, 30_000, 384, "cosine"),
    (low_dimensional, 9_000, 384, "inner_product"),
    (clustered, 9_000, 384, "cosine"),
    (uniform, 9_000, 256, "inner_product"),
    (with_outliers, 9_000, 384, "inner_product"),
    (with_mixed_norms, 9_000, 300, "inner_product"),
    (with_repeats, 9_000, 256, "inner_product"),
    (clustered, 2_700, 768, "inner_product"),
]


@pytest.mark.parametrize(("distribution", "count", "dim", "metric"), LARGE)
def test_long_scans_answer_as_the_twin_before_beside_and_after_sealing(
    distribution, count, dim, metric
):
    rows = distribution(np.random.default_rng(count + dim), count, dim).astype(np.float32)
    Large(rows, metric).check()


def test_batches_of_every_size_answer_as_each_query_does_in_a_sealed_map():
    rows = low_dimensional(np.random.default_rng(1), 8_500, 256).astype(np.float32)
    vectors = VectorMap(256)
    vectors.replace(np.arange(len(rows)), rows)
    vectors.seal()
    queries = rows[:70] + np.float32(0.5)
    alone = [answer(vectors.search(query, k=10)) for query in queries]
    for count in (*range(1, 20), 31, 32, 33, 63, 64, 65, 70):
        batch = vectors.search(queries[:count], k=10, threads=1 + count % 2)
        assert [answer(batch, at) for at in range(count)] == alone[:count]
    twin = Twin(np.arange(len(rows)), vectors.get(np.arange(len(rows))))
    for position in (0, 35, 69):
        similarities = twin.similarities(stored(vectors, queries[position]))
        assert alone[position] == twin.best(similarities, 10)


class Changing:
    """A large map that changes, with rows kept beside it."""

    def __init__(self, rows):
        self.vectors = VectorMap(rows.shape[1], metric="inner_product")
        self.rows = {}
        self.replace(np.arange(len(rows)), rows)

    def replace(self, ids, rows):
        self.vectors.replace(ids, rows)
        self.rows = dict(zip(ids.tolist(), rows, strict=True))

    def upsert(self, ids, rows):
        self.vectors.upsert(ids, rows)
        self.rows.update(zip(ids.tolist(), rows, strict=True))

    def remove(self, ids):
        assert self.vectors.remove(ids) == len(ids)
        for row_id in ids.tolist():
            del self.rows[row_id]

    def check(self, queries, prior, selection, made):
        twin = Twin(np.array(list(self.rows)), np.array(list(self.rows.values())))
        batch = self.vectors.search(queries, k=10)
        for position, query in enumerate(queries):
            similarities = twin.similarities(query)
            wanted = twin.best(similarities, 10)
            assert answer(batch, position) == answer(self.vectors.search(query, k=10)) == wanted
            allowed = self.vectors.search(query, k=10, allow=selection)
            assert answer(allowed) == twin.best(similarities, 10, allow=selection.ids)
            scores = twin.scores(similarities, 0.5, prior)
            fused = self.vectors.search(query, k=10, weight=0.5, prior=made)
            assert answer(fused) == twin.best(scores, 10)
            least = wanted[1][-1]
            assert self.vectors.count(query, min_score=least) == (similarities >= least).sum()


def test_a_sealed_map_stays_exact_while_it_changes():
    numbers = np.random.default_rng(2)
    rows = low_dimensional(numbers, 10_000, 384).astype(np.float32)
    changing = Changing(rows)
    ids = np.arange(10_000)
    prior = ids[::3], (5 * numbers.standard_normal(len(ids[::3]))).astype(np.float32)
    queries = np.array([rows[3], rows[9_000] + 1, uniform(numbers, 1, 384)[0]], np.float32)
    parts = queries, prior, changing.vectors.select(ids[::9]), changing.vectors.prior(*prior)
    changing.vectors.seal()
    changing.check(*parts)
    best = changing.vectors.search(queries, k=100).ids
    changing.upsert(np.unique(best[:, 50:]), -rows[: len(np.unique(best[:, 50:]))])
    changing.remove(np.unique(best[:, :50]))
    changing.check(*parts)
    changing.vectors.seal()
    changing.check(*parts)
    # More than a quarter of the first segment goes, so that it is compacted beside the search.
    changing.remove(np.setdiff1d(ids[:3_000], best))
    changing.check(*parts)
    changing.vectors.seal()
    changing.check(*parts)
    changing.upsert(ids[4_000:8_000], uniform(numbers, 4_000, 384).astype(np.float32) * 8)
    changing.check(*parts)
    changing.replace(ids[:9_000], with_outliers(numbers, 9_000, 384).astype(np.float32))
    changing.check(*parts)
    changing.vectors.seal()
    changing.check(*parts)


def test_a_map_that_grows_row_by_row_into_long_scans_stays_exact():
    numbers = np.random.default_rng(3)
    # 2,000,000 / 256 = 7,812.5 rows; a segment ends at 8,192.
    rows = low_dimensional(numbers, 8_230, 256).astype(np.float32)
    ids = numbers.permutation(len(rows))
    vectors = VectorMap(256, metric="inner_product")
    vectors.upsert(ids[:7_700], rows[:7_700])
    queries = np.array([rows[1], rows[7_811], uniform(numbers, 1, 256)[0]], np.float32)
    similarities = [Twin(np.arange(len(rows)), rows).similarities(query) for query in queries]
    for size in range(7_700, len(rows)):
        if size % 60 == 0 or size in {7_812, 7_813, 8_191, 8_192, 8_193}:
            check_prefix(vectors, ids[:size], queries, [one[:size] for one in similarities])
        if size == 7_900:
            vectors.seal()
        vectors.upsert(ids[size], rows[size])
    vectors.seal()
    check_prefix(vectors, ids, queries, similarities)


def check_prefix(vectors, ids, queries, similarities):
    batch = vectors.search(queries, k=10)
    for position, (query, scores) in enumerate(zip(queries, similarities, strict=True)):
        best = np.lexsort((ids, -scores))[:10]
        wanted = ids[best].tolist(), scores[best].tolist()
        assert answer(batch, position) == answer(vectors.search(query, k=10)) == wanted
        assert vectors.count(query, min_score=wanted[1][4]) == (scores >= wanted[1][4]).sum()
