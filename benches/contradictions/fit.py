"""Fit the weights of the rule judge on `dev` and `dev2`: `python -m benches.contradictions.fit`.

Prints the scores of each fold under weights fitted on the others, then writes
`mnemic/contradictions/data/weights.txt` from all pairs.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benches.contradictions.__main__ import THRESHOLD, THRESHOLDS, TUNABLE, Count, line, load
from mnemic.contradictions import rule_judge as evidence_module
from mnemic.contradictions.parse import parse
from mnemic.contradictions.rule_judge import evidence
from mnemic.contradictions.signals import Pair

HALVES = TUNABLE
FOLDS = 4
FALSE_ALARM = 2.0  # a false alarm costs as much as two misses
SHRINKAGE = 0.2
STEPS = 60
HEADER = "# Weights of the evidence; written by `python -m benches.contradictions.fit`."
WEIGHTS_FILE = Path(inspect.getfile(evidence_module)).with_name("data") / "weights.txt"


class Table(NamedTuple):
    """The pairs as rows: the features found in each, and the right answer."""

    names: list[str]
    found: np.ndarray
    is_told: np.ndarray
    contradicts: np.ndarray
    half: np.ndarray
    fold: np.ndarray


def read() -> Table:
    seen: dict[tuple, int] = defaultdict(int)
    rows, halves, folds, labels = [], [], [], []
    for half in HALVES:
        for pair in load(half):
            older, newer = parse(pair["first"]), parse(pair["second"])
            rows.append(evidence(Pair(older, newer))[0])
            labels.append(pair["contradicts"])
            halves.append(half)
            group = half, pair["kind"], pair["contradicts"]
            folds.append(seen[group] % FOLDS)
            seen[group] += 1
    names = sorted({name for row in rows for name in row})
    found = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    is_told = np.array([bool(row) for row in rows])
    return Table(names, found, is_told, np.array(labels), np.array(halves), np.array(folds))


def fit(table: Table, chosen: np.ndarray) -> np.ndarray:
    """Return the weights of a logistic regression with ridge penalty, by Newton's method."""
    rows, labels = table.found[chosen], table.contradicts[chosen]
    importance = np.where(labels, 1.0, FALSE_ALARM)
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (importance * (expected - labels)) + SHRINKAGE * weights
        curvature = (rows.T * (importance * expected * (1 - expected))) @ rows
        weights -= np.linalg.solve(curvature + SHRINKAGE * np.eye(len(weights)), slope)
    return weights


def cross_validated(table: Table) -> np.ndarray:
    """Return each pair's confidence under weights fitted without its fold."""
    sure = np.zeros(len(table.fold))
    for fold in range(FOLDS):
        weights = fit(table, (table.fold != fold) & table.is_told)
        chosen = (table.fold == fold) & table.is_told
        sure[chosen] = 1 / (1 + np.exp(-table.found[chosen] @ weights))
    return sure


def counted(table: Table, alarms: np.ndarray, chosen: np.ndarray) -> str:
    right, alarm = table.contradicts[chosen], alarms[chosen]
    count = Count(
        int((alarm & right).sum()), int((alarm & ~right).sum()), int((~alarm & right).sum())
    )
    return line("", int(chosen.sum()), count).strip()


def written(names: list[str], weights: np.ndarray) -> str:
    lines = [f"{name}: {weight:.2f}" for name, weight in zip(names, weights, strict=True)]
    return "\n".join([HEADER, "", *lines, ""])


def main() -> None:
    table = read()
    sure = cross_validated(table)
    alarms = sure >= THRESHOLD
    print(f"{FOLDS} folds; pairs, right, false, missed, precision, recall, F1")
    for half in HALVES:
        is_half = table.half == half
        for threshold in THRESHOLDS:
            print(f"{half:<4} {threshold:<4}", counted(table, sure >= threshold, is_half))
        for fold in range(FOLDS):
            print(f"  fold {fold} ", counted(table, alarms, is_half & (table.fold == fold)))
    WEIGHTS_FILE.write_text(written(table.names, fit(table, table.is_told)), encoding="utf-8")


if __name__ == "__main__":
    main()
