"""Random memories through each step, beside a naive twin of the document."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.context.budget import enforce_budget, interleave
from mnemic.context.packing import deduplicate
from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.model.payload import Provenance
from tests.context.test_prompt_block import OF_THREE_KINDS
from tests.support.policy_twin import block, broken, copied, deduplicated, ids, interleaved, made
from tests.support.tiers import examples

PROFILE = examples(200)
WORDS = [
    "tea",
    "Tea!",
    "TEA",
    "“tea”",
    "C++",
    "C#",
    "C",
    "你好，",
    "мир.",
    "Мир",
    "😀",
    "ﬁne",
    "FINE",
]
HOSTILE = [
    *"#>*<`\\:|[~\n\r\u2028\u0085\x0b\u200b\u202e\ufeff\x00\u2066\u00ad",
    *("##", "```", "``", "~~~", "---", "- ", "<system>", "</a>", "<|im_start|>", "[INST]", "&lt;"),
    *("<<SYS>>", "system:", "User :", "assistant"),
]
joined = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
hostile = st.lists(st.sampled_from([*HOSTILE, *WORDS]), max_size=8).map("".join)
scores = st.sampled_from([0.0, 0.2, 0.5, 0.5000001, 0.9, 1.0])
kinds = st.sampled_from(["message", "fact", "summary"])


@st.composite
def memories_of(draw, texts, size=12):
    numbers = draw(st.lists(st.integers(0, 99), max_size=size, unique=True))
    return [
        made(
            number,
            draw(texts),
            score=draw(scores),
            minutes=draw(st.integers(0, 4)),
            type=draw(kinds),
            role=draw(st.sampled_from([None, "user", "assistant"])),
            confidence=draw(st.none() | st.sampled_from([0.0, 0.25, 1.0])),
        )
        for number in numbers
    ]


@pytest.mark.requirement("C030", "C031", "C034", "R291", "R321", "R325")
@PROFILE
@given(memories=memories_of(joined))
def test_deduplication_keeps_those_of_the_twin(memories):
    kept = deduplicate(memories)
    assert [(each.id, each.provenance.duplicate_ids) for each in kept] == deduplicated(memories)
    assert deduplicate(kept) == kept


@pytest.mark.requirement("C045")
@PROFILE
@given(memories=memories_of(joined), data=st.data())
def test_deduplication_by_other_contents_keeps_those_of_the_twin(memories, data):
    size = len(memories)
    contents = data.draw(st.lists(joined, min_size=size, max_size=size))
    kept = deduplicate(memories, contents=contents)
    assert ids(kept) == [each for each, _ in deduplicated(memories, contents)]


@pytest.mark.requirement("C033", "C038", "C039", "R289", "R293", "R323")
@PROFILE
@given(
    memories=memories_of(joined),
    limit=st.integers(1, 15),
    strategy=st.sampled_from(["score_first", "recency_first"]),
    ratio=st.none() | st.integers(0, 20).map(lambda number: number / 20),
    data=st.data(),
)
def test_interleaving_fills_the_places_as_the_twin(memories, limit, strategy, ratio, data):
    shuffled = data.draw(st.permutations(memories))
    for name, share in ((strategy, ratio), ("alternate", None)):
        found = interleave(shuffled, limit, strategy=name, ratio=share)
        assert ids(found) == interleaved(memories, limit, name, share)
        assert [each.provenance.position for each in found] == list(range(len(found)))


@PROFILE
@given(memories=memories_of(joined))
def test_all_memories_that_fit_are_kept_and_the_block_is_that_of_the_twin(memories):
    assert enforce_budget(memories, 5000) == memories
    assert format_for_system_prompt(memories) == block(memories)


@examples(1000)
@given(memories=memories_of(hostile | hostile.map("a".__add__), size=4))
def test_no_text_of_a_memory_leaves_its_line(memories):
    text = format_for_system_prompt(memories)
    shown = [each for each in memories if line_of(each)]
    assert broken(text, shown) is None if shown else text == ""


def line_of(memory):
    """Return whether a memory has a line of its own."""
    return format_for_system_prompt([memory])


@pytest.mark.requirement("C041", "C039")
def test_no_step_changes_its_input():
    memories = tuple(OF_THREE_KINDS)
    copies = [copied(memory) for memory in memories]
    deduplicate(memories)
    interleave(memories, 3)
    enforce_budget(memories, 100)
    format_for_system_prompt(memories)
    assert list(memories) == copies
    assert all(memory.provenance == Provenance() for memory in memories)
