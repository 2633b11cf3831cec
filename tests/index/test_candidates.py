"""The contract of candidate sources: any class of them runs these tests.

A source of another library is added to `SOURCES`. What an approximate one may get wrong is which
rows are nearest; all else holds for it too.
"""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.index import RowSet
from mnemic.index.choice import FaissOptions
from mnemic.index.faiss_source import FaissSource
from tests.support.exact_source import ExactSource
from tests.support.threads import run_together
from tests.support.tiers import examples


class WaitingVectors(FaissSource):
    """A source whose index gets no vectors, so that searches compare those that wait."""

    def _start_thread(self):
        pass


class _Settled(FaissSource):
    kind = "hnsw"

    def __init__(self, dim):
        super().__init__(dim, FaissOptions(self.kind))

    def add(self, rows, vectors):
        super().add(rows, vectors)
        self.settle()

    def remove(self, rows):
        super().remove(rows)
        self.settle()


class Graph(_Settled):
    """A source whose vectors are all in a graph."""


class Flat(_Settled):
    """A source whose vectors are all in a flat index."""

    kind = "flat"


SOURCES = (ExactSource, WaitingVectors, Graph, Flat, FaissSource)
DIM = 3
CLOSE = 1e-6
FORMS = ("list", "bitmap")


@pytest.fixture(params=SOURCES, ids=lambda kind: kind.__name__)
def make(request):
    return request.param


def filled(kind, vectors):
    """Return a source of vectors by row; a row may have several."""
    source = kind(len(next(iter(vectors.values()))[0]))
    put(source, vectors)
    return source


def put(source, vectors):
    rows = [row for row, chunks in vectors.items() for _ in chunks]
    flat = [chunk for chunks in vectors.values() for chunk in chunks]
    source.add(np.array(rows, np.int64), np.array(flat, np.float32))


def remove(source, *rows):
    source.remove(np.array(rows, np.int64))


def row_set(rows, form):
    rows = sorted(rows)
    if form == "list":
        return RowSet.of(np.array(rows, np.int64))
    bits = np.zeros(max(rows, default=0) + 1, np.uint8)
    bits[rows] = 1
    return RowSet.of(np.packbits(bits, bitorder="little"))


def asked(source, queries, k=100, selected=None):
    """Return a source's rows, once their form has been checked."""
    found = source.nearest(np.array(queries, np.float32), k, selected)
    assert found.dtype == np.int64
    assert found.ndim == 1
    rows = found.tolist()
    assert len(rows) == len(set(rows)) <= k
    return rows


def unit(vector):
    length = np.linalg.norm(vector)
    return np.zeros(len(vector)) if length == 0 else np.asarray(vector, np.float64) / length


def similarity(queries, chunks):
    return max(unit(query) @ unit(chunk) for query in queries for chunk in chunks)


def check_nearest(queries, found, k, allowed):
    """Check that of the allowed rows, with their vectors, none is nearer than those found."""
    known = {row: similarity(queries, chunks) for row, chunks in allowed.items()}
    assert len(found) == min(k, len(known))
    near = [known[row] for row in found]
    assert all(one >= other - CLOSE for one, other in pairwise(near))
    others = [value for row, value in known.items() if row not in found]
    assert max(others, default=-2) <= min(near, default=-2) + CLOSE


@pytest.mark.parametrize("form", FORMS)
def test_only_selected_rows_are_proposed(make, form):
    rows = {1: [(1, 0, 0)], 2: [(0.8, 0.6, 0)], 3: [(0, 1, 0)], 70: [(-1, 0, 0)]}
    source = filled(make, rows)
    assert asked(source, [(1, 0, 0)], 2, row_set([3, 70], form)) == [3, 70]
    assert asked(source, [(1, 0, 0)], 2, row_set([2, 64, 71, 900], form)) == [2]
    assert asked(source, [(1, 0, 0)], 2, row_set([], form)) == []


def test_new_vectors_replace_all_vectors_of_a_row(make):
    source = filled(make, {1: [(1, 0, 0), (0, 1, 0)], 2: [(0.6, 0.8, 0)]})
    put(source, {1: [(0, 0, 1)]})
    assert asked(source, [(0, 1, 0)], 1) == [2]
    assert asked(source, [(0, 0, 1)], 1) == [1]
    put(source, {1: [(0, 1, 0), (1, 0, 0)]})
    assert asked(source, [(0, 1, 0)], 1) == [1]
    assert sorted(asked(source, [(0, 0, 1)])) == [1, 2]


def test_arguments_are_neither_changed_nor_kept(make):
    source, rows = make(DIM), np.array([1, 2], np.int64)
    vectors = np.array([(1, 0, 0), (0, 3, 0)], np.float32)
    source.add(rows, vectors)
    assert (rows.tolist(), vectors.tolist()) == ([1, 2], [[1, 0, 0], [0, 3, 0]])
    rows[:], vectors[:] = 9, -1
    query = np.array([(0, 2, 0)], np.float32)
    assert source.nearest(query, 1, None).tolist() == [2]
    assert query.tolist() == [[0, 2, 0]]


def test_a_source_has_a_size(make):
    source = make(DIM)
    before = source.nbytes
    put(source, {row: [(1, 0, row)] for row in range(1, 5000)})
    assert source.nbytes > before


components = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])
a_vector = st.tuples(components, components, components)
some_rows = st.lists(st.integers(1, 40), max_size=8, unique=True)
chunks = st.lists(a_vector, min_size=1, max_size=3)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(st.integers(1, 40), chunks, min_size=1)),
        st.tuples(st.just("remove"), some_rows),
    ),
    max_size=12,
)


@examples(100)
@given(
    changes,
    st.lists(a_vector, min_size=1, max_size=3),
    st.integers(1, 20),
    st.none() | st.tuples(some_rows, st.sampled_from(FORMS)),
)
@pytest.mark.parametrize("kind", SOURCES)
def test_after_any_changes_the_nearest_are_those_of_a_naive_search(
    kind, steps, queries, k, selected
):
    source, known = kind(DIM), {}
    for step, given_rows in steps:
        if step == "put":
            put(source, given_rows)
            known.update(given_rows)
        else:
            remove(source, *given_rows)
            known = {row: each for row, each in known.items() if row not in given_rows}
    if selected is not None:
        known = {row: each for row, each in known.items() if row in selected[0]}
    rows = None if selected is None else row_set(*selected)
    found = asked(source, queries, k, rows)
    assert set(found) <= set(known)
    if source.is_exact:
        check_nearest(queries, found, k, known)


def test_a_source_is_asked_while_it_changes(make):
    source = filled(make, {row: [(1, 0, row)] for row in range(1, 200)})
    is_done = threading.Event()

    def ask():
        while not is_done.is_set():
            assert set(asked(source, [(1, 0, 1)], 10)) <= set(range(1, 400))

    def change():
        try:
            for row in range(200, 400):
                put(source, {row: [(1, row, 0), (0, 1, row)]})
                remove(source, row - 150)
        finally:
            is_done.set()

    run_together(change, ask, ask, ask)


# Sets of rows


@given(
    st.sets(st.integers(0, 300)), st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 400))
)
def test_a_set_of_rows_has_the_same_rows_in_either_form(rows, others):
    probes = np.array([*others, *rows], np.int64)
    for form in FORMS:
        made = row_set(rows, form)
        assert made.to_rows().dtype == np.int64
        assert made.to_rows().tolist() == sorted(rows)
        assert made.contains(probes).tolist() == [int(row) in rows for row in probes]
