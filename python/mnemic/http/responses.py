"""The responses of `/chat/completions` and `/embeddings`: read, validated, and put in order."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from mnemic.reporting.description import described, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


class InvalidResponse(Exception):  # noqa: N818 - callers get another error for it
    """A response has another form than the protocol's; the message quotes nothing of it."""


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


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Vectors(msgspec.Struct):
    data: list[_Item]


def decoded_vectors(body: bytes, count: int, dimensions: int | None) -> NDArray[np.float32]:
    """Return the vectors of a response, shape (count, dimensions), in the order of the texts.

    Args:
        body: The response.
        count: Number of texts.
        dimensions: Length of each vector; None for any.

    Raises:
        InvalidResponse: If it does not have one vector of finite numbers for each text.
    """
    try:
        items = msgspec.json.decode(body, type=_Vectors).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponse(f"decode response: {error}") from None
    if len(items) != count:
        raise InvalidResponse(f"the response has {len(items)} vectors for {count} texts")
    rows = [_numbers(item.embedding) for item in _in_order(items)]
    lengths = sorted({len(row) for row in rows})
    if len(lengths) != 1 or not lengths[0]:
        raise InvalidResponse(f"the response has vectors of different lengths: {lengths}")
    if dimensions not in (None, lengths[0]):
        raise InvalidResponse(
            f"the response has vectors of {lengths[0]} dimensions in place of {dimensions}"
        )
    vectors = np.stack(rows)
    if not np.isfinite(vectors).all():
        raise InvalidResponse("the response has NaN or infinity in a vector")
    return vectors


def _in_order(items: Sequence[_Item]) -> list[_Item]:
    """Return the items by their indexes.

    Protocol buffers leave out an index of 0, and some services all of them: these vectors are in
    the order of the texts.
    """
    without = sum(item.index is None for item in items)
    if without == len(items):
        return list(items)
    if without > 1:
        raise InvalidResponse(f"the response has {without} vectors without an index")
    ordered: list[_Item | None] = [None] * len(items)
    for item in items:
        index = item.index or 0
        if not 0 <= index < len(items):
            raise InvalidResponse(
                f"the response has index {index}, which is out of range for {len(items)} texts"
            )
        if ordered[index] is not None:
            raise InvalidResponse(f"the response has index {index} twice: one is missing")
        ordered[index] = item
    return [item for item in ordered if item is not None]


def _numbers(given: list[float] | str) -> NDArray[np.float32]:
    if isinstance(given, list):
        with np.errstate(over="ignore"):  # infinite ones are refused later
            return np.array(given, dtype=np.float32)
    try:
        return np.frombuffer(base64.b64decode(given, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        raise InvalidResponse(
            "decode response: a vector is neither numbers nor base64 of float32"
        ) from None
