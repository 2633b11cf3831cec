"""FAISS as a candidate source: what it does in the background, and what it finds."""

import threading
import time

import numpy as np
import pytest

from mnemic.index import faiss_source
from mnemic.index.faiss_kinds import KINDS, FaissIndex, FaissOptions
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
