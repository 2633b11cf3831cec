"""Texts of memories as data: they can begin no line, heading, tag, fence or role of their own."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from mnemic.policy import PayloadMemory, PromptForm

_NEVER: Final = datetime.fromtimestamp(0, UTC)
_FORM: Final = PromptForm()


def fenced(texts: Iterable[str]) -> list[str]:
    """Return texts on one line each, as a prompt's block has the contents of memories.

    Args:
        texts: Contents, tags and the like.
    """
    return _FORM.lines([PayloadMemory(id="", content=text, timestamp=_NEVER) for text in texts])
