"""The default against its parts: paired differences over the questions of each set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benches.quality.metrics import mean_and_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Dataset
    from benches.quality.measure import Outcome

FIGURES = ("R@5", "R@10", "R@20", "nDCG@10")
"""The figures whose mean decides."""

DEFAULT = "mnemic"
PARTS = ("mnemic-keyword", "mnemic-semantic", "bm25-flat", "rrf")
"""Short names of the default, and of the methods that it has to reach."""


@dataclass(frozen=True)
class MeasuredSet:
    """The outcomes of a set by method, and which of the methods are the default and its parts."""

    dataset: Dataset
    results: dict[str, list[Outcome]]
    default: str | None
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Whether the default reaches its best part, less one standard error of their difference."""

    dataset: str
    default: float
    best_part: str
    best: float
    difference: float
    error: float

    @property
    def reached(self) -> bool:
        # A single question has no standard error. Of several, a loss on one alone equals its
        # standard error but for rounding.
        allowed = 0.0 if math.isnan(self.error) else self.error * (1 + 1e-9)
        return self.difference >= -allowed


def mean_of(outcome: Outcome) -> float:
    """Mean of the four figures of a question, 0 to 1."""
    return fmean(outcome.figures[name] for name in FIGURES)


def mean_over(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Mean and standard error of `mean_of` over questions."""
    return mean_and_error([mean_of(outcome) for outcome in outcomes])


def paired(outcomes: Sequence[Outcome], others: Sequence[Outcome]) -> tuple[float, float]:
    """Return by how many points `outcomes` are above `others`, and the standard error.

    Raises:
        ValueError: If they are not of the same questions in the same order.
    """
    if list(map(question_of, outcomes)) != list(map(question_of, others)):
        raise ValueError("only outcomes of the same questions can be paired")
    pairs = zip(outcomes, others, strict=True)
    return mean_and_error([100 * (mean_of(one) - mean_of(other)) for one, other in pairs])


def question_of(outcome: Outcome) -> tuple[str, str]:
    return outcome.collection, outcome.question_id


def verdict(measured: MeasuredSet) -> Verdict | None:
    """Compare the default with its best part; None if either was not measured."""
    if measured.default is None or not measured.parts:
        return None
    means = {name: mean_over(measured.results[name])[0] for name in measured.parts}
    best = max(means, key=means.__getitem__)
    default = measured.results[measured.default]
    difference, error = paired(default, measured.results[best])
    own_mean = mean_over(default)[0]
    return Verdict(measured.dataset.name, own_mean, best, means[best], difference, error)


def verdicts(sets: Sequence[MeasuredSet]) -> list[Verdict]:
    return [found for found in map(verdict, sets) if found is not None]


def verdict_record(found: Verdict) -> dict[str, Any]:
    """The verdict as JSON types."""
    return {
        "default": found.default,
        "best_part": found.best_part,
        "best": found.best,
        "difference": found.difference,
        "error": None if math.isnan(found.error) else found.error,
        "reached": found.reached,
    }
