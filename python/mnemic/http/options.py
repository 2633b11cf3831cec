"""Validation of the options that embedders and language models share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number, name, whole
from mnemic.reporting.description import described

MAX_SECONDS = 3600.0
MAX_RETRIES = 10


def model_name(given: object) -> str:
    """Return the name of a model."""
    if isinstance(given, str) and not given.strip():
        raise InvalidArgumentError("model name must not be empty")
    return name("model", given)


class Limits(NamedTuple):
    """Limits of requests.

    Attributes:
        timeout: Seconds for a call, with its retries.
        max_retries: Maximum number of retries of a request.
        max_connections: Connections of one event loop at a time; further requests wait.
    """

    timeout: float
    max_retries: int
    max_connections: int

    @classmethod
    def checked(cls, timeout: object, max_retries: object, max_connections: object) -> Limits:
        """Return valid limits."""
        if not is_number(timeout) or not 0 < timeout <= MAX_SECONDS:  # neither is NaN
            raise InvalidArgumentError(
                f"timeout must be seconds, above 0 and at most {MAX_SECONDS:g}, got "
                f"{described(timeout)}"
            )
        retries = whole("max_retries", max_retries)
        if retries > MAX_RETRIES:
            raise InvalidArgumentError(f"max_retries must be at most {MAX_RETRIES}, got {retries}")
        return cls(float(timeout), retries, whole("max_connections", max_connections, minimum=1))


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
