"""Texts as a terminal may show them."""

import re
from typing import Final

_OBEYED: Final = (
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text in which what a terminal would obey is spelled out.

    Those are control characters, except new lines, and marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return re.sub(_OBEYED, lambda found: f"\\u{ord(found[0]):04x}", text)
