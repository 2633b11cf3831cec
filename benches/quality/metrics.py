"""Figures of merit for one ranking, and their mean over questions.

A ranking is a sequence of ids, best first, without repetitions.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


def recall_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant ids that are among the first `k`."""
    if not relevant:
        raise ValueError("recall needs at least one relevant id")
    return count_in(ranking, relevant, k) / len(relevant)


def precision_at(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the first `k` places held by relevant ids; an empty place counts as wrong."""
    return count_in(ranking, relevant, k) / k


def count_in(ranking: Sequence[str], wanted: Collection[str], k: int) -> int:
    """Count the first `k` ids that are wanted."""
    return sum(identifier in wanted for identifier in ranking[:k])


def ndcg_at(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Discounted cumulative gain of the first `k`, divided by the best possible one.

    The gain of a grade is 2^grade - 1, the discount of place i (from 1) is log2(i + 1)
    (Burges et al., ICML 2005). With a single grade 1 this is the binary measure.
    """
    ideal = discounted_gain(sorted(grades.values(), reverse=True)[:k])
    if ideal == 0:
        raise ValueError("nDCG needs at least one positive grade")
    return discounted_gain([grades.get(identifier, 0) for identifier in ranking[:k]]) / ideal


def discounted_gain(grades: Sequence[int]) -> float:
    """Sum of (2^grade - 1) / log2(place + 1), places counted from 1."""
    return sum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error (sample deviation / sqrt(n)); the error of one value is nan."""
    if len(values) == 1:
        return values[0], math.nan
    return fmean(values), stdev(values) / math.sqrt(len(values))
