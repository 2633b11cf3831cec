"""Redaction: patterns found in many scripts, refused patterns, a budget of work."""

import pickle
import time

import pytest

from mnemic import errors
from mnemic.context.redaction import (
    DEFAULT_PATTERNS,
    KNOWN_PATTERNS,
    Redaction,
    RedactionPattern,
    redact,
    redact_batch,
)

ON = Redaction(enabled=True)


def only(*patterns, replacement="#"):
    return Redaction(enabled=True, patterns=patterns, replacement=replacement)


@pytest.mark.requirement("R297", "C046")
def test_it_is_off_by_default_with_the_three_documented_patterns():
    redaction = Redaction()
    text = "mail john@example.com"

    assert not redaction.enabled
    assert redaction.patterns == DEFAULT_PATTERNS == ("ssn", "card", "email")
    assert redaction.replacement == "[REDACTED]"
    assert set(DEFAULT_PATTERNS) <= set(KNOWN_PATTERNS)
    assert redact(text, redaction) is text
    assert redact_batch([text], redaction) == [(text, 0)]


@pytest.mark.requirement("R296")
def test_every_match_of_every_pattern_is_replaced():
    text = "a@b.co, c@d.org and 123-45-6789 paid with 4111 1111 1111 1111."

    assert redact(text, ON) == ("[REDACTED], [REDACTED] and [REDACTED] paid with [REDACTED].")
    assert redact_batch(["a@b.co c@d.org", "none"], ON) == [
        ("[REDACTED] [REDACTED]", 2),
        ("none", 0),
    ]


@pytest.mark.requirement("C047")
@pytest.mark.parametrize("replacement", ["$1", "$0", "\\1", "\\g<0>", "${name}", "$$", "", "█"])
def test_a_replacement_is_literal(replacement):
    own = only("(t)ea", replacement=replacement)
    assert redact("tea, tea", own) == f"{replacement}, {replacement}"


@pytest.mark.requirement("C047", "C181")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        *((around, "look-around") for around in ("(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b")),
        (r"(a)\1", "backreferences are not supported"),
        ("(", "unclosed group"),
        ("[", "unclosed character class"),
        ("a{2", "unclosed counted repetition"),
        ("*a", "repetition operator missing expression"),
        ("(?<name", "unclosed capture group name"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ("a{2,1}", "invalid repetition count range"),
        (r"\p{Klingon}", "Unicode property not found"),
        ("a*", "matches the empty text"),
        ("", "matches the empty text"),
        (r"\b", "matches the empty text"),
        ("x{1000}{1000}", "exceeded limit"),
        ("(" * 100 + "x" + ")" * 100, "nested parentheses"),
        ("x" * 5000, "at most 4096"),
        ("e-mail", "did you mean 'email'"),
    ],
)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_bad_pattern_is_refused_when_it_is_configured(pattern, words, enabled):
    with pytest.raises(errors.InvalidArgumentError, match=words) as refused:
        Redaction(enabled=enabled, patterns=("email", pattern))

    assert "patterns[1]" in str(refused.value)


@pytest.mark.requirement("C181")
@pytest.mark.parametrize("text", ["A" * 100_000, "é\n" + "A" * 100_000])
@pytest.mark.parametrize("pattern", [".*[^A-Z]|[A-Z]", r".*[^A-Z]\b|[A-Z]"])
def test_quadratic_work_ends_in_an_error_that_names_the_pattern(pattern, text):
    with pytest.raises(errors.RedactionBudgetError, match="own") as spent:
        redact(text, only(RedactionPattern("own", pattern)))

    assert "AAA" not in str(spent.value)


@pytest.mark.requirement("C181")
def test_linear_work_answers():
    length = 100_000

    assert redact("a" * length, only("(a+)+$")) == "#"
    assert redact("a" * length + "b", only("(a+)+$")) == "a" * length + "b"
    assert redact("a@b.co " * length, only("email")) == "# " * length
    assert redact("é@b.co " * length, only(r"\b\w+@\w+\.\w+\b")) == "# " * length


def test_matches_that_overlap_become_one_replacement():
    assert redact("abcd", only("abc", "bcd")) == "#"
    assert redact("abcd", only("ab", "cd")) == "##"
    assert redact("abcd", only("b", "abcd", "c")) == "#"


def test_a_check_passes_over_a_match():
    checked = only(RedactionPattern("digits", r"\d{4,}", "luhn"))

    assert redact("4111111111111111 4111111111111112", checked) == "# 4111111111111112"


@pytest.mark.requirement("C047")
def test_a_redaction_is_a_plain_value():
    redaction = Redaction(patterns=("email", r"EMP-\d+", RedactionPattern("own", "x+")))

    copy = pickle.loads(pickle.dumps(redaction))  # noqa: S301 - written the moment before

    assert (copy, hash(copy)) == (redaction, hash(redaction))
    assert redaction != Redaction()
    assert redaction.to_dict()["patterns"] == [
        "email",
        r"EMP-\d+",
        {"name": "own", "regex": "x+", "check": None},
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"enabled": 1}, "enabled"),
        ({"patterns": "email"}, "patterns must be"),
        ({"patterns": (1,)}, r"patterns\[0\]"),
        ({"replacement": None}, "replacement"),
        ({"patterns": (RedactionPattern("a", "b", "mod11"),)}, "there is no check"),
    ],
)
def test_wrong_values_are_refused_by_field(arguments, words):
    with pytest.raises(errors.InvalidArgumentError, match=words):
        Redaction(**arguments)


def test_a_lone_surrogate_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match="position 3"):
        redact("abc\ud800", ON)
    with pytest.raises(errors.InvalidArgumentError, match=r"texts\[1\]"):
        redact_batch(["a", "\ud800"], ON)


@pytest.mark.requirement("C181")
@pytest.mark.parametrize("pattern", [r".*[^A-Z]|[A-Z]", r"(a+)+$", r"(?:a|a)*b", r"[a-z]*x|a"])
@pytest.mark.parametrize("text", ["A" * 100_000, "a" * 100_000, "aB" * 50_000])
def test_no_pattern_hangs(pattern, text):
    redaction = Redaction(enabled=True, patterns=(pattern,))
    began = time.process_time()
    try:
        redact(text, redaction)
    except errors.MnemicError as refused:
        assert text[:20] not in str(refused)  # noqa: PT017 - either outcome is sound
    # An unbounded quadratic scan of 100 kB takes tens of seconds; the bound is some milliseconds.
    assert time.process_time() - began < 2


def test_a_family_stays_whole_beside_a_secret():
    assert redact("👩‍👩‍👧‍👦 and ann@example.com", ON) == "👩‍👩‍👧‍👦 and [REDACTED]"
