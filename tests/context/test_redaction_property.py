"""Redaction beside naive twins: check digits, whole matches, repeated and cut texts."""

# ruff: noqa: RUF001 - texts in many scripts are the point

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.context.redaction import (
    KNOWN_PATTERNS,
    Redaction,
    RedactionPattern,
    redact,
    redact_batch,
)
from tests.support.redactions import EMAILS, FOUND
from tests.support.tiers import examples

ALL = Redaction(enabled=True, patterns=tuple(KNOWN_PATTERNS), replacement="[REDACTED]")
LETTERS = "abcDEF019  .,:;-–_@+()/#\n\"'%é中号ж١１"
pieces = st.one_of(
    st.text(LETTERS, max_size=8),
    st.sampled_from(FOUND),
    st.sampled_from(
        ["::", "sk-", "eyJ", "@", "+1 ", "-----BEGIN ", "GB82", "255.", "\u200b", "\u00ad", "\x00"]
    ),
)
texts = st.lists(pieces, max_size=8).map("".join)
breaks = st.sampled_from(["\n", "\r\n> ", "\u2028", "_", "**", "`", "~~", "12", "a@b.io", "😀"])
digits = st.text(string.digits, min_size=13, max_size=19)


def only(*patterns, replacement="#"):
    return Redaction(enabled=True, patterns=patterns, replacement=replacement)


def luhn(number):
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value // 10 + value % 10
    return total % 10 == 0


def with_check_digit(payload):
    return next(payload + digit for digit in string.digits if luhn(payload + digit))


@pytest.mark.requirement("C046")
@given(digits)
def test_a_card_is_a_number_that_passes_luhn(number):
    expected = "#" if luhn(number) else number

    assert redact(number, only("card")) == expected
    assert redact(f"号码{number}。", only("card")) == f"号码{expected}。"


@given(st.text(string.digits + " -x", max_size=30))
def test_a_check_of_an_own_pattern_is_luhn(text):
    own = only(RedactionPattern("own", r"(?s).+", "luhn"))
    numbers = [letter for letter in text if letter.isdigit()]
    passes = len(numbers) > 1 and luhn("".join(numbers))

    assert redact(text, own) == ("#" if passes else text)


@pytest.mark.requirement("C046")
@given(st.text(string.digits, min_size=15, max_size=15), st.sampled_from(" -.\u00a0"))
def test_a_card_in_groups_is_found(payload, separator):
    number = with_check_digit(payload)
    groups = separator.join(number[at : at + 4] for at in range(0, 16, 4))

    assert redact(f"x {groups} y", only("card")) == "x # y"


LENGTHS = {"GB": 22, "DE": 22, "FR": 27, "NO": 15, "MT": 31, "SA": 24, "LC": 32}


def remainder(number):
    moved = number[4:] + number[:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97


@given(st.data(), st.sampled_from(sorted(LENGTHS)), st.booleans(), st.booleans())
def test_an_iban_has_its_countrys_length_and_check_digits(data, country, is_right, is_grouped):
    size = LENGTHS[country] - 4
    body = data.draw(st.text(string.digits + string.ascii_uppercase, min_size=size, max_size=size))
    check = 98 - remainder(f"{country}00{body}")
    number = f"{country}{check if is_right else (check + 1) % 97:02}{body}"
    shown = (
        " ".join(number[at : at + 4] for at in range(0, len(number), 4)) if is_grouped else number
    )

    assert (remainder(number) == 1) == is_right
    assert redact(f"({shown})", only("iban")) == ("(#)" if is_right else f"({shown})")


@examples(300)
@given(st.lists(pieces | breaks, max_size=8).map("".join))
def test_nothing_is_found_in_a_redacted_text(text):
    redacted = redact(text, ALL)

    assert redact(redacted, ALL) == redacted


@given(texts, st.sampled_from(["", "#", "$1", "[REDACTED]", "中"]))
def test_only_matches_change(text, replacement):
    clean = "\x1a".join(redact(text, only(*KNOWN_PATTERNS, replacement="\x1a")).split("\x1a"))
    redacted = redact(text, only(*KNOWN_PATTERNS, replacement=replacement))

    assert redacted == clean.replace("\x1a", replacement)


@given(st.lists(texts, max_size=5))
def test_a_batch_is_each_text_alone_with_the_number_of_its_replacements(several):
    found = redact_batch(several, only(*KNOWN_PATTERNS, replacement="\x1a"))

    assert [text for text, _ in found] == [
        redact(text, only(*KNOWN_PATTERNS, replacement="\x1a")) for text in several
    ]
    assert all(text.count("\x1a") == count for text, count in found)


@pytest.mark.requirement("C045")
@given(st.lists(st.sampled_from(EMAILS), min_size=1, max_size=3), st.integers(0, 60))
def test_a_cut_after_redaction_leaves_no_part_of_a_match(addresses, length):
    text = " and ".join(addresses)
    words = {word for address in addresses for word in address.split("@")[0].split() if "." in word}
    redacted = redact(text, only("email"))[:length]

    assert not any(word in redacted for word in words)
    assert "@" not in redacted


@given(texts, texts)
def test_lines_apart_are_redacted_as_lines_together(first, second):
    apart = redact(first, ALL), redact(second, ALL)

    assert redact(f"{first}\n\n;\n\n{second}", ALL) == "\n\n;\n\n".join(apart)


@pytest.mark.requirement("R288")
@given(texts)
def test_own_patterns_are_found_as_the_known_ones_beside_them(text):
    """An own pattern and a known one together redact all that one after the other would."""
    # A visible replacement: an invisible one beside a match is removed by the second pass.
    both = redact(text, only("email", r"\d+", replacement="█"))
    after = redact(redact(text, only("email", replacement="█")), only(r"\d+", replacement="█"))

    assert both == after
