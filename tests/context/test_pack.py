"""The one pipeline: each memory is kept or dropped with a reason, and nothing given is changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mnemic.context import EstimatedTokens, PackingPlan, pack
from mnemic.context.budget import places_by_score
from mnemic.context.prompt_block import NumberedLines, PromptBlock, format_for_system_prompt
from mnemic.context.redaction import Redaction
from tests.context.test_budget import COUNTERS, FORMS, PROFILE, counter_of, memories
from tests.support.payloads import memory
from tests.support.tiers import examples

PLANS = {
    "documented": PackingPlan(limit=8, strategy="alternate", clip_sentences=2, max_tokens=400),
    "context": PackingPlan(cuts_last=False, block=NumberedLines(), max_tokens=60),
    "recency": PackingPlan(
        strategy="recency_first", ratio=0.5, limit=4, min_score=0.25, max_tokens=120
    ),
    "passages": PackingPlan(query="tea at noon", max_tokens=60),
    "small": PackingPlan(
        limit=3, clip_sentences=1, max_tokens=40, block=PromptBlock(preamble=True)
    ),
}


@PROFILE
@given(memories(), st.sampled_from(sorted(PLANS)), st.sampled_from(sorted(COUNTERS)))
@pytest.mark.requirement("C043", "C170", "R326")
def test_each_memory_is_kept_or_dropped_and_the_budget_holds(found, name, counter):
    plan = replace(PLANS[name], counter=counter_of(counter))
    before = [one.to_dict() for one in found]
    packed = pack(found, plan)
    assert packed == pack(found, plan)
    assert [one.to_dict() for one in found] == before
    ids = [one.id for one in packed.kept] + [one.id for one in packed.dropped]
    assert sorted(ids) == sorted(one.id for one in found)
    assert packed.text == format_for_system_prompt(packed.kept, plan.block)
    assert packed.tokens <= plan.max_tokens
    assert packed.tokens == (plan.counter.count(packed.text) if packed.text else 0)
    assert len(packed.costs) == len(packed.kept)
    scores = {one.id: one.score for one in found}
    assert all(one.score == scores[one.id] for one in (*packed.kept, *packed.dropped))
    assert all(one.reason.endswith(".") for one in packed.dropped)


@PROFILE
@given(memories(), st.sampled_from(sorted(FORMS)))
def test_the_order_of_the_block_is_the_interleaved_one(found, form):
    packed = pack(found, PackingPlan(max_tokens=100_000, block=FORMS[form]))
    positions = [one.provenance.position for one in packed.kept]
    assert positions == sorted(positions)
    lengths = {one.id: len(one.content) for one in found}
    assert all(one.provenance.original_length == lengths[one.id] for one in packed.kept)


@pytest.mark.requirement("C036", "R302", "R287")
def test_only_steps_that_ran_are_named():
    found = [memory("a", "One. Two. Three.", score=0.9)]
    assert pack(found, PackingPlan()).applied == ("deduplication", "interleaving", "token_budget")
    assert pack(found, PackingPlan(min_score=0.3, clip_sentences=2)).applied == (
        "score_threshold",
        "deduplication",
        "interleaving",
        "clipping",
        "token_budget",
    )
    assert pack(found, PackingPlan(min_score=0.95)).applied == ("score_threshold",)
    assert pack([], PackingPlan(min_score=0.3)).applied == ()


@pytest.mark.requirement("C036", "R298")
def test_the_threshold_is_inclusive():
    found = [memory("a", "One.", score=0.3), memory("b", "Two.", score=0.29999)]
    packed = pack(found, PackingPlan(min_score=0.3))
    assert [one.id for one in packed.kept] == ["a"]
    (dropped,) = packed.dropped
    assert (dropped.id, dropped.step, dropped.score) == ("b", "threshold", 0.29999)
    assert dropped.reason == "Its score is below 0.30."


@pytest.mark.requirement("C033", "C034")
def test_duplicates_name_the_memory_that_is_kept():
    found = [
        memory("a", "HELLO world", score=0.8),
        memory("b", "Hello world.", score=0.9),
        memory("c", "Good bye", score=0.7),
    ]
    packed = pack(found, PackingPlan())
    assert {one.id for one in packed.kept} == {"b", "c"}
    (best,) = [one for one in packed.kept if one.id == "b"]
    assert best.provenance.duplicate_ids == ("a",)
    (dropped,) = packed.dropped
    assert (dropped.id, dropped.step) == ("a", "deduplicate")
    assert dropped.reason == "Its text repeats that of b."


@pytest.mark.requirement("C037", "C038")
def test_memories_beyond_the_limit_are_dropped_by_the_order():
    found = [memory(f"{at}", f"text {at}", score=0.9 - at / 100) for at in range(5)]
    packed = pack(found, PackingPlan(limit=2, strategy="score_first"))
    assert [one.id for one in packed.kept] == ["0", "1"]
    assert {one.step for one in packed.dropped} == {"interleave"}
    assert packed.dropped[0].reason == "The 2 places were taken by others."


def test_a_memory_without_text_is_dropped_with_that_reason():
    packed = pack([memory("a", " \n "), memory("b", "One.")], PackingPlan())
    assert [one.id for one in packed.kept] == ["b"]
    assert packed.dropped[0].reason == "It has no text."


def test_dropped_memories_and_the_repr_of_a_block_have_no_content():
    packed = pack([memory("a", "secret " * 100)], PackingPlan(max_tokens=1, block=NumberedLines()))
    assert packed.kept == ()
    assert "secret" not in repr(packed)
    assert "secret" not in packed.dropped[0].to_json()
    assert "secret" not in repr(pack([memory("a", "secret word")], PackingPlan()))


def test_memories_of_one_id_are_counted_one_by_one():
    found = [memory("a", "One."), memory("a", "Two."), memory("a", "One.")]
    packed = pack(found, PackingPlan())
    assert sorted(one.content for one in packed.kept) == ["One.", "Two."]
    assert [one.step for one in packed.dropped] == ["deduplicate"]


@pytest.mark.requirement("R322", "C041")
def test_ten_thousand_large_memories_keep_the_budget():
    found = [
        memory(f"{at:05}", f"{at} " + "word " * 400, score=at / 10_000) for at in range(10_000)
    ]
    packed = pack(found, PackingPlan(limit=10_000, strategy="score_first", ratio=1.0))
    assert 1400 < EstimatedTokens().count(packed.text) == packed.tokens <= 1500
    assert len(packed.kept) + len(packed.dropped) == 10_000


@examples(60)
@given(memories(), st.integers(20, 200))
@pytest.mark.requirement("C037", "C044")
def test_no_dropped_memory_would_have_fitted_before_a_worse_one(found, budget):
    """A better memory that takes no more tokens than a kept worse one is kept, too."""
    packed = pack(found, PackingPlan(cuts_last=False, max_tokens=budget))
    form, counter = PromptBlock(), EstimatedTokens()
    kept = {one.id for one in packed.kept}
    left = [one for one in found if one.id in kept or _is_rejected(packed, one)]
    ranked = [left[place] for place in places_by_score(left)]
    costs = [counter.count(f"{line}\n") for line in form.lines(ranked)]
    for better, one in enumerate(ranked):
        for worse in range(better + 1, len(ranked)):
            if one.id not in kept and ranked[worse].id in kept and one.type == ranked[worse].type:
                assert costs[better] > costs[worse]


def _is_rejected(packed, one):
    reasons = {dropped.id: dropped.reason for dropped in packed.dropped if dropped.step == "budget"}
    return reasons.get(one.id, "It has no text.") != "It has no text."


REDACTION = Redaction(enabled=True)


@pytest.mark.requirement("R296", "C045", "C048")
def test_a_redaction_before_clipping_leaves_no_part_of_a_match():
    found = [memory("a", "Mail me at john.doe@example.com. Or call.", speaker="ann@example.com")]
    packed = pack(found, PackingPlan(redaction=REDACTION, clip_sentences=1, block=NumberedLines()))
    assert packed.text == "[1] 2026-05-01 [REDACTED]: Mail me at [REDACTED]…"
    (kept,) = packed.kept
    assert kept.provenance.was_redacted
    assert kept.provenance.original_length == len(found[0].content)
    assert "redaction" in packed.applied
    assert not any(word in str(packed.kept[0].to_dict()) for word in ("john", "ann@"))


@pytest.mark.requirement("R297", "C036", "C048")
def test_a_redaction_that_is_not_enabled_is_no_step():
    found = [memory("a", "Mail me at john@example.com")]
    packed = pack(found, PackingPlan(redaction=Redaction()))
    assert "john@example.com" in packed.text
    assert "redaction" not in packed.applied
    assert not packed.kept[0].provenance.was_redacted
    enabled = pack([memory("a", "no address")], PackingPlan(redaction=REDACTION))
    assert "redaction" in enabled.applied
    assert not enabled.kept[0].provenance.was_redacted


@pytest.mark.requirement("C181")
def test_a_memory_that_cannot_be_redacted_is_dropped_alone():
    slow = Redaction(enabled=True, patterns=(".*[^A-Z]|[A-Z]",))
    found = [memory("a", "A" * 200_000, score=0.9), memory("b", "B", score=0.8)]
    packed = pack(found, PackingPlan(redaction=slow))
    assert [one.id for one in packed.kept] == ["b"]
    assert (packed.dropped[0].id, packed.dropped[0].step) == ("a", "redact")


@pytest.mark.requirement("R295", "C042", "C043")
@pytest.mark.parametrize("form", sorted(FORMS))
def test_replacements_longer_than_their_matches_keep_the_budget(form):
    long = Redaction(enabled=True, patterns=(r"\d",), replacement="[A LONG REPLACEMENT]")
    found = [memory(f"{at}", "1234567890 " * 20, score=0.9 - at / 100) for at in range(5)]
    packed = pack(found, PackingPlan(redaction=long, max_tokens=300, block=FORMS[form]))
    assert 0 < packed.tokens <= 300
