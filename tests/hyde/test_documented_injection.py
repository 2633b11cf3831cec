"""The injected text: the documented form, whole entries within the budget, nothing opens out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import estimate_tokens
from mnemic.hyde import TurnMemory, format_injection
from tests.support.entries import numbered

FORMS = ["markdown", "tagged"]
FIELDS = {"category": "patterns", "scope": "user"}


def ranked(number, content=None):
    """Return a found memory whose id is its number."""
    stored = numbered(number, content=content or f"fact{number:04}", **FIELDS)
    return TurnMemory(entry=stored, score=1 - number / 1000)


def many(count, length=250):
    return [
        ranked(number, f"fact{number:04} ".ljust(length, "x")) for number in range(1, 1 + count)
    ]


def shown(text):
    """Return the numbers of the memories of `many` in a text, in their order."""
    return [int(number) for number in re.findall(r"fact(\d{4})", text)]


def cost(text):
    """Return the smallest budget that a text fits, in tokens and in characters."""
    return max(estimate_tokens(text), -(-len(text) // 4))


@pytest.mark.requirement("T032", "R374")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nothing", [None, [], (), iter([])])
def test_no_memories_give_an_empty_text(form, nothing):
    assert format_injection(nothing, form=form) == ""
    assert format_injection(nothing, 100, form=form) == ""


@pytest.mark.requirement("R373", "R403", "C119", "C120", "C121", "R404", "T033", "T035", "T036")
@given(
    st.lists(st.tuples(st.sampled_from(["x", "語", "é"]), st.integers(0, 200)), max_size=8),
    st.integers(0, 500),
    st.sampled_from(FORMS),
)
def test_any_memories_fit_any_budget_the_best_first(texts, budget, form):
    memories = [
        ranked(number, f"fact{number:04} {letter * length}")
        for number, (letter, length) in enumerate(texts, 1)
    ]
    text = format_injection(memories, budget, form=form)
    found = shown(text)
    assert found == sorted(set(found))
    if not budget:
        assert found == list(range(1, 1 + len(memories)))
        return
    assert bool(text) == bool(found)
    assert not text or cost(text) <= budget
    assert text == format_injection(memories, budget, form=form)
    for number in set(range(1, 1 + len(memories))) - set(found):
        # Left out, so it does not fit after the better ones that are in.
        better = [memories[one - 1] for one in found if one < number]
        assert cost(format_injection([*better, memories[number - 1]], form=form)) + 12 > budget
