"""The kinds of FAISS indexes: their options, and errors of the library."""

import builtins

import numpy as np
import pytest

from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.index import RowSet
from mnemic.index.choice import source_choice
from mnemic.index.faiss_kinds import FaissIndex, FaissOptions, checked_options, faiss_library
from mnemic.index.faiss_source import FaissSource

DIM = 16


def drawn(number, seed=0):
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


def rows_from(first, number):
    return np.arange(first, first + number, dtype=np.int64)


def filled(kind, vectors):
    source = FaissSource(DIM, FaissOptions(kind))
    source.add(rows_from(1, len(vectors)), vectors)
    source.settle()
    assert source.waiting == 0
    return source


def nearest(vectors, query, k):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (np.argsort(-(unit @ query))[:k] + 1).tolist()


def recall(source, vectors, k=10, selected=None):
    queries = drawn(50, seed=9)
    rows = np.arange(1, len(vectors) + 1) if selected is None else selected.to_rows()
    found = 0
    for query in queries:
        proposed = source.nearest(query[np.newaxis], 4 * k, selected).tolist()
        assert set(proposed) <= set(rows.tolist())
        wanted = nearest(vectors[rows - 1], query, k)
        found += len({int(rows[at - 1]) for at in wanted} & set(proposed))
    return found / (k * len(queries))


@pytest.mark.parametrize(("kind", "least"), [("flat", 1.0), ("hnsw", 0.97)])
def test_each_kind_finds_most_of_the_nearest(kind, least):
    vectors = drawn(3000)
    source = filled(kind, vectors)
    assert recall(source, vectors) >= least
    half = RowSet.of(np.arange(2, 3001, 2, dtype=np.int64))
    assert recall(source, vectors, selected=half) >= least
    bits = np.zeros(3008, np.uint8)
    bits[2:3001:2] = 1
    bitmap = RowSet.of(np.packbits(bits, bitorder="little"))
    assert recall(source, vectors, selected=bitmap) >= least


@pytest.mark.parametrize(
    "wrong",
    [
        FaissOptions("lsh"),
        FaissOptions("ivfpq"),
        FaissOptions(links=1),
        FaissOptions(search_depth=0),
        FaissOptions(search_depth=1.5),
        FaissOptions(build_depth=True),
        FaissOptions(links=513),
        FaissOptions(build_depth=10**9),
        FaissOptions(threads=0),
        FaissOptions(threads=10**6),
    ],
)
def test_options_that_no_index_can_have_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="FaissOptions"):
        checked_options(wrong)


def test_a_refused_option_says_what_was_found_and_wanted():
    with pytest.raises(InvalidArgumentError, match=r"links must be .* from 2 to 512, got 513"):
        checked_options(FaissOptions(links=513))


def test_errors_of_the_library_are_typed_when_an_index_is_made(monkeypatch):
    def fail(_self):
        raise RuntimeError("Error in faiss::HNSW")

    make = source_choice(FaissOptions(), lambda: 0)()
    monkeypatch.setattr(FaissIndex, "_made", fail)
    with pytest.raises(InvalidArgumentError, match="no index of 16 dimensions"):
        make(DIM)


def test_a_library_that_cannot_be_loaded_is_a_typed_error(monkeypatch):
    load = builtins.__import__

    def broken(name, *given, **named):
        if name == "faiss":
            raise AttributeError("_ARRAY_API not found")
        return load(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(MissingExtraError, match="cannot be loaded"):
        faiss_library()
