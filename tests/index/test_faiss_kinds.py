"""The kinds of FAISS indexes: their options, and errors of the library."""

import builtins
import threading
import time

import numpy as np
import pytest

from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.index import RowSet, faiss_source
from mnemic.index.choice import (
    KINDS,
    FaissIndex,
    FaissOptions,
    checked_options,
    faiss_library,
    source_choice,
)
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


@pytest.mark.parametrize("kind", KINDS)
def test_replaced_and_removed_vectors_are_found_no_more_and_make_space(kind, monkeypatch):
    monkeypatch.setattr(faiss_source, "MIN_VACANT", 100)
    vectors = drawn(2000)
    source = filled(kind, vectors)
    full = source.nbytes
    source.remove(rows_from(1, 900))
    source.settle()
    replaced = drawn(100, seed=3)
    source.add(rows_from(1901, 100), replaced)
    source.settle()
    for at in range(0, 100, 10):
        assert 1901 + at in source.nearest(replaced[at : at + 1], 20, None)
    for at in range(0, 900, 100):
        assert 1 + at not in source.nearest(vectors[at : at + 1], 50, None)
    source.add(rows_from(3000, 1), drawn(1, seed=4))  # the next change makes the index again
    source.settle()
    assert source.nbytes < 0.8 * full


def test_a_source_proposes_nothing_while_too_many_vectors_wait(monkeypatch):
    may_add, add = threading.Event(), FaissIndex.add
    monkeypatch.setattr(FaissIndex, "add", lambda *given: may_add.wait(60) and add(*given))
    source, vectors = FaissSource(DIM), drawn(faiss_source.MAX_WAITING + 1)
    source.add(rows_from(1, len(vectors)), vectors)
    assert source.nearest(vectors[:1], 5, None).tolist() == []
    may_add.set()
    source.settle()
    assert source.nearest(vectors[:1], 5, None)[0] == 1


def test_a_source_whose_library_fails_proposes_nothing_and_says_so(monkeypatch, caplog):
    def fail(_self, _vectors):
        raise RuntimeError("a secret of the library")

    monkeypatch.setattr(FaissIndex, "add", fail)
    source = FaissSource(DIM)
    source.add(rows_from(1, 10), drawn(10))
    source.settle()
    assert source.nearest(drawn(1), 5, None).tolist() == []
    source.add(rows_from(11, 10), drawn(10))
    assert source.waiting == 0  # it holds nothing that it will not use
    assert "given up: RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_a_source_that_nobody_holds_ends_its_work():
    source = FaissSource(DIM)
    source.add(rows_from(1, 50_000), drawn(50_000))
    thread = source._thread
    del source
    ends = time.monotonic() + 60
    while thread.is_alive():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_closed_source_adds_nothing_more():
    source = FaissSource(DIM)
    source.add(rows_from(1, 50_000), drawn(50_000))
    source.close()
    assert source.waiting > 0
    assert source._thread is None
