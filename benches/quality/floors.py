"""What `min_score="auto"` costs and refuses: `python -m benches.quality.floors [DIRECTORY …]`.

Each question is searched with and without the floor. Queries that should find nothing are random
pronounceable words, and the questions of the other sets. A set's limit is the largest floor with
which it loses at most half a point of R@20. Left out, a set is judged by the smallest limit of the
others less a margin, the rule by which the floors were chosen.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

import mnemic
from benches.quality.datasets import load_conversations, load_own
from benches.quality.measure import DEPTH, figures_of
from benches.quality.methods.front_door import entry_fields
from benches.quality.progress import Line
from benches.quality.vectors import minilm

if TYPE_CHECKING:
    from benches.quality.datasets import Dataset

MOST_LOST = 0.005
MARGIN = 0.02
KEYWORD_WEIGHT = 3.2
TYPES = ("hybrid", "semantic", "keyword")
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiouy"
PER_COLLECTION = 40


class Floors:
    """The stored embedder with other floors, or none."""

    def __init__(
        self, similarity_floor: float | None, score_floors: dict[str, float] | None
    ) -> None:
        self._embedder = minilm()
        self.model, self.dimensions = self._embedder.model, self._embedder.dimensions
        self.max_tokens, self.languages = self._embedder.max_tokens, self._embedder.languages
        self.characters_seen = self._embedder.characters_seen
        self.similarity_floor, self.score_floors = similarity_floor, score_floors
        self.embed = self._embedder.embed


@dataclass
class Asked:
    """One query: the recall with and without the floor, or whether anything was found."""

    kind: str
    evidence: dict[str, float] = field(default_factory=dict)
    recall: dict[str, list[float]] = field(default_factory=dict)
    is_found: dict[str, bool] = field(default_factory=dict)


def nonsense(chance: random.Random) -> str:
    """Return one to five words of syllables."""
    ending = lambda: chance.choice(CONSONANTS) if chance.random() < 0.4 else ""  # noqa: E731
    syllable = lambda: chance.choice(CONSONANTS) + chance.choice(VOWELS) + ending()  # noqa: E731
    words = chance.choice([1, 1, 2, 3, 5])
    return " ".join("".join(syllable() for _ in range(chance.randint(1, 3))) for _ in range(words))


def measured(dataset: Dataset, others: list[str], embedder: object) -> list[Asked]:
    """Search every question of a set, questions of others, and nonsense."""
    chance, asked, line = random.Random(7), [], Line()  # noqa: S311 - data for a measurement
    per_collection = max(3, PER_COLLECTION // max(1, len(dataset.collections) // 4))
    for number, collection in enumerate(dataset.collections):
        line.show(f"{dataset.name}: {number} of {len(dataset.collections)}")
        with mnemic.Memory(":memory:", track_access=False, embedder=embedder) as memory:
            memory.add_many([entry_fields(one) for one in collection.memories])
            for question in collection.questions:
                asked.append(one := Asked("good", evidence(memory, question.text)))
                for kind in TYPES:
                    whole, kept = (
                        memory.search(question.text, limit=DEPTH, search_type=kind, min_score=floor)
                        for floor in (None, "auto")
                    )
                    figures = [
                        figures_of(
                            [hit.metadata["benchmark_id"] for hit in hits],
                            question,
                            dataset.relevant_from,
                        )
                        for hits in (whole, kept)
                    ]
                    one.recall[kind] = [row[name] for name in ("R@10", "R@20") for row in figures]
            strange = [("unrelated", text) for text in chance.sample(others, per_collection)]
            strange += [("nonsense", nonsense(chance)) for _ in range(per_collection)]
            for name, text in strange:
                asked.append(one := Asked(name, evidence(memory, text)))
                for kind in TYPES:
                    found = memory.search(text, limit=1, search_type=kind, min_score="auto")
                    one.is_found[kind] = bool(found)
    return asked


ALONE = replace(mnemic.model.KEYWORD, session=mnemic.model.SessionTerms())
KEYWORDS = replace(
    mnemic.model.HYBRID, similarity=0.0, session=mnemic.model.SessionTerms(), covered_only=False
)
"""The keyword match of a hybrid search alone: its best is that of all memories."""


def evidence(memory: mnemic.Memory, text: str) -> dict[str, float]:
    """Return by search type the floor that the best of all memories just reaches."""

    def best(part: str, **options: object) -> float:
        hits = memory.search(text, limit=1, explain=True, **options)
        return (hits[0].components.get(part) or 0.0) if hits else 0.0

    cosine, alone = best("similarity", search_type="semantic"), best("keyword", ranking=ALONE)
    if memory.search(text, limit=1).share == 0:  # compares no vectors: judged as by keywords
        return {"semantic": cosine, "keyword": alone, "hybrid": 1.0}
    raised = KEYWORD_WEIGHT * best("keyword", ranking=KEYWORDS) ** (1 / 1.5)
    return {"semantic": cosine, "keyword": alone, "hybrid": (cosine + raised) / (1 + raised)}


def largest_floor(asked: list[Asked], kind: str) -> float:
    """Return the largest floor with which a set loses no more than it may."""
    rows = sorted((one.evidence[kind], one.recall[kind][2]) for one in asked if one.kind == "good")
    lost = 0.0
    for value, recall in rows:
        lost += recall / len(rows)
        if lost > MOST_LOST:
            return value
    return 1.0


def lost_by(asked: list[Asked], kind: str, floor: float) -> float:
    good = [one for one in asked if one.kind == "good"]
    lost = sum(one.recall[kind][2] for one in good if one.evidence[kind] < floor)
    return 100 * lost / len(good)


def report(name: str, by_set: dict[str, list[Asked]]) -> None:
    print(f"\n{name}\n")
    print("| set | search | lost R@10 | lost R@20 | unrelated | nonsense | limit | left out |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in TYPES:
        limits = {label: largest_floor(asked, kind) for label, asked in by_set.items()}
        for label, asked in by_set.items():
            good = [one.recall[kind] for one in asked if one.kind == "good"]
            lost = [100 * sum(row[at] - row[at + 1] for row in good) / len(good) for at in (0, 2)]
            strange = [
                share([not one.is_found[kind] for one in asked if one.kind == each])
                for each in ("unrelated", "nonsense")
            ]
            least = min((limits[other] for other in limits if other != label), default=0.0)
            left_out = lost_by(asked, kind, least - MARGIN)
            print(
                f"| {label} | {kind} | {lost[0]:.1f} | {lost[1]:.1f} | {strange[0]} "
                f"| {strange[1]} | {limits[label]:.3f} | {left_out:.1f} |"
            )


GRIDS = {
    "hybrid": (0.34, 0.38, 0.42, 0.46, 0.5),
    "semantic": (0.2, 0.25, 0.3, 0.35),
    "keyword": (0.01, 0.03, 0.05, 0.08),
}


def report_floors(by_set: dict[str, list[Asked]]) -> None:
    """Print what other floors would do: points of R@20, unrelated and nonsense refused."""
    for kind, grid in GRIDS.items():
        print(f"\n| {kind} | {' | '.join(map(str, grid))} |\n|---|{'---|' * len(grid)}")
        for label, asked in by_set.items():
            cells = []
            for floor in grid:
                refused = [
                    share([one.evidence[kind] < floor for one in asked if one.kind == each])
                    for each in ("unrelated", "nonsense")
                ]
                cells.append(f"{lost_by(asked, kind, floor):.1f}, {', '.join(refused)}")
            print(f"| {label} | {' | '.join(cells)} |")


def share(values: list[bool]) -> str:
    return f"{100 * sum(values) / max(1, len(values)):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.quality.floors", description=__doc__)
    parser.add_argument("directories", metavar="DIRECTORY", nargs="*", type=Path)
    parser.add_argument(
        "--hidden", action="store_true", help="also with the calibration of the embedder hidden"
    )
    options = parser.parse_args()
    sets = [load_own(), *map(load_conversations, options.directories)]
    questions = {
        one.name: [question.text for each in one.collections for question in each.questions]
        for one in sets
    }
    own = minilm()
    rules = {"calibrated": Floors(own.similarity_floor, own.score_floors)}
    if options.hidden:
        rules["similarity_floor alone"] = Floors(own.similarity_floor, None)
        rules["no floor of the embedder"] = Floors(None, None)
    for name, embedder in rules.items():
        by_set = {}
        for one in sets:
            others = [
                text for label, texts in questions.items() if label != one.name for text in texts
            ]
            by_set[one.name] = measured(one, others or questions[one.name], embedder)
        report(name, by_set)
        if name == "calibrated":
            report_floors(by_set)


if __name__ == "__main__":
    main()
