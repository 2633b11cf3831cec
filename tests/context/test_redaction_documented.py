"""Redaction keeps the documented defaults and the rulings about them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.context.redaction import Redaction, redact
from mnemic.errors import InvalidArgumentError, MnemicError
from tests.support.tiers import examples

DEFAULT = Redaction(enabled=True)


@pytest.mark.requirement("R297")
def test_redaction_is_off_by_default_and_replaces_with_the_documented_word():
    text = "Mail john.doe@example.com, 123-45-6789"
    assert redact(text, Redaction()) == text
    assert Redaction().replacement == "[REDACTED]"


@pytest.mark.requirement("R296", "R297", "C046")
@pytest.mark.parametrize(
    "secret",
    [
        "123-45-6789",
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "378282246310005",
        "3782 822463 10005",
        "4222222222222",
        "6011000990139424",
        "john.doe@example.com",
        "JOHN.DOE+tag@EXAMPLE.CO.UK",
        "a_b%c@x-y.org",
    ],
)
def test_the_documented_secrets_are_replaced(secret):
    assert redact(f"It is {secret}, so {secret}.", DEFAULT) == "It is [REDACTED], so [REDACTED]."
    assert redact(secret, DEFAULT) == "[REDACTED]"


@pytest.mark.requirement("C046")
@pytest.mark.parametrize(
    "text",
    [
        "order 1234567812345678",
        "order 4111111111111112",
        "4111 1111 1111 1112",
        "call 12-345-6789",
        "at 12:30 on 2024-05-01",
        "me@home",
        "3.14159265358979",
        "",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text, DEFAULT) == text


@pytest.mark.requirement("C047")
@pytest.mark.parametrize("replacement", ["$1", "$0", "\\1", "\\g<0>", "${name}", "", "█"])
def test_a_replacement_is_literal(replacement):
    redaction = Redaction(enabled=True, patterns=("(t)ea",), replacement=replacement)
    assert redact("tea, tea", redaction) == f"{replacement}, {replacement}"


@pytest.mark.requirement("C047")
@pytest.mark.parametrize("pattern", ["(", "[", "a{2", "*a", r"(?<name", "(?P<n>a)(?P<n>b)"])
def test_a_broken_pattern_is_refused_when_configured(pattern):
    with pytest.raises(InvalidArgumentError) as refused:
        Redaction(enabled=True, patterns=(pattern,))
    assert pattern in str(refused.value)
    with pytest.raises(InvalidArgumentError):
        Redaction(enabled=False, patterns=("email", pattern))


@pytest.mark.requirement("C047")
def test_a_pattern_that_is_too_large_is_refused():
    for pattern in ("(?:a{1000}){1000}", "(" * 5000 + ")" * 5000, "a" * 1_000_000):
        with pytest.raises(InvalidArgumentError):
            Redaction(enabled=True, patterns=(pattern,))


@pytest.mark.requirement("C181")
@pytest.mark.parametrize("pattern", [r"(?<=a)b", r"(?!a)b", r"(?=a)b", r"(?<!a)b", r"(a)\1"])
def test_look_around_and_back_references_are_refused_with_their_name(pattern):
    with pytest.raises(InvalidArgumentError, match=r"look-?around|back-?reference"):
        Redaction(enabled=True, patterns=(pattern,))


@pytest.mark.requirement("C181")
@pytest.mark.parametrize("pattern", [r".*[^A-Z]|[A-Z]", r"(a+)+$", r"(?:a|a)*b", r"[a-z]*x|a"])
@pytest.mark.parametrize("text", ["A" * 100_000, "a" * 100_000, "aB" * 50_000])
def test_no_pattern_hangs(pattern, text):
    redaction = Redaction(enabled=True, patterns=(pattern,))
    began = time.process_time()
    try:
        redact(text, redaction)
    except MnemicError as refused:
        assert text[:20] not in str(refused)  # noqa: PT017 - either outcome is sound
    # An unbounded quadratic scan of 100 kB takes tens of seconds; the bound is some milliseconds.
    assert time.process_time() - began < 2


@pytest.mark.requirement("C045", "R296")
@pytest.mark.parametrize(
    "secret",
    [
        "john.\u200bdoe@exam\u200bple.com",
        "john.doe@\u00adexample.com",
        "j\u202eohn.doe@example.com",
        "john\u0000.doe@example.com",
        "\ufeffjohn.doe\u2060@example.com",
        "123-45-\u200d6789",
        "4111\u200b1111\u200b1111\u200b1111",
        "4111 1111 \ufe0f1111 1111",
    ],
)
def test_invisible_characters_hide_no_secret_and_leave_no_fragment_of_one(secret):
    assert redact(f"It is {secret}, so.", DEFAULT) == "It is [REDACTED], so."
    families = "👩‍👩‍👧‍👦 and ann@example.com"
    assert redact(families, DEFAULT) == "👩‍👩‍👧‍👦 and [REDACTED]"


@pytest.mark.requirement("R288", "R296")
def test_own_patterns_stand_beside_the_documented_ones():
    redaction = Redaction(enabled=True, patterns=(*Redaction().patterns, r"tea\d+"))
    assert redact("tea12 a@b.io", redaction) == "[REDACTED] [REDACTED]"


PROFILE = examples(200)
pieces = st.sampled_from(
    ["a@b.io", "4111 1111 1111 1111", "123-45-6789", " ", ".", "é", "漢", "😀", "x", "-", "@", "1"]
)


@PROFILE
@given(before=st.lists(pieces, max_size=5), after=st.lists(pieces, max_size=5))
def test_a_second_redaction_finds_nothing(before, after):
    text = "".join([*before, " ann@example.com ", *after])
    once = redact(text, DEFAULT)
    assert "ann" not in once
    assert redact(once, DEFAULT) == once
