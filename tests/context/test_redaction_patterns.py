"""What each known pattern finds and leaves, beside several scripts, by the table of redactions."""

from collections import Counter

import pytest

from mnemic.context.redaction import Redaction, redact
from tests.support.redactions import cases


@pytest.mark.requirement("R296", "R297", "C045", "C046")
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_text_is_redacted_as_the_table_says(case):
    redaction = Redaction(enabled=True, patterns=case.patterns, replacement="#")
    assert redact(case.text, redaction) == case.left


def test_the_table_has_fifteen_texts_that_each_pattern_finds_and_fifteen_that_it_leaves():
    counts = Counter((case.name, case.topic) for case in cases())
    names = {case.name for case in cases() if case.topic == "found"}
    assert len(names) == 8
    assert min(counts[name, topic] for name in names for topic in ("found", "left")) >= 15
