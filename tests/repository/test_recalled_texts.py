"""Digests of recalled texts, and the texts that mostly consist of them."""

import pytest

from mnemic.repository import recall_guard
from mnemic.repository.recall_guard import RecalledTexts, digest_of

OSLO = "Lives in Oslo with two cats"
NUTS = "Allergic to peanuts and walnuts"
UNITS = "Prefers metric units for distances"


def texts(*contents):
    return RecalledTexts({row: digest_of(text) for row, text in enumerate(contents, 1)})


@pytest.mark.parametrize(
    "text",
    [OSLO, f"  {OSLO.upper()}. ", f"“{OSLO}”", OSLO.replace(" ", "\n"), f"- {OSLO}", f"({OSLO})"],
)
def test_a_text_is_repeated_whatever_its_case_white_space_and_punctuation(text):
    assert texts(NUTS, OSLO).repeated_by(text) == (2,)


@pytest.mark.parametrize(
    ("recalled", "text"),
    [
        ("likes C++", "likes C#"),
        ("it is -5 degrees", "it is 5 degrees"),
        ("costs .5 euros", "costs 5 euros"),
        ("she likes tea", "he likes tea"),
        (OSLO, "with two cats lives in Oslo"),
    ],
)
def test_texts_with_other_words_repeat_nothing(recalled, text):
    assert texts(recalled).repeated_by(text) == ()


def test_a_sentence_that_was_extended_is_a_new_one():
    assert texts(OSLO).repeated_by(f"{OSLO} and a dog") == ()
    assert texts(OSLO).repeated_by(f"{OSLO} now") == ()
    long = " ".join(f"word{number}" for number in range(40))
    assert texts(long).repeated_by(f"so {long}") == (1,)


def test_a_text_of_several_recalled_ones_is_repeated():
    found = texts(OSLO, NUTS, UNITS).repeated_by(f"What I know about her: {OSLO}; {NUTS}.")
    assert found == (2,), "the longest is named"


def test_a_text_of_which_less_than_half_was_recalled_is_a_new_one():
    rest = "and so on, about many other things that were never said before in any conversation"
    assert texts(OSLO, NUTS).repeated_by(f"{OSLO}, {NUTS} {rest}") == ()


def test_a_short_text_counts_only_as_a_whole():
    assert texts("Oslo").repeated_by("in Oslo") == ()
    assert texts("Oslo").repeated_by("oslo!") == (1,)


@pytest.mark.parametrize(
    "block",
    [
        f"[1] 2026-05-01 {OSLO}",
        (
            f"## Relevant Context from Previous Conversations\n\n### Known Facts\n- {OSLO} "
            "(confidence: 0.95)\n\n_Retrieved 1 memory_"
        ),
        f"### Previous Messages\n[2026-03-02T00:00:00Z] user: {OSLO}",
    ],
)
def test_the_frame_of_a_block_for_a_prompt_does_not_count(block):
    assert texts(OSLO).repeated_by(block) == (1,)


def test_all_memories_with_the_words_are_named():
    assert texts(OSLO, NUTS, OSLO.lower()).repeated_by(OSLO) == (1, 3)


def test_texts_without_words_are_not_compared():
    assert digest_of("") is None
    assert digest_of(" - ") is None
    assert texts(OSLO).repeated_by("") == ()


def test_long_texts_are_not_compared(monkeypatch):
    monkeypatch.setattr(recall_guard, "MAX_CHARACTERS", 20)
    assert digest_of(OSLO) is None
    assert texts("Oslo").repeated_by("Oslo" + " " * 40) == ()


def test_a_digest_holds_no_word_and_differs_between_processes(monkeypatch):
    one = digest_of(OSLO)
    assert "oslo" not in repr(one).lower()
    monkeypatch.setattr(recall_guard, "_KEY", b"another process")
    assert digest_of(OSLO).words != one.words
