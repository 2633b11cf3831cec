"""Processor time against length over hostile texts: `python -m benches.hostile [--only WORD]`.

For each function that reads text, and each family of `benches.support.hostile_texts`, the slope of
log time over log length: 1 is linear, 2 quadratic. Every family is run once; the three steepest of
each function are run five times more, and their medians count. Texts have 16,000 to 1,024,000
characters; those of functions that read less, up to their limit. Exits with 1 if a slope
reaches 1.2.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benches.support import environment
from benches.support.hostile_texts import FAMILIES
from benches.support.memories import OneVector
from mnemic import Memory, _core
from mnemic.compat import AsyncRetrievalService, ContextWindow
from mnemic.context.compaction import _near_duplicates
from mnemic.context.items import ContextItem, ContextItemType
from mnemic.contradictions import RuleJudge
from mnemic.demo.run import read
from mnemic.embed.chunking import Chunker
from mnemic.model import MemoryQuery
from mnemic.model.validation import MAX_QUERY_LENGTH
from mnemic.retrieval.expansion import CorpusExpander, Related, terms_of, without_marker

LENGTHS = (16_000, 64_000, 256_000, 1_024_000)
QUERY_LENGTHS = tuple(MAX_QUERY_LENGTH // 64 * times for times in (1, 4, 16, 64))
STEEPEST = 3
REPEATS = 5
MOST_SECONDS = 20.0
WANTED = 1.2
LEAST_SECONDS = 1e-4
"""What takes less is all overhead and noise, and counts as this much."""


class Case(NamedTuple):
    """A function that reads text."""

    name: str
    call: Callable[[str], object]
    lengths: tuple[int, ...] = LENGTHS


def seconds(case: Case, text: str, repeats: int) -> float:
    """Return the median time of some calls."""
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        case.call(text)
        taken.append(time.process_time() - begin)
        if sum(taken) > MOST_SECONDS:
            break
    return max(float(np.median(taken)), LEAST_SECONDS)


def slope(case: Case, family: str, repeats: int) -> tuple[float, float]:
    """Return the slope over the lengths, and the seconds at the longest that was run."""
    lengths, taken = [], []
    for length in case.lengths:
        lengths.append(length)
        taken.append(seconds(case, FAMILIES[family](length), repeats))
        if taken[-1] > MOST_SECONDS:
            break
    if len(lengths) == 1:
        return float("inf"), taken[-1]
    steepness, _ = np.polyfit(np.log(lengths), np.log(taken), 1)
    return float(steepness), taken[-1]


def measured(case: Case) -> tuple[str, float, float]:
    """Return the steepest family of a function, its slope and its time at the greatest length."""
    once = {family: slope(case, family, 1) for family in FAMILIES}
    steepest = sorted(once, key=lambda family: -once[family][0])[:STEEPEST]
    found = {family: slope(case, family, REPEATS) for family in steepest}
    worst = max(found, key=lambda family: found[family][0])
    return worst, *found[worst]


def core_cases() -> list[Case]:
    """Return the functions of the core that take a text by itself."""
    now = 1_700_000_000_000_000
    return [
        Case("fingerprint", _core.fingerprint),
        Case("fold", _core.fold),
        Case("estimate_tokens", _core.estimate_tokens),
        Case("sentences", _core.sentences),
        Case("clip_sentences", lambda text: _core.clip_sentences(text, len(text) // 20)),
        Case("truncate_to_tokens", lambda text: _core.truncate_to_tokens(text, len(text) // 8)),
        Case("truncate", lambda text: _core.truncate(text, len(text) // 2)),
        Case("date_ranges", lambda text: _core.date_ranges(text, now)),
    ]


def python_cases(folder: Path) -> list[Case]:
    """Return the functions of the package that take a text by itself."""
    judge, expander, chunker = RuleJudge(), CorpusExpander(), Chunker(256)

    async def related(_text: str) -> Related:
        return Related([], 0.0)

    def judged(text: str) -> object:
        return asyncio.run(judge.judge(f"Ana has 3 boats. {text}", [f"Ana has 4 boats. {text}"]))

    def read_as(name: str) -> Callable[[str], object]:
        def call(text: str) -> object:
            path = folder / name
            path.write_text(text + "\nend", "utf-8")
            return read(path)

        return call

    def near_duplicates(text: str) -> object:
        item = ContextItem(content=f"a {text}", type=ContextItemType.OTHER)
        return list(_near_duplicates([item, item]))

    return [
        Case("judge of contradictions", judged),
        Case("parts of a long text", chunker.chunks),
        Case("expansion of a query", lambda text: asyncio.run(expander.expand(text, related))),
        Case("terms of a model's answer", lambda text: terms_of(text, "tea")),
        Case("line of a model's answer", without_marker),
        Case("demo: text", read_as("text.txt")),
        Case("demo: Markdown", read_as("text.md")),
        Case("demo: JSON Lines", read_as("text.jsonl")),
        Case("near duplicates of a window", near_duplicates),
    ]


def memory_cases(folder: Path) -> list[Case]:
    """Return the verbs of a memory."""
    few = Memory(folder / "few.db", embedder=OneVector(4))
    few.add_many(
        {
            "content": f"Ana {number % 7} told Bo of tea number {number} in May: who is it?",
            "session_id": f"s{number % 5}",
            "speaker": "Ana" if number % 2 else None,
        }
        for number in range(200)
    )
    service = AsyncRetrievalService(few)
    stored = Memory(folder / "stored.db", embedder=OneVector(4))

    def add(text: str) -> None:
        stored.delete_all(permanent=True)
        stored.add(f"Ana: tea {text} z", session_id="s")

    def found(text: str) -> None:
        if not stored.count() or len(stored.recent(limit=1)[0].entry.content) != len(text) + 11:
            add(text)
        for query in ("tea in May 2023", "who is Ana?"):
            stored.search(query, limit=3, filters={"content": {"contains": "zz"}})
            stored.context(query)
            stored.retrieve(MemoryQuery(query=query, expand_query=True, use_cache=False))

    def exchange(text: str) -> None:
        add(text)
        path = folder / "export.jsonl"
        stored.export(path, overwrite=True)
        stored.delete_all(permanent=True)
        stored.import_(path)

    def retrieve(text: str) -> object:
        query = MemoryQuery(query=text, search_type="hybrid", expand_query=True, use_cache=False)
        return few.retrieve(query)

    def window(text: str) -> object:
        made = ContextWindow(10_000_000)
        made.add(f"a {text}", ContextItemType.OTHER)
        return made.build()

    def beginning(call: Callable[[str], object]) -> Callable[[str], object]:
        return lambda text: call(f"q {text}"[: len(text)])

    return [
        Case("search", beginning(few.search), QUERY_LENGTHS),
        Case("recall", beginning(few.recall), QUERY_LENGTHS),
        Case("context", beginning(few.context), QUERY_LENGTHS),
        Case("retrieve with expansion", beginning(retrieve), QUERY_LENGTHS),
        Case("suggest_queries", lambda text: asyncio.run(service.suggest_queries(f"a {text}"))),
        Case("contradictions", beginning(few.contradictions)),
        Case("add", add),
        Case("search, context, retrieve of it", found),
        Case("export and import_", exchange),
        Case("context window", window),
    ]


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="functions whose name holds this word")
    options = parser.parse_args()
    print(environment.title(environment.machine()), flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cases = [
            *core_cases(),
            *python_cases(Path(folder)),
            *memory_cases(Path(folder)),
        ]
        print(f"{'function':30} {'characters':>12} {'slope':>6} {'ms':>9}  steepest family")
        for case in cases:
            if options.only and options.only not in case.name:
                continue
            family, steepness, longest = measured(case)
            failed = failed or steepness >= WANTED
            print(
                f"{case.name:30} {case.lengths[-1]:12,} {steepness:6.2f} {longest * 1e3:9.2f}  "
                f"{family}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
