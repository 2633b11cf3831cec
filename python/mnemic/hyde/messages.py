"""The role and the text of a message, in the forms that agents and their libraries have."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mnemic.hyde.cleaning import clean, without_tool_blocks

ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
"""The roles that a conversation is read for, by the names that libraries give them."""

MAX_DEPTH = 4
"""Parts within parts that are read."""

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", None})
_PAIR = 2


class Utterance(NamedTuple):
    """A message of the user or the assistant: its role, and its text without tool content."""

    role: str
    text: str

    @property
    def line(self) -> str:
        """The message as a line of a window."""
        return f"{self.role}: {self.text}"


def utterance_of(message: object) -> Utterance | None:
    """Return the utterance of a message; None for another role, and for a message without text.

    Args:
        message: A mapping or an object with role and content, a pair of both, or a text, which
            begins with "user: " or "assistant: ", or else is the user's.
    """
    role, content = _role_and_content(message)
    text = text_of(content) if role else ""
    return Utterance(role, text) if text else None


def text_of(content: object) -> str:
    """Return the text of a content, or of a message, without tool content and control characters.

    Args:
        content: A text, or parts of which those with text count, in lines of their own.
    """
    if not isinstance(content, str | list | tuple):
        content = _field(content, "content", "parts") or content
    return without_tool_blocks(clean("\n".join(_texts(content, MAX_DEPTH)))).strip()


def _role_and_content(message: object) -> tuple[str, object]:
    if isinstance(message, str):
        role, colon, rest = message.partition(": ")
        return (role, rest) if colon and role in ROLES.values() else ("user", message)
    if isinstance(message, list | tuple):
        return (_role(message[0]), message[1]) if len(message) == _PAIR else ("", None)
    role = _role(_field(message, "role", "type"))
    return role, _field(message, "content", "parts") if role else None


def _role(given: object) -> str:
    word = given.value if isinstance(given, Enum) else given
    return ROLES.get(word.lower(), "") if isinstance(word, str) else ""


def _field(holder: object, *names: str) -> object:
    """Return the first of some fields that is there and is not None."""
    for name in names:
        value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
        if value is not None:
            return value
    return None


def _texts(content: object, depth: int) -> Iterator[str]:
    """Yield the texts of a content; parts of tools, pictures and reasoning have none."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        if depth:
            for part in content:
                yield from _texts(part, depth - 1)
    elif content is not None and _field(content, "type") in _TEXT_PARTS:
        text = _field(content, "text")
        value = text if isinstance(text, str) else _field(text, "value")
        if isinstance(value, str):
            yield value
