"""The first sentences of a text."""

from mnemic._core import clip_sentences
from mnemic.model import validation
from mnemic.reporting.description import must_be

DEFAULT_SENTENCES = 2


def clip(text: str, max_sentences: int = DEFAULT_SENTENCES) -> str:
    """Return a text up to the end of its first sentences.

    The result is the start of the text as it stands, with "…" in the place of its final full
    stop, or behind another mark; quotes and brackets that close behind the full stop stay. A text
    of no more sentences is returned itself. A line end ends a sentence too, unless a long line
    goes on in lower case.

    Args:
        text: Any text.
        max_sentences: At least 1.

    Raises:
        InvalidArgumentError: If `max_sentences` is less than 1, or `text` holds a lone surrogate.
    """
    if not isinstance(text, str):
        raise must_be("text", "a str", text)
    return clip_sentences(text, validation.whole("max_sentences", max_sentences, minimum=1))
