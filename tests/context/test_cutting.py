"""The content of one memory is cut at a word, and splits no character."""

import pytest

from mnemic._core import estimate_tokens
from mnemic.context.budget import enforce_budget
from tests.support.policy_twin import BucketCounter, ByteCounter, PieceCounter, made

COUNTERS = [None, ByteCounter(), PieceCounter(), BucketCounter()]
COUNTER_NAMES = ["estimate", "bytes", "pieces", "buckets"]


def count(counter, text):
    return estimate_tokens(text) if counter is None else counter.count(text)


@pytest.mark.requirement("C041")
@pytest.mark.parametrize("counter", COUNTERS, ids=COUNTER_NAMES)
@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇵🇹", "e\u0301", "👍🏽", "क्षि", "각"])
def test_a_cut_splits_neither_a_surrogate_pair_nor_a_grapheme(cluster, counter):
    for budget in range(100, 400, 7):
        for memory in enforce_budget([made(1, cluster * 2000)], budget, counter=counter):
            memory.content.encode("utf-16")
            kept = memory.content.removesuffix("…")
            assert kept == cluster * (len(kept) // len(cluster))


@pytest.mark.requirement("C041")
def test_a_cut_is_made_at_a_word():
    (found,) = enforce_budget([made(1, "notebook " * 2000)], 300)
    assert set(found.content.removesuffix("…").split()) == {"notebook"}
