"""The responses of `/embeddings`: read, validated, and put in order."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from mnemic.http.failures import InvalidResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Response(msgspec.Struct):
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
        items = msgspec.json.decode(body, type=_Response).data
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
