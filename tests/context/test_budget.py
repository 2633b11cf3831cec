"""The budget of a prompt block: never exceeded, spent by score, and kept in the given order."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mnemic.context import EstimatedTokens
from mnemic.context.budget import PackingPlan, enforce_budget, places_by_score, select_within_budget
from mnemic.context.prompt_block import NumberedLines, PromptBlock, format_for_system_prompt
from mnemic.errors import InvalidArgumentError
from tests.support.payloads import NOON, memory
from tests.support.tiers import examples

PROFILE = examples(200)
LINES = PackingPlan(max_tokens=50, block=NumberedLines(), cuts_last=False)


class Counter:
    """Counts tokens by a function, and its calls."""

    def __init__(self, count):
        self.function = count
        self.calls = 0

    def count(self, text):
        self.calls += 1
        return self.function(text)


COUNTERS = {
    "estimate": None,
    "letters": len,
    "bytes": lambda text: len(text.encode()),
    "words": lambda text: len(text.split()),
    "fours": lambda text: math.ceil(len(text) / 4),
    "lines": lambda text: text.count("\n") + 1,
    "squares": lambda text: len(text) ** 2 // 40,  # a whole takes more than its parts
    "one": lambda _: 1,
    "nothing": lambda _: 0,
    "hash": lambda text: sum(map(ord, text)) % 23,  # without any sense
}

FORMS = {
    "groups": PromptBlock(),
    "order": PromptBlock(group_by_type=False, preamble=True),
    "timed": PromptBlock(show_latency=True),
    "numbers": NumberedLines(),
}

WORDS = st.text(
    st.sampled_from("ab cdefgh\n\u2028#éжλעعशไท한漢字か😀👍🏽👩\u200d👩\u0301"), max_size=400
)


@st.composite
def memories(draw):
    return [
        memory(
            f"{place:02}",
            draw(WORDS),
            score=draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
            timestamp=NOON.replace(day=draw(st.integers(1, 5))),
            type=draw(st.sampled_from(["message", "fact", "summary"])),
            role=draw(st.none() | st.sampled_from(["user", "assistant", "漢\n"])),
        )
        for place in range(draw(st.integers(0, 12)))
    ]


def counter_of(name):
    function = COUNTERS[name]
    return EstimatedTokens() if function is None else Counter(function)


@PROFILE
@given(
    memories(), st.integers(1, 400), st.sampled_from(sorted(COUNTERS)), st.sampled_from(list(FORMS))
)
@pytest.mark.requirement("R295", "R322", "C041", "C043")
def test_a_block_never_exceeds_its_budget(found, budget, name, form):
    counter, block = counter_of(name), FORMS[form]
    before = [one.to_dict() for one in found]
    kept = enforce_budget(found, budget, counter=counter, block=block)
    text = format_for_system_prompt(kept, block)
    assert counter.count(text) <= budget or text == ""
    assert kept == enforce_budget(found, budget, counter=counter, block=block)
    assert [one.to_dict() for one in found] == before
    ids = [one.id for one in kept]
    assert ids == sorted(set(ids))  # in the order of the input
    assert len([one for one in kept if one not in found]) <= 1  # one may be cut
    for one in kept:
        (original,) = [other for other in found if other.id == one.id]
        assert one.content == original.content or one.content.endswith("…")


@PROFILE
@given(memories(), st.integers(1, 400))
@pytest.mark.requirement("C037", "C044")
def test_the_best_memories_that_fit_are_kept(found, budget):
    """Add whole lines by score to a block of numbered lines, as long as they fit."""
    counter, left, wanted = EstimatedTokens(), budget, []
    for place in places_by_score(found):
        line = NumberedLines().lines([found[place]])[0]
        cost = counter.count(f"[{len(wanted) + 1}] {line}\n")
        if line and cost <= left:
            wanted.append(place)
            left -= cost
    plan = PackingPlan(max_tokens=budget, block=NumberedLines(), cuts_last=False)
    result = select_within_budget(found, plan)
    assert list(result.kept) == [found[place] for place in sorted(wanted)]


@pytest.mark.requirement("C037")
def test_the_best_are_preferred_then_the_newest_then_the_smallest_id():
    found = [
        memory("d", score=0.5),
        memory("c", score=0.5, timestamp=NOON.replace(day=2)),
        memory("b", score=0.5),
        memory("a", score=0.1),
        memory("e", score=0.9),
    ]
    assert [found[place].id for place in places_by_score(found)] == ["e", "c", "b", "d", "a"]


def test_a_memory_that_takes_just_what_is_left_is_kept_whole():
    found = [memory("a", "short", score=0.9), memory("b", "word " * 20, score=0.8)]
    block = NumberedLines()
    count = EstimatedTokens().count
    whole = sum(
        count(f"{block.numbered(line, at)}\n") for at, line in enumerate(block.lines(found), 1)
    )
    assert [one.content for one in enforce_budget(found, whole, block=block)] == [
        one.content for one in found
    ]
    cut = enforce_budget(found, whole - 1, block=block)
    assert [one.provenance.was_clipped for one in cut] == [False, True]


@pytest.mark.requirement("C041")
def test_the_first_that_does_not_fit_is_cut_with_the_ellipsis_within_the_budget():
    found = [memory("a", "short", score=0.9), memory("b", "word " * 1000, score=0.8)]
    (first, cut) = enforce_budget(found, 100)
    assert first is found[0]
    assert cut.content.endswith("word…")
    assert (cut.provenance.was_clipped, cut.provenance.original_length) == (True, 5000)
    used = EstimatedTokens().count(format_for_system_prompt([first, cut]))
    assert 97 <= used <= 100
    assert not found[1].provenance.was_clipped


@pytest.mark.requirement("C041")
@pytest.mark.parametrize("budget", range(20, 60))
def test_a_fragment_of_fewer_than_16_tokens_is_left_out(budget):
    kept = enforce_budget([memory("a", "ab " * 1000)], budget, block=NumberedLines())
    left = EstimatedTokens().count(kept[0].content) if kept else 0
    assert left == 0 or left >= 15  # cut at a word
    assert bool(kept) == (budget >= 21)


@pytest.mark.requirement("C044")
def test_the_search_for_smaller_memories_has_an_end():
    found = [memory(f"{at:03}", "long " * 50, score=0.9) for at in range(100)]
    counter = Counter(len)
    result = select_within_budget([*found, memory("x", "brief")], replace(LINES, counter=counter))
    assert not result.kept
    assert counter.calls <= 64
    assert result.dropped[-1].reason == "The budget was spent before it."


def test_the_smallest_of_many_memories_is_found_by_the_estimate():
    found = [memory(f"{at:03}", "long " * 50, score=0.9) for at in range(200)]
    result = select_within_budget([*found, memory("x", "brief", score=0.1)], LINES)
    assert result.text == "[1] 2026-05-01 brief"


def test_a_cut_takes_few_calls_of_the_counter():
    for text in ("word " * 10_000, "漢" * 20_000, "a" * 50_000, "😀 " * 5_000):
        counter = Counter(lambda text: len(text.encode()) // 3)
        (cut,) = enforce_budget([memory("a", text)], 300, counter=counter)
        assert counter.calls <= 14
        used = counter.count(format_for_system_prompt([cut]))
        assert 270 <= used <= 300


def test_a_slow_counter_need_not_read_a_long_text_whole():
    lengths = []
    counter = Counter(lambda text: lengths.append(len(text)) or len(text) // 4)
    enforce_budget([memory("a", "word " * 100_000)], 100, counter=counter)
    assert max(lengths) <= 32 * 100


@pytest.mark.parametrize("budget", [0, -1, True, 1.5, "9", None])
def test_a_budget_is_a_positive_int(budget):
    with pytest.raises(InvalidArgumentError, match="max_tokens"):
        enforce_budget([], budget)


@pytest.mark.parametrize("answer", [-5, None, 1.5])
def test_a_counter_that_answers_nonsense_is_named(answer):
    with pytest.raises(InvalidArgumentError, match="the counter's answer"):
        enforce_budget([memory("a")], 100, counter=Counter(lambda _: answer))
