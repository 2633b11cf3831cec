"""Sentences, clipping and truncation as Python sees them; the core's own tests have the rules."""

import pytest

from mnemic import _core
from mnemic.context.packing import clip
from mnemic.errors import InvalidArgumentError

CUTS = (_core.clip_sentences, _core.truncate_to_tokens, _core.truncate)


def split(text):
    return [text[start:end] for start, end in _core.sentences(text)]


@pytest.mark.requirement("C040")
def test_places_are_counted_in_characters():
    text = "  Ça va ? 好。😀 Go!\nEnd "
    assert _core.sentences(text) == [(2, 9), (10, 13), (14, 17), (18, 21)]
    assert split(text) == ["Ça va ?", "好。😀", "Go!", "End"]
    assert _core.sentences("") == _core.sentences(" \n\u3000") == []


@pytest.mark.requirement("R294", "C040")
def test_a_clipped_text_is_the_start_of_the_original_with_an_ellipsis():
    assert clip("Hello. world without end") == "Hello. world without end"
    assert clip("One.  Two.   Three.") == "One.  Two…"
    assert clip("It is 3.14 in the U.S.A. today. So? Yes.", 1) == "It is 3.14 in the U.S.A. today…"
    assert clip("Really? Yes. No.", 1) == "Really?…"
    assert clip('He said "Go." Then he left.', 1) == 'He said "Go…"'
    assert clip("今天很好。我去。他来。", 2) == "今天很好。我去…"
    assert clip("one\ntwo\nthree") == "one\ntwo…"


def test_a_text_that_is_not_cut_is_the_same_object():
    text = " One. Two! "
    assert clip(text) is text
    assert _core.truncate(text, len(text)) is text
    assert _core.truncate_to_tokens(text, 4) is text
    texts = [text, "One. Two. Three."]
    clipped = _core.clip_sentences_batch(texts, 2)
    assert clipped[0] is text
    assert clipped == [text, "One. Two…"]


@pytest.mark.requirement("C041")
def test_truncation_counts_its_ellipsis_and_keeps_words_and_graphemes_whole():
    assert _core.truncate("tea for two", 9) == "tea for…"
    assert _core.truncate("tea", 1) == "…"
    assert _core.truncate("tea", 0) == _core.truncate_to_tokens("tea", 0) == ""
    assert _core.truncate("a👩‍👩‍👧b", 4) == "a…"
    assert _core.truncate_to_tokens("两个人的茶", 3) == "两个…"


@pytest.mark.parametrize("cut", CUTS)
def test_wrong_arguments_are_refused_by_name(cut):
    with pytest.raises(InvalidArgumentError, match=r"must be at least \d, got -1"):
        cut("tea", -1)
    with pytest.raises(InvalidArgumentError, match="lone surrogate at position 3"):
        cut("tea\ud800", 1)
    with pytest.raises(TypeError):
        cut("tea", "1")
    with pytest.raises(
        InvalidArgumentError, match=r"max_sentences must be at least 1, and at most .*, got 0"
    ):
        clip("tea", 0)
    with pytest.raises(InvalidArgumentError, match=r"texts\[1\] has a lone surrogate"):
        _core.clip_sentences_batch(["tea", "\ud800"], 1)


@pytest.mark.requirement("C041")
def test_a_passage_is_counted_in_characters_and_has_the_words_of_the_query():
    text = "Ça va ? 😀 Marta moved to Bergen in May. Bye."
    start, end, words = _core.passage(text, "Where did Marta move?", 8)
    assert text[start:end] == "Marta moved to Bergen in May."
    assert words == ["Marta", "move"]
    assert _core.passage("", "Marta", 8) == (0, 0, [])
