"""The core splits the texts of the table of sentences as their lines do."""

import pytest

from mnemic import _core
from tests.support.sentences import cases, split


@pytest.mark.requirement("C040")
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_text_is_split_at_the_bounds_of_its_line(case):
    assert split(case.text, _core.sentences(case.text)) == case.sentences


@pytest.mark.requirement("C040")
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_text_is_clipped_after_its_first_sentence(case):
    clipped = _core.clip_sentences(case.text, 1)
    if len(case.sentences) < 2:
        assert clipped == case.text
    else:
        start, ellipsis, end = clipped.strip().rpartition("…")
        assert ellipsis
        assert case.sentences[0].startswith(start)
        assert case.sentences[0].endswith(end)
        assert _core.clip_sentences(case.text, len(case.sentences)) == case.text
