"""Run every question of a data set and summarise the rankings."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benches.quality.metrics import count_in, mean_and_error, ndcg_at, precision_at, recall_at
from benches.quality.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benches.quality.datasets import Dataset, Question
    from benches.quality.methods import Method

DEPTH = 20
"""Places ranked for each question: the deepest figure is recall@20."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one question."""

    collection: str
    kind: str
    question_id: str
    figures: dict[str, float]


def measure(method: Method, dataset: Dataset, *, limit: int | None = None) -> list[Outcome]:
    """Run `method` on the first `limit` questions of each collection (None: all)."""
    outcomes = []
    total = sum(len(collection.questions[:limit]) for collection in dataset.collections)
    progress = Progress(f"{dataset.name}, {method.name}", total)
    for collection in dataset.collections:
        method.index(collection.memories)
        for question in collection.questions[:limit]:
            begin = time.monotonic()
            ranking = method.search(question.text, DEPTH)
            progress.searched(time.monotonic() - begin)
            if len(ranking) != len(set(ranking)) or len(ranking) > DEPTH:
                raise ValueError(f"{method.name} gave no proper ranking for {question.id}")
            figures = figures_of(ranking, question, dataset.relevant_from)
            outcomes.append(Outcome(collection.name, question.kind, question.id, figures))
    method.close()
    return outcomes


def figures_of(ranking: list[str], question: Question, relevant_from: int) -> dict[str, float]:
    """Recall, nDCG, whether the top three help, and with distractors their shares."""
    relevant = {name for name, grade in question.grades.items() if grade >= relevant_from}
    figures = {f"R@{k}": recall_at(ranking, relevant, k) for k in (5, 10, 20)}
    figures["nDCG@10"] = ndcg_at(ranking, question.grades, 10)
    figures["hit@3"] = float(count_in(ranking, relevant, 3) > 0)
    if question.distractors:
        figures["P@3"] = precision_at(ranking, relevant, 3)
        figures["distractors@3"] = precision_at(ranking, question.distractors, 3)
    return figures


def summarise(outcomes: Iterable[Outcome]) -> dict[str, tuple[float, float]]:
    """Mean and standard error over questions, by name of figure."""
    columns: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.figures.items():
            columns.setdefault(name, []).append(value)
    return {name: mean_and_error(values) for name, values in columns.items()}


def grouped(outcomes: Iterable[Outcome], attribute: str) -> dict[str, list[Outcome]]:
    """Split outcomes by `collection` or `kind`, groups in alphabetical order."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(getattr(outcome, attribute), []).append(outcome)
    return dict(sorted(groups.items()))
