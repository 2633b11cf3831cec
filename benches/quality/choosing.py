"""Choice of constants on some questions, and its effect on those that were left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from benches.quality.metrics import mean_and_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benches.quality.constants import Point

    Objective = Callable[[list["SeenSet"]], tuple[float, ...]]


class Figures(Protocol):
    """Figures of labelled sets under the points of a grid.

    `sets` has the conversation of each question, by set; the other arrays have the same order.
    """

    sets: dict[str, np.ndarray]

    def at(self, point: Point, name: str) -> np.ndarray:
        """Figure of merit of each question of a set, 0 to 1."""

    def parts(self, name: str) -> list[np.ndarray]:
        """The same of each part of the default: keywords alone, meaning alone, …"""


@dataclass(frozen=True)
class LeftOut:
    """The questions that a choice does not see: none, a set's, or a conversation's of a set."""

    name: str | None = None
    conversation: str | None = None

    def sees(self, name: str, conversations: np.ndarray) -> np.ndarray:
        """Whether each question of the set is seen."""
        if name != self.name:
            return np.ones(len(conversations), dtype=bool)
        if self.conversation is None:
            return np.zeros(len(conversations), dtype=bool)
        return conversations != self.conversation


NOTHING = LeftOut()


@dataclass(frozen=True)
class SeenSet:
    """The seen questions of a set: their figures at a point, at the preset, and by the parts."""

    values: np.ndarray
    present: np.ndarray
    parts: list[np.ndarray]

    def shortfall(self) -> float:
        """How far the mean is below the best part's less one standard error; 0 if it is not."""
        return loss(self.values, max(self.parts, key=np.mean)) if self.parts else 0.0


def loss(values: np.ndarray, others: np.ndarray) -> float:
    """How far the mean is below that of the others, less the paired standard error; at least 0."""
    difference, error = mean_and_error((others - values).tolist())
    return max(0.0, difference - np.nan_to_num(error))


def mean(seen: list[SeenSet]) -> tuple[float, ...]:
    """The mean over sets of the mean over questions, whatever the size of a set."""
    return (float(np.mean([one.values.mean() for one in seen])),)


def regret(seen: list[SeenSet]) -> tuple[float, ...]:
    """The worst shortfall of a set against its best part first, then the mean."""
    return (-max(one.shortfall() for one in seen), *mean(seen))


def no_loss(seen: list[SeenSet]) -> tuple[float, ...]:
    """The worst loss of a set against the present constants first, then the mean."""
    return (-max(loss(one.values, one.present) for one in seen), *mean(seen))


OBJECTIVES: dict[str, Objective] = {"mean": mean, "regret": regret, "no-loss": no_loss}
"""Larger is better, compared number by number."""


@dataclass(frozen=True)
class Search:
    """The candidates of each constant, the preset's value first, and the way through them."""

    candidates: tuple[Point, ...]
    objective: Objective
    is_descent: bool = False

    @property
    def preset(self) -> Point:
        return tuple(values[0] for values in self.candidates)

    def best(self, figures: Figures, left: LeftOut = NOTHING) -> Point:
        """The point that is best on the seen questions; of equal ones the first."""

        def worth(point: Point) -> tuple[float, ...]:
            return self.objective(list(seen_sets(figures, point, self.preset, left)))

        if self.is_descent:
            return descend(self.preset, self.candidates, worth)
        return max(product(*self.candidates), key=worth)


def seen_sets(figures: Figures, point: Point, preset: Point, left: LeftOut) -> Iterator[SeenSet]:
    for name, conversations in figures.sets.items():
        seen = left.sees(name, conversations)
        if seen.any():
            values, present = (figures.at(one, name)[seen] for one in (point, preset))
            yield SeenSet(values, present, [part[seen] for part in figures.parts(name)])


def descend(
    start: Point, candidates: tuple[Point, ...], worth: Callable[[Point], tuple[float, ...]]
) -> Point:
    """Change one constant at a time to its best value, until a whole pass changes none."""
    best, before = start, None
    while best != before:
        before = best
        for at, values in enumerate(candidates):
            # The present value comes first, so that of equal ones it stays.
            others = [value for value in values if value != best[at]]
            points = [(*best[:at], value, *best[at + 1 :]) for value in (best[at], *others)]
            best = max(points, key=worth)
    return best


@dataclass(frozen=True)
class Held:
    """A choice, and the points it gains on each question that it did not see.

    `against_all` compares with the constants chosen on all questions, `against_preset` with the
    present ones.
    """

    left: LeftOut
    point: Point
    against_preset: np.ndarray
    against_all: np.ndarray


@dataclass(frozen=True)
class Report:
    """The choice on all questions, and those with each set and each conversation left out."""

    preset: Point
    chosen: Point
    gains: dict[str, np.ndarray]
    by_set: list[Held]
    by_conversation: list[Held]


def leave_out(search: Search, figures: Figures, tell: Callable[[str], Any]) -> Report:
    """Choose with all questions, without each set, and without each conversation of a set.

    A set of one conversation is left out as a set alone; `tell` gets a line before each choice.
    """
    tell("choosing on all sets")
    chosen = search.best(figures)

    def held(left: LeftOut) -> Held:
        tell(f"choosing without {label(left)}")
        return held_out(figures, search.best(figures, left), left, search.preset, chosen)

    gains = {
        name: 100 * (figures.at(chosen, name) - figures.at(search.preset, name))
        for name in figures.sets
    }
    sets = [LeftOut(name) for name in figures.sets] if len(figures.sets) > 1 else []
    conversations = [
        LeftOut(name, str(conversation))
        for name, of_questions in figures.sets.items()
        for conversation in conversations_of(of_questions)
    ]
    return Report(
        search.preset, chosen, gains, list(map(held, sets)), list(map(held, conversations))
    )


def conversations_of(of_questions: np.ndarray) -> Sequence[str]:
    names = np.unique(of_questions)
    return names.tolist() if len(names) > 1 else []


def held_out(figures: Figures, point: Point, left: LeftOut, preset: Point, chosen: Point) -> Held:
    unseen = ~left.sees(left.name, figures.sets[left.name])
    values = figures.at(point, left.name)[unseen]
    gains = [100 * (values - figures.at(one, left.name)[unseen]) for one in (preset, chosen)]
    return Held(left, point, *gains)


def pooled(held: Sequence[Held]) -> dict[str, Held]:
    """By set, the questions each measured with the constants chosen without their conversation."""
    by_set: dict[str, list[Held]] = {}
    for one in held:
        by_set.setdefault(one.left.name, []).append(one)
    return {
        name: Held(
            LeftOut(name),
            (),
            np.concatenate([one.against_preset for one in some]),
            np.concatenate([one.against_all for one in some]),
        )
        for name, some in by_set.items()
    }


def label(left: LeftOut) -> str:
    return f"{left.name} {left.conversation}" if left.conversation else str(left.name)
