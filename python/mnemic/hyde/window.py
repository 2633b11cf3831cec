"""The window of a conversation that hypotheses are written from."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mnemic.model import validation
from mnemic.reporting.description import must_be

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # a colour or a movement of the cursor
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # a title or a link of the terminal
    r"|[ -/]*[0-~])?"  # any other sequence
)
_LINE_BREAK = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_TOOL_NAMES = (
    "tool|tool_calls?|tool_use|tool_results?|tool_response|function_calls?|function_results?"
)
_TOOL_TAG = re.compile(rf"<(/?)({_TOOL_NAMES})(?:\s[^<>]*?)?(/?)>", re.IGNORECASE)


def clean(text: str) -> str:
    r"""Return a text that UTF-8 can express, without escape sequences and control characters.

    Line breaks of every kind become "\n", tabs stay, and a lone surrogate becomes a replacement
    character. Time is linear.
    """
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _CONTROL.sub("", _LINE_BREAK.sub("\n", text))
    return _SURROGATE.sub(REPLACEMENT, text)


def without_tool_blocks(text: str) -> str:
    """Return a text without the blocks of tool calls and tool results, `<tool>…</tool>` and others.

    Blocks may hold further ones. A block that is not closed ends with the text; a closing tag
    without a block is removed. Time is linear.
    """
    if "<" not in text:
        return text
    kept: list[str] = []
    blocks: list[str] = []  # those that are open, the outermost first
    numbers = Counter[str]()
    end = 0
    for tag in _TOOL_TAG.finditer(text):
        if not blocks:
            kept.append(text[end : tag.start()])
        end = tag.end()
        name = tag[2].lower()
        if not (tag[1] or tag[3]):
            blocks.append(name)
            numbers[name] += 1
        while tag[1] and numbers[name]:
            closed = blocks.pop()
            numbers[closed] -= 1
            if closed == name:
                break
    if not blocks:
        kept.append(text[end:])
    return "".join(kept)


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


SEPARATOR = "\n---\n"
"""Text between the lines of a window, which counts as part of it."""

MIN_CUT_CHARACTERS = 40
"""A message is cut only if at least this many characters of it are left: fewer are a fragment."""

_CUT = " … "
_JOINERS = ("\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}")
_MAX_SHIFT = 32
"""Code points by which a cut moves to stay outside a character that has several."""


def build_conversation_window(
    messages: Iterable[object] | None,
    last_summarization_index: int = 0,
    *,
    message: object = None,
    max_characters: int = 8000,
) -> list[str]:
    r"""Return the newest messages of the user and the assistant, the oldest first.

    Other roles, tool calls, tool results and messages without text are left out. Messages are read
    from the newest one back, as many as there is space for. The current message is always in the
    window, and once; one that is too long loses its middle.

    Args:
        messages: The conversation. A message is a mapping or an object with `role` and `content`,
            a pair of both, or a text. A content is a text or a list of parts.
        last_summarization_index: Index of the first message after the last summary; one outside
            the conversation is moved to its nearest end.
        message: The current message of the user, also if it is the last one of the conversation
            already; without it, that is the user's last one.
        max_characters: Maximum number of characters of the window joined by "\n---\n".

    Returns:
        Lines such as "user: Use tabs, please".

    Raises:
        InvalidArgumentError: If `messages` is not iterable, or a number is of a wrong type.
    """
    most = validation.whole("max_characters", max_characters, minimum=1)
    utterances = _newest_first(_sequence(messages), _start(last_summarization_index))
    newer: list[Utterance] = []
    text = "" if message is None else text_of(message)
    current = Utterance("user", text) if text else _last_of_user(utterances, newer, most)
    window = _Window(most)
    line = "" if current is None else window.fitted(current, 1)
    newest = window.take(iter(newer))
    older = window.take(_without_last_of_user(utterances, text) if text else utterances)
    return [*reversed(older), *filter(None, [line]), *reversed(newest)]


def _start(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise must_be("last_summarization_index", "an int", given)
    return max(0, given)


def _sequence(messages: Iterable[object] | None) -> Sequence[object]:
    if messages is None:
        return ()
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        raise must_be("messages", "a list of messages", messages)
    return messages if isinstance(messages, Sequence) else list(messages)


def _newest_first(messages: Sequence[object], start: int) -> Iterator[Utterance]:
    for place in range(len(messages) - 1, start - 1, -1):
        utterance = utterance_of(messages[place])
        if utterance is not None:
            yield utterance


def _last_of_user(
    utterances: Iterator[Utterance], newer: list[Utterance], most: int
) -> Utterance | None:
    """Return the user's last utterance, and collect those after it as far as there may be space."""
    length = 0
    for utterance in utterances:
        if utterance.role == "user":
            return utterance
        if length <= most:
            newer.append(utterance)
            length += len(utterance.text)
    return None


def _without_last_of_user(utterances: Iterator[Utterance], text: str) -> Iterator[Utterance]:
    """Yield utterances without the newest one of the user, if it is the current message."""
    is_first = True
    for utterance in utterances:
        if not (is_first and utterance == ("user", text)):
            yield utterance
        is_first = is_first and utterance.role != "user"


class _Window:
    """The characters that are left for lines."""

    def __init__(self, most: int) -> None:
        self._left = most + len(SEPARATOR)
        self._is_full = False

    def take(self, utterances: Iterator[Utterance]) -> list[str]:
        """Return the lines of utterances, the newest first, until one does not fit whole."""
        lines: list[str] = []
        while not self._is_full and (utterance := next(utterances, None)) is not None:
            line = self.fitted(utterance, MIN_CUT_CHARACTERS)
            if line:
                lines.append(line)
        return lines

    def fitted(self, utterance: Utterance, least: int) -> str:
        """Return the line of an utterance, cut if need be; "" if too few characters are left."""
        available = self._left - len(SEPARATOR) - len(utterance.role) - 2
        fits = len(utterance.text) <= available
        self._is_full = self._is_full or not fits
        if not fits and available < least:
            return ""
        line = f"{utterance.role}: {without_middle(utterance.text, available)}"
        self._left -= len(line) + len(SEPARATOR)
        return line


def without_middle(text: str, length: int) -> str:
    """Return a text's beginning and end, at most `length` characters with the mark between them.

    No character of several code points is cut.
    """
    if len(text) <= length:
        return text
    if length <= 2 * len(_CUT):
        return text[: _boundary(text, max(0, length), -1)]
    half = (length - len(_CUT)) // 2
    head = text[: _boundary(text, half, -1)].rstrip()
    tail = text[_boundary(text, len(text) - half, 1) :].lstrip()
    return f"{head}{_CUT}{tail}"


def _boundary(text: str, at: int, step: int) -> int:
    """Return the nearest end of a character, before a place or after it."""
    places = range(at, at + step * _MAX_SHIFT, step)
    return next((place for place in places if _ends(text, place)), at)


def _ends(text: str, at: int) -> bool:
    """Return whether a character ends before a place."""
    if not 0 < at < len(text):
        return True
    return not (text[at - 1] in _JOINERS or _continues(text[at]))


def _continues(letter: str) -> bool:
    return (
        letter in _JOINERS
        or unicodedata.category(letter).startswith("M")
        or "\U0001f3fb" <= letter <= "\U0001f3ff"  # tones of skin
    )
