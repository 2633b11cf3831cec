"""The content of one memory is cut at a word or to sentences, and splits no character."""

import pytest

from mnemic._core import estimate_tokens
from mnemic.context import PackingPlan, pack
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


TEXT = "Hello! Thanks for asking. The gate code is 4711. It opens at noon. Bye. " + "See you. " * 60


@pytest.mark.requirement("C040", "C041")
@pytest.mark.parametrize("counter", COUNTERS, ids=COUNTER_NAMES)
def test_of_a_long_memory_the_sentences_stay_that_match_the_query(counter):
    others = [made(at, f"note {at} about the garden", score=0.1) for at in range(2, 40)]
    for budget in range(200, 700, 50):
        plan = PackingPlan(query="What is the gate code?", max_tokens=budget, counter=counter)
        packed = pack([made(1, TEXT, score=0.9), *others], plan)
        assert packed.tokens <= budget
        for memory in packed.kept:
            if memory.id == "0001" and memory.provenance.was_clipped:
                assert "The gate code is 4711" in memory.content
                assert memory.content.strip("…") in TEXT
                assert memory.content.endswith("…")
                assert memory.content.startswith("…") != TEXT.startswith(memory.content[:6])
        if counter is None:
            assert "4711" in packed.text
            assert len(packed.kept) > 3


@pytest.mark.requirement("C041")
def test_a_memory_stays_whole_where_no_other_needs_its_tokens():
    plan = PackingPlan(query="What is the gate code?", max_tokens=300)
    (alone,) = pack([made(1, TEXT)], plan).kept
    assert alone.content == TEXT
    both = pack([made(1, TEXT, score=0.9), made(2, "word " * 200, score=0.8)], plan).kept
    assert [memory.provenance.was_clipped for memory in both] == [True, True]
