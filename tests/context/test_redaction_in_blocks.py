"""No text of a prompt block has a match of the redaction, nor a fragment of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.context.packing import PackingPlan, pack
from mnemic.context.redaction import Redaction, redact
from tests.support.policy_twin import made
from tests.support.tiers import examples

REDACTION = Redaction(enabled=True)
PLAN = PackingPlan(redaction=REDACTION, clip_sentences=2, max_tokens=120)


@pytest.mark.requirement("C047")
def test_a_replacement_that_matches_its_own_pattern_is_made_once():
    shouting = Redaction(enabled=True, patterns=("[A-Z]+",))
    packed = pack([made(1, "so LOUD\nand # <b>")], PackingPlan(redaction=shouting))
    assert "[REDACTED]" in packed.text
    assert "[[" not in packed.text


@pytest.mark.requirement("C045")
@pytest.mark.parametrize("before", ["6789 ", "123-45-6789 \n\n", "6789\n"])
@pytest.mark.parametrize("after", ["", " 6789"])
def test_digits_that_pass_with_a_part_of_a_card_leave_none_of_it(before, after):
    """6789 4111 1111 1111 is a card's number by its check sum."""
    assert "1111" not in redact(f"{before}4111 1111 1111 1111{after}", REDACTION)


PROFILE = examples(300)
SECRETS = ["ann@example.com", "4111 1111 1111 1111", "123-45-6789", "4111111111111111"]
HIDERS = ["", "", "\u200b", "\u00ad", "\u2060", "\x00", "\u202e"]
FILLERS = [
    "tea. ",
    "чай\n",
    "# ",
    "<b> ",
    "word " * 60,
    "茶。",
    "👩‍👩‍👧 ",
    "x" * 200 + " ",
    "3.14 ",
    "\n\n",
]


@st.composite
def hidden_secrets(draw):
    secret = draw(st.sampled_from(SECRETS))
    hiders = draw(st.lists(st.sampled_from(HIDERS), min_size=len(secret), max_size=len(secret)))
    return "".join(map("".join, zip(secret, hiders, strict=True)))


@PROFILE
@given(
    parts=st.lists(st.tuples(st.sampled_from(FILLERS), hidden_secrets()), min_size=1, max_size=4),
    sentences=st.none() | st.integers(1, 5),
    budget=st.integers(50, 400),
    kind=st.sampled_from(["fact", "message", "summary"]),
)
def test_no_fragment_of_a_match_is_in_a_block(parts, sentences, budget, kind):
    content = "".join(f"{filler}{secret} " for filler, secret in parts)
    plan = PackingPlan(redaction=REDACTION, clip_sentences=sentences, max_tokens=budget)
    packed = pack([made(1, content, type=kind, minutes=-60 * 24 * 400)], plan)
    text = packed.text
    assert redact(text, REDACTION) == text
    for fragment in ("ann", "example", "4111", "1111", "123-", "6789"):
        assert fragment not in text
