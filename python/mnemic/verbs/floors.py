"""The floor of scores that a search takes."""

from typing import Literal, TypeAlias

from mnemic.errors import InvalidArgumentError
from mnemic.model.validation import is_number
from mnemic.reporting.description import quoted

MinScore: TypeAlias = float | Literal["auto", "relative"] | None
"""Least score of a hit; "auto" for a floor by the evidence, "relative" for one by the best hit too;
None is no floor."""

_WORDS: tuple[Literal["auto", "relative"], ...] = ("auto", "relative")


def minimum_score(given: object) -> MinScore:
    """Return a floor of scores; 0 is none.

    Raises:
        InvalidArgumentError: If it is neither a number from 0 to 1, nor a word, nor None.
    """
    if given is None:
        return None
    for word in _WORDS:
        if isinstance(given, str) and given == word:
            return word
    if not (is_number(given) and 0 <= given <= 1):
        raise InvalidArgumentError(
            'min_score must be a number from 0 to 1, "auto", "relative", or None for no floor, '
            f"got {quoted(given)}"
        )
    return float(given) or None
