"""Texts are clipped at their sentences."""

import pytest

from mnemic.context.packing import clip
from mnemic.errors import InvalidArgumentError


@pytest.mark.requirement("R294", "C040")
@pytest.mark.parametrize(
    ("text", "sentences", "wanted"),
    [
        ("Hello. world without end", 1, "Hello…"),
        ("Hello. world without end", 2, "Hello. world without end"),
        ("Pi is 3.14 or so. Yes. No.", 2, "Pi is 3.14 or so. Yes…"),
        ("The U.S.A. stamp is old. Keep it.", 1, "The U.S.A. stamp is old…"),
        ("Dr. Adams came. She left.", 1, "Dr. Adams came…"),
        ("See https://example.com/a.b?c=d. Then go.", 1, "See https://example.com/a.b?c=d…"),
        ("One.  Two.   Three.", 2, "One.  Two…"),
        ("first line\nsecond line\nthird line", 2, "first line\nsecond line…"),
        ("你好。世界。再见。", 2, "你好。世界…"),
        ("मैं आया। तुम गए। वह है।", 1, "मैं आया…"),
        ("no end at all and no signs in it", 1, "no end at all and no signs in it"),
        ("One. Two.", 2, "One. Two."),
        ("", 1, ""),
        ("Really? Yes. No.", 1, "Really?…"),
        ("Stop! Now.", 1, "Stop!…"),
        ("كيف حالك؟ أنا بخير.", 1, "كيف حالك؟…"),
        ("  One sentence. And another.  ", 2, "  One sentence. And another.  "),
    ],
)
def test_a_text_is_clipped_at_its_sentences_and_keeps_its_slice(text, sentences, wanted):
    assert clip(text, sentences) == wanted


@pytest.mark.requirement("R294")
@pytest.mark.parametrize("sentences", [0, -1, 1.5, "2", None])
def test_a_number_of_sentences_without_meaning_is_refused(sentences):
    with pytest.raises((InvalidArgumentError, TypeError)):
        clip("One. Two.", sentences)
