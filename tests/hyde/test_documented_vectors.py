"""The documented vector map: one swap, exact cosines, descending, never half rebuilt."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import VectorMap
from mnemic.errors import (
    DimensionMismatchError,
    DuplicateIdError,
    InvalidArgumentError,
    NonFiniteVectorError,
)
from tests.support.threads import run_together

NUMBERS = st.floats(-100, 100, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3)


def mapped(rows, metric="cosine", dim=None):
    """Return a map with these rows, whose ids are their places."""
    made = VectorMap(dim or len(rows[0]), metric=metric)
    made.replace(np.arange(len(rows)), np.asarray(rows, np.float32).reshape(len(rows), made.dim))
    return made


def dot(left, right):
    """Return the product of two vectors as the map's scores have it."""
    hits = mapped([right], "inner_product").search(left, k=1)
    return hits.scores[0]


def cosine(left, right):
    """Return the cosine of two lists, summed exactly."""
    lengths = math.hypot(*left) * math.hypot(*right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


@pytest.mark.requirement("T014", "R343")
@pytest.mark.parametrize(
    ("left", "right", "product"),
    [([1, 0], [1, 0], 1), ([1, 0], [0, 1], 0), ([1, 2, 3], [4, 5, 6], 32)],
)
def test_products_are_the_documented_ones(left, right, product):
    assert dot(left, right) == product
    with pytest.raises(InvalidArgumentError):
        VectorMap(0)


@pytest.mark.requirement("R344")
def test_products_are_summed_in_double_precision():
    small = 2.0**-20
    assert dot([1.0, small], [1.0, small]) == 1.0 + 2.0**-40  # float32 would give 1


@pytest.mark.requirement("T015", "C123")
@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_a_vector_of_another_dimension_is_refused_and_changes_nothing(metric):
    held = mapped([[1, 2, 3]], metric)
    for refused in (
        lambda: held.search([1, 1]),
        lambda: held.search([[1, 1], [2, 2]]),
        lambda: held.replace([0], [[1, 1]]),
        lambda: held.upsert([0], [[1, 1]]),
    ):
        with pytest.raises(DimensionMismatchError):
            refused()
    assert len(held) == 1
    assert held.search([1, 2, 3], k=1).ids.tolist() == [0]


@pytest.mark.requirement("T016", "R345")
def test_rows_have_unit_length_and_the_zero_vector_stays():
    given_rows = np.array([[0, 0], [1, 0], [3, 4]], np.float32)
    before = given_rows.copy()
    held = mapped(given_rows)
    assert held.get(0).tolist() == [0, 0]
    assert held.get(1).tolist() == [1, 0]
    assert held.get(2) == pytest.approx([0.6, 0.8], abs=1e-7)
    assert np.linalg.norm(held.get(2).astype(np.float64)) == pytest.approx(1, abs=1e-7)
    assert (given_rows == before).all()
    given_rows[:] = 9
    assert held.get(1).tolist() == [1, 0]  # a copy


@pytest.mark.requirement("R402")
@given(st.lists(NUMBERS, min_size=1, max_size=20).filter(any))
def test_every_other_vector_gets_unit_length(vector):
    row = mapped([vector]).get(0).astype(np.float64)
    assert math.hypot(*row) == pytest.approx(1, abs=1e-6)
    assert cosine(row.tolist(), vector) == pytest.approx(1, abs=1e-6)


@pytest.mark.requirement("R402", "C124")
@pytest.mark.parametrize("scale", [1e-38, 1e-44, 1e38])
def test_tiny_and_huge_vectors_get_unit_length_too(scale):
    row = mapped([np.array([3, 4], np.float64) * scale / 4]).get(0)
    assert math.hypot(*row.astype(np.float64)) == pytest.approx(1, abs=1e-6)


@pytest.mark.requirement("T017", "T018", "T041", "R342", "R343", "R401")
def test_the_two_best_come_best_first():
    hits = mapped([[1, 0], [0, 1], [1, 1]]).search([1, 0], k=2)
    assert hits.ids.tolist() == [0, 2]
    assert hits.scores.tolist() == pytest.approx([1, math.sqrt(0.5)], abs=1e-6)
    assert mapped([[1, 0], [0, 1]]).search([2, 1], k=99).ids.tolist() == [0, 1]  # more than all


@pytest.mark.requirement("T019", "T006", "R347")
def test_nothing_is_found_in_an_empty_map_or_with_no_space():
    assert not VectorMap(2).search([1, 0], k=3)
    assert not mapped([[1, 0]]).search([1, 0], k=0)
    for few in (-1, -(2**63)):
        with pytest.raises(InvalidArgumentError):
            mapped([[1, 0]]).search([1, 0], k=few)


@pytest.mark.requirement("T037")
def test_a_new_map_is_empty():
    new = VectorMap(3)
    assert len(new) == 0
    assert new.get(1) is None
    assert 1 not in new
    assert new.search([1, 0, 0], k=5).ids.tolist() == []


@pytest.mark.requirement("T038", "T039", "T040", "R340", "R341", "R347", "R350")
def test_each_swap_replaces_everything():
    held = VectorMap(2)
    held.replace([5, 9], np.array([[1, 0], [0, 1]], np.float32))
    assert len(held) == 2
    assert held.get(5).tolist() == [1, 0]
    assert held.get(5).dtype == np.float32
    assert held.get(7) is None
    held.replace([3], [[1, 1]])
    assert (len(held), 5 in held, 3 in held) == (1, False, True)
    assert held.search([1, 0], k=9).ids.tolist() == [3]
    held.replace([], np.zeros((0, 2), np.float32))
    assert len(held) == 0
    assert not held.search([1, 0])
    assert held.get(3) is None


@pytest.mark.requirement("R341", "R337", "R349")
@pytest.mark.parametrize(
    ("ids", "rows", "error"),
    [
        ([1, 1], [[1, 0], [0, 1]], DuplicateIdError),
        ([1, 2], [[1, 0], [math.nan, 1]], NonFiniteVectorError),
        ([1, 2], [[1, 0], [math.inf, 1]], NonFiniteVectorError),
        ([1, 2, 3], [[1, 0], [0, 1]], InvalidArgumentError),
    ],
)
def test_a_refused_swap_leaves_the_map_as_it_was(ids, rows, error):
    held = mapped([[1, 0], [0, 1]])
    with pytest.raises(error):
        held.replace(ids, rows)
    assert held.search([1, 0]).ids.tolist() == [0, 1]


@pytest.mark.requirement("C124")
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_query_that_is_no_direction_never_disturbs_the_order(bad):
    held = mapped([[1, 0], [0, 1]])
    with pytest.raises(NonFiniteVectorError):
        held.search([bad, 1])
    assert held.search([0, 0]).scores.tolist() == [0, 0]
    assert held.search([0, 0]).ids.tolist() == [0, 1]  # ties go to the smaller id


@pytest.mark.requirement("T042", "R337", "R341", "R399")
def test_readers_see_whole_maps_while_others_swap():
    size, rounds = 200, 60
    contents = [np.arange(size) + size * number for number in range(5)]
    rows = np.random.default_rng(7).normal(size=(size, 16)).astype(np.float32)
    held, finished = VectorMap(16), threading.Event()
    held.replace(contents[0], rows)
    writers_left = [5]

    def writer(ids):
        def work():
            try:
                for _ in range(rounds):
                    held.replace(ids, rows)
            finally:
                writers_left[0] -= 1
                if not writers_left[0]:
                    finished.set()

        return work

    def reader():
        is_last = False
        while not is_last:
            is_last = finished.is_set()
            found = held.search(rows[0], k=size).ids
            assert len(found) == size
            assert len(set((found // size).tolist())) == 1
            assert len(held) == size
            row = held.get(3)
            assert row is None or len(row) == 16

    run_together(*[reader] * 20, *[writer(ids) for ids in contents])
    assert finished.is_set()


@pytest.mark.requirement("R362", "T001", "T002")
@given(st.data())
def test_several_queries_rank_each_row_by_its_best_cosine(data):
    dim = data.draw(st.integers(1, 9))
    vectors = st.lists(NUMBERS, min_size=dim, max_size=dim)
    rows = data.draw(st.lists(vectors, min_size=1, max_size=12))
    queries = data.draw(st.lists(vectors, min_size=1, max_size=5))
    k = data.draw(st.integers(0, 13))
    hits = mapped(rows).search(np.array(queries, np.float32), k=k, combine="max")
    wanted = [max(cosine(query, row) for query in queries) for row in rows]
    assert len(hits.ids) == min(k, len(rows))
    for row, score in zip(hits.ids.tolist(), hits.scores.tolist(), strict=True):
        assert score == pytest.approx(wanted[row], abs=1e-6)
    assert hits.scores.tolist() == sorted(hits.scores.tolist(), reverse=True)
    left = set(range(len(rows))) - set(hits.ids.tolist())
    if k and left:
        assert max(wanted[row] for row in left) <= hits.scores[-1] + 1e-6
