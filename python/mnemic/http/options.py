"""Validation of the options that embedders and language models share."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number, name, whole

MAX_SECONDS = 3600.0
MAX_RETRIES = 10


def model_name(given: object) -> str:
    """Return the name of a model."""
    if isinstance(given, str) and not given.strip():
        raise InvalidArgumentError("model name must not be empty")
    return name("model", given)


def seconds(field: str, given: object) -> float:
    """Return a time limit in seconds."""
    if not is_number(given) or not isfinite(given) or not 0 < given <= MAX_SECONDS:
        raise InvalidArgumentError(
            f"{field} must be seconds, above 0 and at most {MAX_SECONDS:g}, got {described(given)}"
        )
    return float(given)


def retries(given: object) -> int:
    """Return a number of retries."""
    number = whole("max_retries", given)
    if number > MAX_RETRIES:
        raise InvalidArgumentError(f"max_retries must be at most {MAX_RETRIES}, got {number}")
    return number


def extra_body(given: object, fixed: set[str]) -> dict[str, Any]:
    """Return further members of a request's JSON.

    Args:
        given: The members, or None.
        fixed: Members that they must not replace.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidArgumentError(f"extra_body must be a dict of JSON, got {described(given)}")
    if taken := sorted(fixed & set(given)):
        raise InvalidArgumentError(f"extra_body must not have {', '.join(taken)}")
    try:
        copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(given)))
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError("extra_body must be JSON") from None
    return copied
