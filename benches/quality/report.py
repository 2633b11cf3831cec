"""Render outcomes as tables for people and as a record for machines."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from benches.quality.measure import grouped, summarise

if TYPE_CHECKING:
    from benches.quality.datasets import Dataset
    from benches.quality.measure import Outcome

BREAKDOWNS = {"kind": "category", "collection": "conversation"}
PACKAGES = ("mnemic", "bm25s", "PyStemmer", "numpy", "onnxruntime")


def render(dataset: Dataset, results: dict[str, list[Outcome]]) -> str:
    """Write the overall table and one for each breakdown that has more than one group."""
    first = next(iter(results.values()))
    count = sum(len(collection.memories) for collection in dataset.collections)
    heading = f"{dataset.name}: {count} memories, {len(first)} questions, sha256 {dataset.sha256}"
    overall = {name: summarise(outcomes) for name, outcomes in results.items()}
    parts = [heading, table(overall, "method")]
    for attribute, title in BREAKDOWNS.items():
        groups = grouped(first, attribute)
        if len(groups) > 1:
            parts.append(table(breakdown(results, attribute), f"by {title}"))
    return "\n\n".join(parts)


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
    for label, summary in rows.items():
        lines.append([label, *(f"{mean:.3f} ±{error:.3f}" for mean, error in summary.values())])
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
