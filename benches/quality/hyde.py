"""What hypothetical memories give: `python -m benches.quality.hyde [DIRECTORY …]`.

The project's own set and the named ones are searched by the question alone, and by vectors of
deterministic hypotheses, joined as the HyDE engine joins them: each memory counts by its best
vector. "kept" is with the question's own vector, "alone" without it, "blend" has .15 of the
hypotheses' mean direction in the question's. Intervals are of the paired difference to the plain
question, 95 % by bootstrap over questions, and over conversations (own set: topics).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

import mnemic
from benches.quality.datasets import load_conversations, load_own
from benches.quality.hyde_report import render
from benches.quality.hypotheses import answers_of, asked_of, hypotheses
from benches.quality.measure import DEPTH
from benches.quality.methods.front_door import entry_fields
from benches.quality.metrics import recall_at
from benches.quality.progress import Progress
from benches.quality.vectors import minilm
from mnemic.model import HYBRID, SEMANTIC, Search

if TYPE_CHECKING:
    from benches.quality.datasets import Collection, Dataset, Question

RANKINGS = {"semantic": SEMANTIC, "hybrid": HYBRID}
GENERATORS = (
    "statement",
    "invented",
    "first person",
    "statement + first person",
    "semantic 1",
    "semantic 3",
    "semantic 5",
    "hybrid 1",
    "hybrid 3",
    "hybrid 5",
    "statement + hybrid 3",
    "first person + hybrid 3",
    "questions before",
    "turns before",
    "true answer",
    "true answer, first person",
)
MODES = ("kept", "alone", "blend")
BLEND = 0.15
FIGURES = ("R@5", "R@10", "MRR")


class Row(NamedTuple):
    """A generator, its joining and the search type; the plain question has no generator."""

    search_type: str
    generator: str
    mode: str


ROWS = [
    Row(kind, generator, mode)
    for kind in RANKINGS
    for generator, mode in [
        ("", "plain"),
        *((generator, mode) for generator in GENERATORS for mode in MODES),
    ]
]


class Measured(NamedTuple):
    """The figures of one set.

    Attributes:
        name: The set.
        groups: The conversation of each question; in the own set its topic.
        kinds: The kind of each question.
        figures: R@5, R@10 and MRR of each question by row, shape (questions, 3).
    """

    name: str
    groups: list[str]
    kinds: list[str]
    figures: dict[Row, np.ndarray]


class Door:
    """The memories of a collection behind the finder that the engine searches by."""

    def __init__(self, collection: Collection) -> None:
        self._embedder = minilm()
        self._memory = mnemic.Memory(":memory:", track_access=False, embedder=self._embedder)
        self._memory.add_many([entry_fields(one) for one in collection.memories])

    def find(self, search: Search) -> list[tuple[str, str, float]]:
        """Return id, content and cosine of the best memories."""
        memory = self._memory
        found = memory.repository.find(memory.scope, search)
        entries = [(found.entries[hit.row], hit.similarity) for hit in found.hits]
        return [
            (one.metadata["benchmark_id"], one.content, similarity) for one, similarity in entries
        ]

    def search(self, row: Row, question: str, texts: list[str]) -> Search:
        """Return the search of a row; without hypotheses the question is searched alone."""
        plain = Search(text=question, limit=DEPTH, ranking=RANKINGS[row.search_type])
        if not texts:
            return plain
        if row.mode == "alone":
            return replace(plain, vectors=self._embedder.embed(texts))
        return replace(plain, also=tuple(texts), blend=BLEND if row.mode == "blend" else None)

    def close(self) -> None:
        self._memory.close()


def figures_of(ranking: list[str], question: Question, relevant_from: int) -> tuple[float, ...]:
    """R@5, R@10, and the reciprocal place of the first relevant memory among twenty."""
    relevant = {name for name, grade in question.grades.items() if grade >= relevant_from}
    place = next((at for at, name in enumerate(ranking, 1) if name in relevant), None)
    return (
        recall_at(ranking, relevant, 5),
        recall_at(ranking, relevant, 10),
        1 / place if place else 0.0,
    )


def measured(dataset: Dataset, answers: dict[str, str], limit: int | None) -> Measured:
    """Search every question of a set by all rows."""
    groups, kinds, figures = [], [], {row: [] for row in ROWS}
    total = sum(len(one.questions[:limit]) for one in dataset.collections)
    progress = Progress(dataset.name, total)
    for collection in dataset.collections:
        door = Door(collection)
        for at, question in enumerate(collection.questions[:limit]):
            begun = time.monotonic()
            for row, ranking in rankings(door, collection, at, answers).items():
                figures[row].append(figures_of(ranking, question, dataset.relevant_from))
            groups.append(group_of(dataset, collection, question))
            kinds.append(question.kind)
            progress.searched(time.monotonic() - begun)
        door.close()
    return Measured(
        dataset.name, groups, kinds, {row: np.array(values) for row, values in figures.items()}
    )


def rankings(
    door: Door, collection: Collection, at: int, answers: dict[str, str]
) -> dict[Row, list[str]]:
    """Return the ids that each row finds for a question, best first."""
    text = collection.questions[at].text
    plain = {kind: door.find(door.search(Row(kind, "", "plain"), text, [])) for kind in RANKINGS}
    found = {kind: [content for _, content, _ in hits] for kind, hits in plain.items()}
    asked = asked_of(collection, at, found, answers)
    by_generator = {name: hypotheses(name, asked) for name in GENERATORS} | {"": []}
    return {
        row: [name for name, _, _ in door.find(door.search(row, text, by_generator[row.generator]))]
        for row in ROWS
    }


def group_of(dataset: Dataset, collection: Collection, question: Question) -> str:
    """The conversation of a question; its topic in the own set, which is one collection."""
    return collection.name if len(dataset.collections) > 1 else question.id.rpartition("-")[0]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.quality.hyde", description=__doc__)
    parser.add_argument("directories", metavar="DIRECTORY", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, help="only the first questions of each conversation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    answers = [{}, *map(answers_of, options.directories)]
    sets = []
    for dataset, known in zip(
        [load_own(), *map(load_conversations, options.directories)], answers, strict=True
    ):
        sets.append(measured(dataset, known, options.limit))
    if options.json:
        options.json.write_text(json.dumps(record(sets)) + "\n", encoding="utf-8")
    print(render(sets, ROWS))


def record(sets: list[Measured]) -> list[dict]:
    return [
        {
            "set": one.name,
            "groups": one.groups,
            "kinds": one.kinds,
            "figures": {", ".join(row): values.tolist() for row, values in one.figures.items()},
        }
        for one in sets
    ]


if __name__ == "__main__":
    main()
