"""An index of rows that the naive ranking twin has too."""

import numpy as np

from mnemic._core import Coverage
from mnemic.index import NativeIndex
from mnemic.model.rows import RowBatch
from tests.support.entries import to_row

DIM = 3


def index_of(rows):
    index = NativeIndex(DIM, coverage=Coverage(["en"]))
    assert index.apply(batch(rows))
    return index


def batch(rows, *, since=None, seq=1, removed=()):
    pairs = [(row.number, vector) for row in rows for vector in row.vectors]
    embedded = [number for number, _ in pairs]
    values = np.array([vector for _, vector in pairs], np.float32).reshape(len(pairs), DIM)
    records = [(row.number, *to_row(row.entry)) for row in rows]
    return RowBatch(since, seq, records, embedded, values, list(removed))
