"""Long scans of a VectorMap: several segments and sketches, against a naive twin."""

import threading

import numpy as np
import pytest

from mnemic import VectorMap
from tests.support.vector_map_twin import Twin, answer, stored


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
        """Compare all calls before flushing, beside it and after it."""
        expected = list(self.expected())
        self.check_state(expected)
        flushing = threading.Thread(target=self.vectors.flush)
        flushing.start()
        self.check_state(expected)
        flushing.join()
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
    vectors.flush()
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
    changing.vectors.flush()
    changing.check(*parts)
    best = changing.vectors.search(queries, k=100).ids
    changing.upsert(np.unique(best[:, 50:]), -rows[: len(np.unique(best[:, 50:]))])
    changing.remove(np.unique(best[:, :50]))
    changing.check(*parts)
    changing.vectors.flush()
    changing.check(*parts)
    # More than a quarter of the first segment goes, so that it is compacted beside the search.
    changing.remove(np.setdiff1d(ids[:3_000], best))
    changing.check(*parts)
    changing.vectors.flush()
    changing.check(*parts)
    changing.upsert(ids[4_000:8_000], uniform(numbers, 4_000, 384).astype(np.float32) * 8)
    changing.check(*parts)
    changing.replace(ids[:9_000], with_outliers(numbers, 9_000, 384).astype(np.float32))
    changing.check(*parts)
    changing.vectors.flush()
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
            vectors.flush()
        vectors.upsert(ids[size], rows[size])
    vectors.flush()
    check_prefix(vectors, ids, queries, similarities)


def check_prefix(vectors, ids, queries, similarities):
    batch = vectors.search(queries, k=10)
    for position, (query, scores) in enumerate(zip(queries, similarities, strict=True)):
        best = np.lexsort((ids, -scores))[:10]
        wanted = ids[best].tolist(), scores[best].tolist()
        assert answer(batch, position) == answer(vectors.search(query, k=10)) == wanted
        assert vectors.count(query, min_score=wanted[1][4]) == (scores >= wanted[1][4]).sum()
