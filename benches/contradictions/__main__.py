"""Measure the rule judge of contradictions: `python -m benches.contradictions`.

Prints figures alone. `--errors` lists the wrongly judged pairs of the halves on which rules may be
tuned, never those of the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mnemic.contradictions import Judgement, RuleJudge
from mnemic.model.recall import CONTRADICTION_CONFIDENCE

DATA = Path(__file__).parent / "data"
THRESHOLD = CONTRADICTION_CONFIDENCE
TUNABLE = ("dev", "dev2", "daily")
HELD_OUT = ("held_out", "daily_held_out")
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
ROUNDS = 5
MICROSECONDS = 1e6


class Count(NamedTuple):
    """Right alarms, false alarms and misses."""

    right: int
    false: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.false) if self.right + self.false else float("nan")

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else float("nan")

    @property
    def f1(self) -> float:
        total = 2 * self.right + self.false + self.missed
        return 2 * self.right / total if total else float("nan")


def load(half: str) -> list[dict]:
    lines = (DATA / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


async def judge_all(judge: RuleJudge, pairs: list[dict]) -> list[Judgement]:
    return [(await judge.judge(pair["second"], [pair["first"]]))[0] for pair in pairs]


def count(pairs: list[dict], judgements: list[Judgement], threshold: float) -> Count:
    outcomes = [
        (pair["contradicts"], judgement.confidence >= threshold)
        for pair, judgement in zip(pairs, judgements, strict=True)
    ]
    return Count(
        outcomes.count((True, True)), outcomes.count((False, True)), outcomes.count((True, False))
    )


def count_of_other_topics(judge: RuleJudge, pairs: list[dict]) -> tuple[int, int]:
    """Return how many pairs across topics there are, and how many of them are reported."""
    judged = reported = 0
    for pair in pairs:
        others = [other["first"] for other in pairs if other["topic"] != pair["topic"]]
        judgements = asyncio.run(judge.judge(pair["second"], others))
        judged += len(judgements)
        reported += sum(judgement.confidence >= THRESHOLD for judgement in judgements)
    return judged, reported


def line(name: str, pairs: int, counted: Count) -> str:
    return (
        f"{name:<16} {pairs:>5} {counted.right:>5} {counted.false:>5} {counted.missed:>6} "
        f"{counted.precision:>9.3f} {counted.recall:>6.3f} {counted.f1:>6.3f}"
    )


def by_kind(pairs: list[dict], judgements: list[Judgement]) -> list[str]:
    groups = defaultdict(list)
    for pair, judgement in zip(pairs, judgements, strict=True):
        groups[pair["kind"]].append((pair, judgement))
    lines = []
    for kind, members in sorted(groups.items()):
        chosen, judged = zip(*members, strict=True)
        lines.append(line(kind, len(members), count(chosen, judged, THRESHOLD)))
    return lines


def thresholds(pairs: list[dict], judgements: list[Judgement]) -> list[str]:
    return [
        line(f">= {threshold}", len(pairs), count(pairs, judgements, threshold))
        for threshold in THRESHOLDS
    ]


def microseconds_per_pair(judge: RuleJudge, pairs: list[dict]) -> tuple[float, float]:
    """Return the time of a pair judged alone, and of one among many judged at once."""
    best_alone, best_together = float("inf"), float("inf")
    others = [pair["first"] for pair in pairs]
    for _ in range(ROUNDS):
        start = time.perf_counter()
        asyncio.run(judge_all(judge, pairs))
        best_alone = min(best_alone, time.perf_counter() - start)
        start = time.perf_counter()
        asyncio.run(judge.judge(pairs[0]["second"], others))
        best_together = min(best_together, time.perf_counter() - start)
    return (
        best_alone / len(pairs) * MICROSECONDS,
        best_together / len(pairs) * MICROSECONDS,
    )


def errors(pairs: list[dict], judgements: list[Judgement]) -> list[str]:
    return [
        f"{pair['kind']:<15} {'missed' if pair['contradicts'] else 'false '} "
        f"{judgement.confidence:.2f} {judgement.reason}\n    {pair['first']}\n    {pair['second']}"
        for pair, judgement in sorted(
            zip(pairs, judgements, strict=True), key=lambda item: item[0]["kind"]
        )
        if pair["contradicts"] != (judgement.confidence >= THRESHOLD)
    ]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.contradictions", description=__doc__)
    parser.add_argument("--half", choices=TUNABLE + HELD_OUT, default="dev")
    parser.add_argument("--errors", action="store_true", help="list errors; not of held-out pairs")
    options = parser.parse_args(arguments)
    if options.errors and options.half in HELD_OUT:
        parser.error("the texts of the held-out pairs are not shown")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    pairs = load(options.half)
    judge = RuleJudge()
    judgements = asyncio.run(judge_all(judge, pairs))
    header = (
        f"{'':<16} {'pairs':>5} {'right':>5} {'false':>5} {'missed':>6} "
        f"{'precision':>9} {'recall':>6} {'F1':>6}"
    )
    print(f"{options.half}, threshold {THRESHOLD}")
    print(header, *by_kind(pairs, judgements), sep="\n")
    print(line("all", len(pairs), count(pairs, judgements, THRESHOLD)))
    print("\nby threshold", header[12:], *thresholds(pairs, judgements), sep="\n")
    if "topic" in pairs[0]:
        judged, reported = count_of_other_topics(judge, pairs)
        print(f"\n{judged} pairs of two topics, {reported} reported")
    alone, together = microseconds_per_pair(judge, pairs)
    print(f"\n{alone:.0f} microseconds a pair alone, {together:.0f} among {len(pairs)}")
    if options.errors:
        print("", *errors(pairs, judgements), sep="\n")


if __name__ == "__main__":
    main()
