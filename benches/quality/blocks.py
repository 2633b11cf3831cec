"""What reaches a prompt: `python -m benches.quality.blocks [DIRECTORY …]`.

For each way to a block: the share of a question's evidence that is cited in it, the share of the
answer's words (of those that the evidence has) that stand in it, its tokens, and the median of the
milliseconds that a processor needs for it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mnemic
from benches.quality.datasets import load_conversations, load_own
from benches.quality.methods.front_door import entry_fields
from benches.quality.metrics import mean_and_error
from benches.quality.progress import Line
from benches.quality.vectors import StoredEmbedder, minilm
from mnemic.policy import INTERLEAVED, RetrievalConfig, RetrievalPolicy, RetrievalRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.quality.datasets import Collection, Dataset, Question


class Block(NamedTuple):
    """A block: its text, its tokens, and the ids of its memories."""

    text: str
    tokens: int
    ids: set[str]


def by_context(**options: object) -> Callable[[mnemic.Memory, str], Block]:
    def block(memory: mnemic.Memory, question: str) -> Block:
        made = memory.context(question, **options)
        return Block(str(made), made.tokens, {str(entry.id) for entry in made.memories})

    return block


def by_policy(config: RetrievalConfig) -> Callable[[mnemic.Memory, str], Block]:
    config = config.overridden(timeout=None, cache_ttl=0)

    def block(memory: mnemic.Memory, question: str) -> Block:
        payload = RetrievalPolicy(memory, config).run(RetrievalRequest(question, None, "measured"))
        ids = {each.id for each in payload.memories}
        return Block(payload.prompt, payload.metadata.total_tokens, ids)

    return block


WAYS = {
    "context": by_context(),
    "context, 1,500": by_context(max_tokens=1500),
    "context, 800": by_context(max_tokens=800),
    "policy": by_policy(RetrievalConfig()),
    "policy, 800": by_policy(RetrievalConfig(max_tokens=800)),
    "INTERLEAVED": by_policy(INTERLEAVED),
}

WORD = re.compile(r"\w+")


def measured(
    dataset: Dataset,
    ways: dict[str, Callable[[mnemic.Memory, str], Block]],
    limit: int | None,
    embedder: StoredEmbedder | None,
) -> dict[str, dict[str, list[float]]]:
    """Return the figures of each question by way, under its conversation and id."""
    rows: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    line = Line()
    for number, collection in enumerate(dataset.collections):
        line.show(f"{dataset.name}: {number} of {len(dataset.collections)}")
        with mnemic.Memory(":memory:", track_access=False, embedder=embedder) as memory:
            added = memory.add_many([entry_fields(one) for one in collection.memories])
            names = {str(entry.id): entry.metadata["benchmark_id"] for entry in added}
            for question in collection.questions[:limit]:
                relevant = {
                    name
                    for name, grade in question.grades.items()
                    if grade >= dataset.relevant_from
                }
                for way, block in ways.items():
                    begun = time.process_time()
                    made = block(memory, question.text)
                    used = 1000 * (time.process_time() - begun)
                    cited = relevant & {names[each] for each in made.ids}
                    rows[way][f"{collection.name} {question.id}"] = [
                        len(cited) / len(relevant),
                        made.tokens,
                        used,
                        *answer_share(collection, question, relevant, made.text),
                    ]
    return rows


def answer_share(
    collection: Collection, question: Question, relevant: set[str], text: str
) -> list[float]:
    """Return the share of the answer's words that are in a text; nothing without such words."""
    evidence = " ".join(one.content for one in collection.memories if one.id in relevant)
    wanted = words_of(question.answer) & words_of(evidence)
    return [len(wanted & words_of(text)) / len(wanted)] if wanted else []


def words_of(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}


def report(by_set: dict[str, dict[str, dict[str, list[float]]]]) -> None:
    print(f"\n| | {' | '.join(by_set)} |\n|---|{'---|' * len(by_set)}")
    for way in next(iter(by_set.values())):
        cells = [cell(list(rows[way].values())) for rows in by_set.values()]
        print(f"| {way} | {' | '.join(cells)} |")


def cell(rows: list[list[float]]) -> str:
    evidence, tokens = (mean_and_error([row[at] for row in rows])[0] for at in (0, 1))
    milliseconds = statistics.median(row[2] for row in rows)
    answers = [row[3] for row in rows if len(row) > 3]
    shown = f", {mean_and_error(answers)[0]:.3f}" if answers else ""
    return f"{evidence:.3f}{shown} ({tokens:,.0f}; {milliseconds:.2f} ms)"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.quality.blocks", description=__doc__)
    parser.add_argument("directories", metavar="DIRECTORY", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, metavar="N", help="first questions of a conversation")
    parser.add_argument("--keywords", action="store_true", help="without an embedder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each question there")
    options = parser.parse_args()
    sets = [load_own(), *map(load_conversations, options.directories)]
    embedder = None if options.keywords else minilm()
    by_set = {one.name: measured(one, WAYS, options.limit, embedder) for one in sets}
    report(by_set)
    if options.json:
        options.json.write_text(json.dumps(by_set), encoding="utf-8")


if __name__ == "__main__":
    main()
