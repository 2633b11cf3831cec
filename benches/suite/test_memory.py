"""Whole searches, retrievals and recalls of 5,000 memories, whose vectors are looked up."""

from itertools import count

import pytest

from benches.support.memories import calls_of_search, open_stored

ROWS = 5_000


@pytest.fixture(scope="module")
def calls():
    with open_stored(":memory:", ROWS) as memory:
        yield calls_of_search(memory, count())


@pytest.mark.parametrize("name", ["search", "semantic", "retrieve", "recall"])
def test_a_whole_call(calls, name, measure):
    assert len(calls[name]()) == 10
    group = f"{ROWS:,} memories of ten users, one of them asked"
    measure(group, name, lambda _: calls[name](), [None])
