"""Range searches, their limits, and the mask of hits, beside brute force and beside FAISS."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import VectorMap, errors
from mnemic.vectors import RangeHits
from tests.support.tiers import examples
from tests.support.vector_files import map_of, rows_of
from tests.support.vector_map_twin import Twin


def parts(hits):
    """The hits of each query as pairs of lists."""
    limits, ids, scores = hits
    assert limits[0] == 0
    assert limits[-1] == len(ids) == len(scores)
    pieces = pairwise(limits.tolist())
    return [(ids[first:end].tolist(), scores[first:end].tolist()) for first, end in pieces]


@examples(100)
@given(st.data())
def test_a_range_search_finds_what_reaches_the_score_best_first_as_brute_force_does(data):
    count, dim = data.draw(st.integers(0, 90)), data.draw(st.integers(1, 20))
    numbers = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = numbers.integers(-2, 3, (count, dim)).astype(np.float32)  # with many ties
    ids = numbers.permutation(count) * 3 - 41
    vectors = VectorMap(dim, metric="inner_product")
    vectors.replace(ids, rows)
    twin = Twin(ids, rows)
    queries = numbers.integers(-2, 3, (data.draw(st.integers(0, 4)), dim)).astype(np.float32)
    least = data.draw(st.integers(-6, 6)) / 2
    allow = data.draw(st.none() | st.lists(st.integers(-50, 250)))
    prior = None
    if data.draw(st.booleans()):
        values = numbers.integers(-3, 4, len(ids[::2])).astype(np.float32)
        prior = (ids[::2], values)
    weight = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    limits = {"min_score": least, "allow": allow, "weight": weight}
    limits["prior"] = prior and vectors.prior(*prior)
    found = parts(vectors.range_search(queries, **limits))
    for query, piece in zip(queries, found, strict=True):
        scores = twin.scores(twin.similarities(query), weight, prior)
        assert piece == twin.best(scores, count, least, allow)
        (alone,) = parts(vectors.range_search(query, **limits))
        assert alone == piece
        assert vectors.count(query, **limits) == len(piece[0])
        hits = vectors.search(query, k=count, **limits)
        assert (hits.ids.tolist(), hits.scores.tolist()) == piece


def test_a_range_search_of_nothing_or_in_nothing_has_its_limits():
    for vectors in (VectorMap(3), map_of(20, 3)):
        hits = vectors.range_search(np.empty((0, 3)), min_score=0.0)
        assert (hits.limits.tolist(), hits.ids.shape, hits.scores.shape) == ([0], (0,), (0,))
        assert vectors.range_search(np.ones((2, 3)), min_score=np.inf).limits.tolist() == [0, 0, 0]
        assert vectors.range_search([1, 0, 0], min_score=2.0).limits.tolist() == [0, 0]
    assert VectorMap(3).range_search(np.ones((2, 3)), min_score=-9.0).limits.tolist() == [0, 0, 0]


def test_a_range_search_of_long_maps_finds_every_row():
    rows = rows_of(17_000, 8)
    vectors = VectorMap.from_rows(range(17_000), rows)
    everything = vectors.range_search(rows[:2], min_score=-np.inf)
    assert everything.limits.tolist() == [0, 17_000, 34_000]
    assert sorted(everything.ids[:17_000].tolist()) == list(range(17_000))
    assert (np.diff(everything.scores[:17_000]) <= 0).all()


def test_a_range_search_refuses_what_a_search_refuses():
    vectors = map_of(20, 3)
    for wrong in ({"min_score": np.nan}, {"min_score": 0.0, "weight": -1.0}):
        with pytest.raises(errors.InvalidArgumentError):
            vectors.range_search([1, 0, 0], **wrong)
    with pytest.raises(TypeError):
        vectors.range_search([1, 0, 0])
    with pytest.raises(errors.DimensionMismatchError):
        vectors.range_search([1, 0], min_score=0.0)
    with pytest.raises(errors.NonFiniteVectorError):
        vectors.range_search([1, np.inf, 0], min_score=0.0)


def test_the_hits_of_a_range_have_types_and_are_shown_on_one_line():
    hits = map_of(20, 3).range_search(np.ones((2, 3)), min_score=0.0)
    assert isinstance(hits, RangeHits)
    assert [each.dtype for each in hits] == [np.int64, np.int64, np.float64]
    assert repr(hits) == f"RangeHits(2 queries, {len(hits.ids)} hits)"
    with pytest.raises(TypeError):
        RangeHits()


def test_the_mask_of_hits_says_which_places_hold_one():
    vectors = VectorMap.from_rows([0, -2, 7], [[1, 0], [0, 1], [1, 1]])
    single = vectors.search([1, 0], k=5)
    assert single.mask.tolist() == [True, True, True]
    batch = vectors.search([[1, 0], [-1, 0]], k=5, min_score=0.0)
    assert batch.mask.dtype == np.bool_
    assert batch.mask.shape == batch.ids.shape == (2, 5)
    assert batch.mask.sum(axis=1).tolist() == batch.counts.tolist() == [3, 1]
    assert not np.isneginf(batch.scores[batch.mask]).any()
    assert vectors.search(np.empty((0, 2)), k=5).mask.shape == (0, 5)
    assert vectors.search([1, 0], k=0).mask.shape == (0,)
    best = vectors.search([[1, 0], [0, 1]], k=5, combine="max")
    assert best.mask.tolist() == [True, True, True]
