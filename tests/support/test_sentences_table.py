"""The table of sentences is sound: its cases differ and its sentences lie in their texts."""

import pytest

from tests.support.sentences import BOUND, cases


def test_no_text_stands_in_the_table_twice():
    texts = [case.text for case in cases()]
    assert len(texts) == len(set(texts))
    assert len(texts) > 400


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_sentences_of_a_case_lie_in_its_text_in_order(case):
    at = 0
    for sentence in case.sentences:
        start = case.text.index(sentence, at)
        assert not case.text[at:start].strip()
        at = start + len(sentence)
    assert not case.text[at:].strip()
    assert BOUND not in case.text
