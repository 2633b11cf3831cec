"""An index that is built while its rows are still being read."""

import numpy as np
import pytest

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import InvalidArgumentError
from mnemic.index import NativeIndex
from mnemic.model import KEYWORD, Scope
from mnemic.model.rows import RowBatch
from tests.support.rows import batch, rank, record, rows_found, wanted

AGENT = Scope("a")
BY_WORDS = {"query": None, "ranking": KEYWORD}


def index(*records, **options):
    made = NativeIndex(2)
    assert made.apply(batch(records, **options))
    return made


def answers(of):
    """Return everything a few searches say, byte for byte."""
    asked = [wanted(AGENT), wanted(Scope("a", "u1")), wanted(AGENT, text="memory 4", **BY_WORDS)]
    return [rank(of, one) for one in asked], of.summary().unembedded, len(of)


def test_parts_that_a_loader_takes_are_the_same_as_one_batch():
    records = [record(row, f"u{row % 3}" if row % 3 else None) for row in range(1, 200)]
    vectors = {row: (1.0, row / 10) for row in range(1, 200) if row % 5}
    whole = batch(records, vectors=vectors)
    at_once = NativeIndex(2)
    assert at_once.apply(whole)
    in_parts = NativeIndex(2)
    with in_parts.loader() as loader:
        for at in range(0, 199, 64):
            loader.add_records(records[at : at + 64])
        for at in range(0, len(vectors), 50):
            rows = np.array(whole.embedded[at : at + 50])
            loader.add_vectors(rows, whole.vectors[at : at + 50])
        nothing = RowBatch(None, 1, [], [], None, [])
        assert in_parts.apply(nothing, loader)
    assert answers(in_parts) == answers(at_once)
    assert (in_parts.seq, len(in_parts)) == (1, 199)


def test_a_loader_that_took_nothing_makes_an_empty_index():
    made = index(record(1))
    with made.loader() as loader:
        assert made.apply(batch(seq=5), loader)
    assert (made.seq, len(made), rows_found(made, AGENT)) == (5, 0, [])


def test_a_part_that_cannot_be_taken_fails_the_loading_and_changes_nothing():
    made = index(record(1))
    with made.loader() as loader:
        loader.add_records([(1, "too", "short")])
        with pytest.raises(InvalidArgumentError, match=f"{len(RECORD_COLUMNS)} values"):
            made.apply(batch(seq=5), loader)
    assert (made.seq, rows_found(made, AGENT)) == (1, [1])
