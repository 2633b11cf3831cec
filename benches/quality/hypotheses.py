"""What right and wrong guesses do: `python -m benches.quality.hypotheses DIRECTORY …`.

The sets need answers. A guess stands beside the question's own vector. The right one is the true
answer, the wrong ones are the answer to another question of the conversation, by chance or to the
question most like it; each alone, or behind the question as a sentence would have it. Figures are
points of the mean of R@10 and nDCG@10 against the question alone, paired. The last column is the
expansion that `retrieve` makes of the memories themselves.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mnemic
from benches.quality.datasets import load_conversations, read_lines
from benches.quality.measure import DEPTH, figures_of
from benches.quality.methods.front_door import entry_fields
from benches.quality.metrics import mean_and_error
from benches.quality.progress import Line
from benches.quality.vectors import minilm

if TYPE_CHECKING:
    from benches.quality.datasets import Question

FEWEST_OTHERS = 3


def guesses_of(lines: list[dict[str, Any]], chance: random.Random) -> list[dict[str, list[str]]]:
    """Return by question the texts of each kind of guess; none if too few others have answers."""
    texts, answers = [line["text"] for line in lines], [str(line["answer"] or "") for line in lines]
    vectors = minilm().embed(texts)
    found: list[dict[str, list[str]]] = []
    for at, line in enumerate(lines):
        evidence = set(line["evidence"])
        others = [
            other
            for other, its in enumerate(lines)
            if answers[other] not in {"", answers[at]} and not evidence & set(its["evidence"])
        ]
        if not (answers[at] and evidence) or len(others) < FEWEST_OTHERS:
            found.append({})
            continue
        likest = max(others, key=lambda other: float(vectors[at] @ vectors[other]))
        some, more = chance.sample([other for other in others if other != likest], 2)
        right, other, like, last = (answers[each] for each in (at, some, likest, more))
        question = texts[at]
        found.append(
            {
                "right": [right],
                "another's": [other],
                "the likest's": [like],
                "question + right": [f"{question} {right}"],
                "question + another's": [f"{question} {other}"],
                "question + the likest's": [f"{question} {like}"],
                "question + each, one right": [
                    f"{question} {each}" for each in (right, other, like)
                ],
                "question + each, all wrong": [
                    f"{question} {each}" for each in (last, other, like)
                ],
            }
        )
    return found


def merit(hits: Any, question: Question) -> float:
    figures = figures_of([hit.entry.metadata["benchmark_id"] for hit in hits], question, 1)
    return 50 * (figures["R@10"] + figures["nDCG@10"])


def measured(directory: Path, search_type: Any, limit: int | None) -> dict[str, list[float]]:
    """Return the gains by kind of guess, one for each question, and the figure without any."""
    gains: dict[str, list[float]] = {"the question alone": []}
    chance, line, embedder = random.Random(7), Line(), minilm()  # noqa: S311 - data to measure
    lines = read_lines(directory / "questions.jsonl")
    for collection in load_conversations(directory).collections:
        line.show(f"{directory.name}: {collection.name}")
        own = [each for each in lines if each["conv"] == collection.name]
        with mnemic.Memory(":memory:", track_access=False, embedder=embedder) as memory:
            memory.add_many([entry_fields(one) for one in collection.memories])
            asked = zip(collection.questions, guesses_of(own, chance), strict=True)
            for question, guesses in list(asked)[:limit]:
                if not guesses:
                    continue
                text, vector = question.text, embedder.embed([question.text])[0]

                def found(vectors: np.ndarray, question: Question = question) -> float:
                    hits = memory.search(
                        question.text, vector=vectors, search_type=search_type, limit=DEPTH
                    )
                    return merit(hits, question)

                alone = found(vector)
                gains["the question alone"].append(alone)
                for kind, its in guesses.items():
                    stacked = np.vstack([vector, embedder.embed(its)])
                    gains.setdefault(kind, []).append(found(stacked) - alone)
                plain, expanded = (
                    merit(
                        memory.retrieve(text, search_type=search_type, limit=DEPTH, expand=expands),
                        question,
                    )
                    for expands in (False, True)
                )
                gains.setdefault("expansion", []).append(expanded - plain)
    return gains


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.quality.hypotheses")
    parser.add_argument("directories", metavar="DIRECTORY", nargs="+", type=Path)
    parser.add_argument("--search-type", default="hybrid", choices=("hybrid", "semantic"))
    parser.add_argument("--limit", type=int, help="questions of each conversation; default: all")
    options = parser.parse_args()
    by_set = {
        each.resolve().name: measured(each, options.search_type, options.limit)
        for each in options.directories
    }
    print(f"| {options.search_type} | {' | '.join(by_set)} |\n|---|{'---|' * len(by_set)}")
    for kind in next(iter(by_set.values())):
        cells = [
            "{:+.1f} ±{:.1f}".format(*mean_and_error(gains[kind])) for gains in by_set.values()
        ]
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
