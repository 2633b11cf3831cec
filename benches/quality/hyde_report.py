"""Tables of `python -m benches.quality.hyde`: differences with intervals, and sets left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benches.quality.hyde import Measured, Row

RESAMPLES = 2000
SEED = 20
NEEDS_ANSWER = "true answer"


def render(sets: Sequence[Measured], rows: Sequence[Row]) -> str:
    return "\n".join(line for part in (*map(_tables, sets), _choices(sets, rows)) for line in part)


def _tables(measured: Measured) -> Iterator[str]:
    for kind in dict.fromkeys(row.search_type for row in measured.figures):
        yield f"\n{measured.name}, {kind}, {len(measured.groups)} questions\n"
        yield "| hypotheses | | R@5 | R@10 | MRR | R@10: points, by question | by group |"
        yield "|---|---|---|---|---|---|---|"
        plain = next(row for row in measured.figures if row[:2] == (kind, ""))
        for row, figures in measured.figures.items():
            # Without its material (turns, answers) a generator changes no answer of a set.
            is_same = bool(row.generator) and np.array_equal(figures, measured.figures[plain])
            if row.search_type == kind and not is_same:
                yield _line(row, figures, measured.figures[plain], measured.groups)


def _line(row: Row, figures: np.ndarray, plain: np.ndarray, groups: list[str]) -> str:
    means = " | ".join(f"{value:.3f}".lstrip("0") for value in figures.mean(axis=0))
    difference = 100 * (figures - plain)[:, 1]
    by_question = interval(difference, np.arange(len(difference)))
    by_group = interval(difference, np.unique(groups, return_inverse=True)[1])
    if not row.generator:
        return f"| the question alone | | {means} | | |"
    return (
        f"| {row.generator} | {row.mode} | {means} | {difference.mean():+.1f} "
        f"({by_question[0]:+.1f} to {by_question[1]:+.1f}) "
        f"| {by_group[0]:+.1f} to {by_group[1]:+.1f} |"
    )


def interval(values: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """95 % of the mean by bootstrap over whole groups."""
    sums, counts = np.bincount(groups, values), np.bincount(groups)
    drawn = np.random.default_rng(SEED).integers(0, len(sums), (RESAMPLES, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _choices(sets: Sequence[Measured], rows: Sequence[Row]) -> Iterator[str]:
    """Choose the best row with each set, and with each conversation, left out in turn."""
    for kind in dict.fromkeys(row.search_type for row in rows):
        some = [
            row
            for row in rows
            if row.search_type == kind and not row.generator.startswith(NEEDS_ANSWER)
        ]
        gains = {one.name: np.stack([_gain(one, row) for row in some]) for one in sets}
        yield f"\n{kind}: chosen with all sets: {_name(some[_best(gains)])}"
        yield "\n| left out | chosen by the rest | points on it, by question |"
        yield "|---|---|---|"
        for one in sets:
            rest = {name: values for name, values in gains.items() if name != one.name}
            if rest:
                at = _best(rest)
                points = gains[one.name][at]
                yield f"| {one.name} | {_name(some[at])} | {_with_interval(points)} |"
        for one in sets:
            points, chosen = _each_group_left_out(one, gains)
            names = ", ".join(dict.fromkeys(_name(some[at]) for at in chosen))
            yield f"| {one.name}, each conversation | {names} | {_with_interval(points)} |"


def _name(row: Row) -> str:
    return f"{row.generator}, {row.mode}" if row.generator else "the question alone"


def _with_interval(points: np.ndarray) -> str:
    low, high = interval(points, np.arange(len(points)))
    return f"{points.mean():+.1f} ({low:+.1f} to {high:+.1f})"


def _gain(one: Measured, row: Row) -> np.ndarray:
    """Points of the mean of the three figures above the plain question."""
    plain = next(known for known in one.figures if known[:2] == (row.search_type, ""))
    return 100 * (one.figures[row] - one.figures[plain]).mean(axis=1)


def _best(gains: dict[str, np.ndarray]) -> int:
    """Return the row with the largest mean gain over sets; the first of equals."""
    return int(np.argmax(np.mean([values.mean(axis=1) for values in gains.values()], axis=0)))


def _each_group_left_out(
    one: Measured, gains: dict[str, np.ndarray]
) -> tuple[np.ndarray, list[int]]:
    groups, points, chosen = np.array(one.groups), np.zeros(len(one.groups)), []
    for group in np.unique(groups):
        inside = groups == group
        at = _best(gains | {one.name: gains[one.name][:, ~inside]})
        points[inside] = gains[one.name][at][inside]
        chosen.append(at)
    return points, chosen
