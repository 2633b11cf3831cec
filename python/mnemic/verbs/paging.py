"""Arguments of a search that choose among the ranked memories: page, floors, total."""

from typing import Literal, NamedTuple, TypeAlias

from mnemic.errors import InvalidArgumentError
from mnemic.model import Ranking
from mnemic.model.validation import is_number
from mnemic.reporting.description import quoted

MinScore: TypeAlias = float | Literal["auto"] | None
"""Least score of a hit, or "auto" for a floor by the evidence; None is no floor."""


class Paging(NamedTuple):
    """Arguments that choose among the ranked memories, as callers give them.

    Attributes:
        offset: Number of best hits to skip.
        min_score: Least score.
        min_similarity: Least cosine.
        total: Whether to count all that match.
    """

    offset: int = 0
    min_score: MinScore = None
    min_similarity: float | None = None
    total: bool = False


WHOLE = Paging()
"""The best hits, without floors and total."""


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


def minimum_similarity(given: object, ranking: Ranking) -> float | None:
    """Return a floor of cosines.

    Raises:
        InvalidArgumentError: If it is neither a number from -1 to 1 nor None, or if the ranking
            compares no vectors.
    """
    if given is None:
        return None
    if not (is_number(given) and -1 <= given <= 1):
        raise InvalidArgumentError(
            f"min_similarity must be a cosine from -1 to 1, or None, got {quoted(given)}"
        )
    if not ranking.has_similarity:
        raise InvalidArgumentError(
            "min_similarity is a cosine, and a search by keywords compares no vectors; use "
            "min_score, or search by meaning"
        )
    return float(given)
