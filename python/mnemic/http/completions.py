"""The responses of `/chat/completions`: the text in them, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from mnemic.http.failures import InvalidResponse
from mnemic.reporting.description import described, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_PARTS = frozenset({"text", "output_text"})
"""Types of the parts of a content that are its text; others are, say, thoughts or images."""

REFUSING_REASONS = frozenset({"content_filter", "safety", "error"})
"""Reasons of an end after which a text is none of the model's, or is cut by a filter."""


class _Message(msgspec.Struct):
    content: Any = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Response(msgspec.Struct):
    choices: list[_Choice]


def decoded_text(body: bytes) -> str:
    """Return the text of the first choice, unchanged.

    A text that was cut at the limit of tokens is returned as it is.

    Args:
        body: The response.

    Raises:
        InvalidResponse: If there is no choice, or its content is blank, refused or no text.
    """
    try:
        choices = msgspec.json.decode(body, type=_Response).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponse(f"decode response: {error}") from None
    if not choices:
        raise InvalidResponse("the response has no choice")
    choice = choices[0]
    reason = f"finish_reason {quoted(choice.finish_reason)}"
    if choice.message.refusal:
        raise InvalidResponse(f"the model refused to answer ({reason})")
    if choice.finish_reason in REFUSING_REASONS:
        raise InvalidResponse(f"the answer was withheld ({reason})")
    text = _text(choice.message.content)
    if not text.strip():
        advice = "; allow more max_tokens" if choice.finish_reason == "length" else ""
        raise InvalidResponse(f"the answer has no text ({reason}){advice}")
    return text


def _text(content: object) -> str:
    """Return a content's text; that of its parts is joined."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(_texts_of(cast("list[object]", content)))
    raise InvalidResponse(f"the content of the answer is no text but {described(content)}")


def _texts_of(parts: list[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        fields = cast("dict[str, object]", part) if isinstance(part, dict) else {}
        text = fields.get("text")
        if fields.get("type") in TEXT_PARTS and isinstance(text, str):
            yield text
