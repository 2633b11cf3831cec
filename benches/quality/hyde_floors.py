"""What floors keep out of a turn: `python -m benches.quality.hyde_floors [DIRECTORY …]`.

Each question is searched by the vectors that a HyDE engine would use, ten memories a turn and no
floor; then `min_similarity` and `drop_off` are applied to what it found. "unrelated" are questions
of the other sets, about which nothing is stored. A set's limit is the strictest value of the grid
that loses at most a point of R@10; left out, a set is judged by the most lenient limit of the rest.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benches.quality.datasets import load_conversations, load_own
from benches.quality.hyde import Door, Row
from benches.quality.hypotheses import answers_of, asked_of, hypotheses
from benches.quality.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benches.quality.datasets import Dataset

TOP_K = 10
MOST_LOST = 1.0  # points of R@10
UNRELATED = 100
GENERATORS = ("", "statement", "true answer")
MIN_SIMILARITIES = (-1.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
DROP_OFFS = (1.0, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)


class Turn(NamedTuple):
    """The memories found for a question, best first, and the number that would be right.

    Attributes:
        found: Whether each memory is relevant, and its cosine.
        relevant: Number of relevant memories; 0 for an unrelated question.
    """

    found: list[tuple[bool, float]]
    relevant: int

    def kept(self, min_similarity: float, drop_off: float) -> list[bool]:
        floor = max(min_similarity, max((cosine for _, cosine in self.found), default=0) - drop_off)
        return [is_relevant for is_relevant, cosine in self.found if cosine >= floor]


class Shares(NamedTuple):
    """What a floor does to the turns of a set.

    Attributes:
        recall: R@10.
        precision: Share of the injected memories that are relevant.
        injected: Memories of a turn.
        strange: Memories of a turn about which nothing is stored.
        silent: Share of such turns with no memory at all.
    """

    recall: float
    precision: float
    injected: float
    strange: float
    silent: float


def turns_of(
    dataset: Dataset, answers: dict[str, str], others: list[str], limit: int | None
) -> dict[str, tuple[list[Turn], list[Turn]]]:
    """Return the turns of a set, and unrelated ones, by generator."""
    chance = random.Random(7)  # noqa: S311 - data for a measurement
    turns: dict[str, tuple[list[Turn], list[Turn]]] = {name: ([], []) for name in GENERATORS}
    progress = Progress(
        dataset.name, sum(len(one.questions[:limit]) for one in dataset.collections)
    )
    for collection in dataset.collections:
        door = Door(collection)
        for at, question in enumerate(collection.questions[:limit]):
            right = {
                name for name, grade in question.grades.items() if grade >= dataset.relevant_from
            }
            asked = asked_of(collection, at, {}, answers)
            for name, (good, _) in turns.items():
                texts = hypotheses(name, asked) if name else []
                if name and not texts:
                    continue  # a set without answers
                found = searched(door, question.text, texts)
                good.append(Turn([(hit in right, cosine) for hit, cosine in found], len(right)))
            progress.searched(0.0)
        count = min(len(others), max(3, UNRELATED // len(dataset.collections)))
        for text in chance.sample(others, count):
            asked = asked_of(collection, 0, {}, {})._replace(text=text)
            for name, (_, strange) in turns.items():
                texts = hypotheses(name, asked) if name else []
                # The hypothesis of a model that knows no answer is a statement.
                texts = texts or hypotheses("statement", asked)
                found = searched(door, text, texts if name else [])
                strange.append(Turn([(False, cosine) for _, cosine in found], 0))
        door.close()
    return turns


def searched(door: Door, text: str, texts: list[str]) -> list[tuple[str, float]]:
    """Return id and cosine of the best memories by the hypotheses alone."""
    hits = door.find(door.search(Row("semantic", "", "alone"), text, texts))
    return [(name, cosine) for name, _, cosine in hits[:TOP_K]]


def shares(good: Sequence[Turn], strange: Sequence[Turn], floor: tuple[float, float]) -> Shares:
    kept = [turn.kept(*floor) for turn in good]
    right = [sum(one) for one in kept]
    noise = [len(turn.kept(*floor)) for turn in strange]
    return Shares(
        sum(found / turn.relevant for found, turn in zip(right, good, strict=True)) / len(good),
        sum(right) / max(1, sum(map(len, kept))),
        sum(map(len, kept)) / len(good),
        sum(noise) / max(1, len(noise)),
        sum(not count for count in noise) / max(1, len(noise)),
    )


def limit_of(rows: Sequence[Shares]) -> int:
    """Return the place of the strictest floor that loses no more than it may."""
    allowed = rows[0].recall - MOST_LOST / 100
    return max(at for at, row in enumerate(rows) if row.recall >= allowed)


def report(
    title: str, values: Sequence[float], floor: Callable[[float], tuple[float, float]], sets: dict
) -> None:
    for generator in GENERATORS:
        by_set = {
            name: [shares(*turns[generator], floor(value)) for value in values]
            for name, turns in sets.items()
            if turns[generator][0]
        }
        print(
            f"\n{title}, vectors of {generator or 'the question'}: lost R@10 in points, precision,"
        )
        print("memories a turn, of unrelated turns, and share of these without any\n")
        print(f"| set | {' | '.join('none' if abs(v) == 1 else str(v) for v in values)} | limit |")
        print(f"|---|{'---|' * (len(values) + 1)}")
        for name, rows in by_set.items():
            cells = " | ".join(cell(rows[0], row) for row in rows)
            print(f"| {name} | {cells} | {values[limit_of(rows)]} |")
        limits = {name: limit_of(rows) for name, rows in by_set.items()}
        for name, rows in by_set.items():
            rest = [at for other, at in limits.items() if other != name]
            if rest:
                lost = 100 * (rows[0].recall - rows[min(rest)].recall)
                print(f"left out {name}: the rest choose {values[min(rest)]}, lost {lost:.1f}")


def cell(without: Shares, row: Shares) -> str:
    return (
        f"{100 * (without.recall - row.recall):.1f}, {100 * row.precision:.0f} %, "
        f"{row.injected:.1f}, {row.strange:.1f}, {100 * row.silent:.0f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.hyde_floors", description=__doc__
    )
    parser.add_argument("directories", metavar="DIRECTORY", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, help="only the first questions of each conversation")
    options = parser.parse_args()
    loaded = [load_own(), *map(load_conversations, options.directories)]
    answers = [{}, *map(answers_of, options.directories)]
    texts = {
        one.name: [question.text for each in one.collections for question in each.questions]
        for one in loaded
    }
    sets = {}
    for one, known in zip(loaded, answers, strict=True):
        others = [text for name, some in texts.items() if name != one.name for text in some]
        sets[one.name] = turns_of(one, known, others, options.limit)
    report("min_similarity", MIN_SIMILARITIES, lambda value: (value, 2.0), sets)
    report("drop_off", DROP_OFFS, lambda value: (-1.0, value if value < 1 else 2.0), sets)


if __name__ == "__main__":
    main()
