"""The searches of own patterns, beside Python's `re` and with the slower engine."""

import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from mnemic.context.redaction import Redaction, RedactionPattern, redact
from mnemic.errors import InvalidArgumentError

MARK = "\x1a"
EITHER = r"(?:\b|\B)"
"""Always true; beside é or 中 only the slower engine reads a Unicode word boundary."""

atoms = st.sampled_from(
    ["a", "b", "[ab]", "[^a]", "é", "1", r"\d", r"[^\W1]", r"\s", "ab", "中", "."]
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["+", "+?", "{2}", "{1,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(inner, inner, st.sampled_from(["*", "?", "*?", "??"])).map(
            lambda parts: f"{parts[0]}(?:{parts[1]}){parts[2]}"
        ),
        st.tuples(st.sampled_from([r"\b", r"\B", "^", "(?m:^)"]), inner).map("".join),
        st.tuples(inner, st.sampled_from([r"\b", r"\B", r"(?m:$)"])).map("".join),
    ),
    max_leaves=6,
)
# One line, as a prompt shows it: over line breaks and runs of blanks more is found than by `re`.
texts = st.text("aab1é中 ", max_size=24).map(lambda text: re.sub(" +", " ", text))


def redaction(pattern):
    own = RedactionPattern("own", pattern)
    try:
        return Redaction(enabled=True, patterns=(own,), replacement=MARK)
    except InvalidArgumentError:
        reject()


@pytest.mark.requirement("R296")
@given(patterns, texts)
def test_own_patterns_match_as_those_of_python(pattern, text):
    assert redact(text, redaction(pattern)) == re.sub(pattern, MARK, text)


@pytest.mark.requirement("C181")
@given(patterns, texts)
def test_both_engines_find_the_same(pattern, text):
    slow = redaction(f"{EITHER}(?:{pattern})")

    assert redact(text, slow) == redact(text, redaction(pattern))


@given(patterns, st.lists(texts, max_size=4))
def test_a_search_leaves_nothing_behind_for_the_next_text(pattern, several):
    kept = redaction(pattern)

    assert [redact(text, kept) for text in several] == [
        re.sub(pattern, MARK, text) for text in several
    ]


@pytest.mark.requirement("C181")
def test_a_pattern_of_too_many_states_is_still_found():
    """A search that would need a state for each of 2**18 pasts gives up on states alone."""
    pattern = "(?:a|é)[aé]{17}b"
    text = "".join("aé"[(7 * n * n + n // 3) % 5 % 2] for n in range(3_000)) + "b" + "é" * 50

    assert redact(text, redaction(pattern)) == re.sub(pattern, MARK, text)
