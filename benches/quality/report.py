"""Render outcomes as tables for people and as a record for machines."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from benches.quality.compare import FIGURES, mean_over, paired, verdict_record, verdicts
from benches.quality.measure import grouped, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benches.quality.compare import MeasuredSet, Verdict
    from benches.quality.datasets import Dataset
    from benches.quality.measure import Outcome

BREAKDOWNS = {"kind": "category", "collection": "conversation"}
PACKAGES = ("mnemic", "bm25s", "PyStemmer", "numpy")


def render(dataset: Dataset, results: dict[str, list[Outcome]]) -> str:
    """Write the overall table and one for each breakdown that has more than one group."""
    first = next(iter(results.values()))
    overall = {name: summarise(outcomes) for name, outcomes in results.items()}
    parts = [heading(dataset, len(first)), table(overall, "method")]
    for attribute, title in BREAKDOWNS.items():
        groups = grouped(first, attribute)
        if len(groups) > 1:
            parts.append(table(breakdown(results, attribute), f"by {title}"))
    return "\n\n".join(parts)


def heading(dataset: Dataset, questions: int) -> str:
    memories = sum(len(collection.memories) for collection in dataset.collections)
    return f"{dataset.name}: {memories} memories, {questions} questions, sha256 {dataset.sha256}"


def render_sets(sets: Sequence[MeasuredSet]) -> str:
    """Write one table over several sets, and whether the default reaches its best part in each."""
    headings = [heading(one.dataset, len(next(iter(one.results.values())))) for one in sets]
    lines = [["set", "method", *FIGURES, "mean", "points against the default"]]
    lines += [line for one in sets for line in lines_of(one)]
    parts = ["\n".join(headings), aligned(lines)]
    found = verdicts(sets)
    if found:
        parts.append(summary_of(found))
    return "\n\n".join(parts)


def lines_of(measured: MeasuredSet) -> Iterator[list[str]]:
    """One line a method: figures, their mean, and the paired difference to the default."""
    default = measured.results.get(measured.default or "")
    for name, outcomes in measured.results.items():
        summary = summarise(outcomes)
        against = ""
        if default is not None and name != measured.default:
            against = points(paired(outcomes, default))
        shares = [share(summary[figure]) for figure in FIGURES]
        yield [measured.dataset.name, name, *shares, share(mean_over(outcomes)), against]


def summary_of(found: Sequence[Verdict]) -> str:
    """Say for each set whether the default reaches its best part less one standard error."""
    lines = [["set", "default", "best part", "", "points above it", ""]]
    for one in found:
        difference = points((one.difference, one.error))
        reached = "reached" if one.reached else "NOT REACHED"
        figures = [f"{one.default:.3f}", one.best_part, f"{one.best:.3f}", difference, reached]
        lines.append([one.dataset, *figures])
    count = sum(one.reached for one in found)
    total = (
        f"The default's mean is at least that of its best part less one standard error of their "
        f"difference on {count} of {len(found)} sets."
    )
    return f"{aligned(lines)}\n\n{total}"


def breakdown(results: dict[str, list[Outcome]], attribute: str) -> dict[str, Any]:
    """Summaries labelled `group (questions) · method`, group by group."""
    by_method = {name: grouped(outcomes, attribute) for name, outcomes in results.items()}
    groups = next(iter(by_method.values()))
    return {
        f"{group} ({len(outcomes)}) · {name}": summarise(by_method[name][group])
        for group, outcomes in groups.items()
        for name in by_method
    }


def table(rows: dict[str, dict[str, tuple[float, float]]], title: str) -> str:
    """Align rows of `mean ±error` under their headings."""
    headings = list(next(iter(rows.values())))
    lines = [[title, *headings]]
    lines += [[label, *map(share, summary.values())] for label, summary in rows.items()]
    return aligned(lines)


def share(figure: tuple[float, float]) -> str:
    mean, error = figure
    return f"{mean:.3f} ±{error:.3f}"


def points(figure: tuple[float, float]) -> str:
    mean, error = figure
    return f"{mean:+.1f} ±{error:.1f}"


def aligned(lines: list[list[str]]) -> str:
    """Pad the columns of a table."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def record(dataset: Dataset, results: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Everything measured, down to the single question, as JSON types."""
    return {
        "dataset": dataset.name,
        "sha256": dataset.sha256,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": {name: installed(name) for name in PACKAGES},
        "methods": {name: method_record(outcomes) for name, outcomes in results.items()},
    }


def record_sets(sets: Sequence[MeasuredSet]) -> dict[str, Any]:
    """The records of several sets, with the comparison of the default and its best part."""
    return {
        "sets": [record(one.dataset, one.results) for one in sets],
        "comparison": {found.dataset: verdict_record(found) for found in verdicts(sets)},
    }


def method_record(outcomes: list[Outcome]) -> dict[str, Any]:
    by_group = {
        title: {group: figures(members) for group, members in grouped(outcomes, attribute).items()}
        for attribute, title in BREAKDOWNS.items()
    }
    questions = {f"{one.collection}/{one.question_id}": one.figures for one in outcomes}
    return {"overall": figures(outcomes), **by_group, "questions": questions}


def figures(outcomes: list[Outcome]) -> dict[str, Any]:
    summary = summarise(outcomes)
    return {
        "count": len(outcomes),
        **{name: {"mean": mean, "error": error} for name, (mean, error) in summary.items()},
    }


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
