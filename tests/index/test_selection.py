"""Which memories are in play: filters before the cut, exclusion, floors, totals and limits."""

import numpy as np
import pytest

from mnemic.index import NativeIndex
from mnemic.model import Scope
from tests.support.rows import batch, rank, record, rows_found, wanted

AGENT = Scope("a")


def index_of(*records, **options):
    made = NativeIndex(2)
    assert made.apply(batch(records, **options))
    return made


# Limits and totals


@pytest.mark.requirement("C013", "C073")
def test_both_floors_are_inclusive_and_that_of_the_similarity_is_a_cosine():
    made = index_of(*map(record, (1, 2, 3)), vectors={1: (1, 0), 2: (3, 4), 3: (-1, 0)})
    scores = {hit.row: hit.score for hit in rank(made, wanted(AGENT)).ranked}
    exact, above = scores[2], float(np.nextafter(scores[2], 1))
    assert rows_found(made, AGENT, min_similarity=exact) == [1, 2]
    assert rows_found(made, AGENT, min_similarity=above) == [1]
    assert rows_found(made, AGENT, min_score=exact) == [1, 2]
    assert rows_found(made, AGENT, min_score=above) == [1]
    assert rows_found(made, AGENT, min_similarity=0.0) == [1, 2]
    assert rows_found(made, AGENT, min_similarity=-1.0) == [1, 2, 3]
