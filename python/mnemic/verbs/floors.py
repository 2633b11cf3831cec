"""The floor of scores that a search takes."""

from typing import Literal, TypeAlias

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number
from mnemic.reporting.description import quoted

MinScore: TypeAlias = float | Literal["auto"] | None
"""Least score of a hit, or "auto" for a floor by the evidence; None is no floor."""


def minimum_score(given: object) -> MinScore:
    """Return a floor of scores; 0 is none.

    Raises:
        InvalidArgumentError: If it is neither a number from 0 to 1, nor "auto", nor None.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "auto":
        return "auto"
    if not (is_number(given) and 0 <= given <= 1):
        raise InvalidArgumentError(
            'min_score must be a number from 0 to 1, "auto", or None for no floor, '
            f"got {quoted(given)}"
        )
    return float(given) or None
