"""Measure retrieval quality: `python -m benches.quality [DIRECTORY …]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.quality.compare import DEFAULT, PARTS, MeasuredSet
from benches.quality.datasets import load_conversations, load_languages, load_own
from benches.quality.measure import measure
from benches.quality.methods import METHODS, NAMED_ONLY, build
from benches.quality.report import record, record_sets, render, render_sets

if TYPE_CHECKING:
    from benches.quality.datasets import Dataset


def method_names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {unknown}; there are {', '.join(METHODS)}")
    return names


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.quality", description=__doc__)
    parser.add_argument(
        "directories",
        metavar="DIRECTORY",
        nargs="*",
        type=Path,
        help="folder with turns.jsonl and questions.jsonl; several give one table with the default "
        "against its parts; default: the project's own set",
    )
    parser.add_argument(
        "--languages",
        action="store_true",
        help="the parallel part of the project's own set, by language",
    )
    parser.add_argument(
        "--methods",
        type=method_names,
        help=f"comma-separated, of {', '.join(METHODS)}; default: all but {', '.join(NAMED_ONLY)}, "
        f"of several directories {', '.join([DEFAULT, *PARTS])}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="only the first N questions of each conversation",
    )
    options = parser.parse_args(arguments)
    names = [directory.resolve().name for directory in options.directories]
    if options.languages and names:
        parser.error("--languages takes no directory")
    if len(names) != len(set(names)):
        parser.error("each directory needs a name of its own")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if len(options.directories) > 1:
        measure_several(options)
    else:
        measure_one(options)


def measure_one(options: argparse.Namespace) -> None:
    if options.directories:
        dataset = load_conversations(*options.directories)
    else:
        dataset = load_languages() if options.languages else load_own()
    names = options.methods or [name for name in METHODS if name not in NAMED_ONLY]
    measured = measured_set(dataset, names, options.limit)
    print(render(dataset, measured.results))
    write(options.json, record(dataset, measured.results))


def measure_several(options: argparse.Namespace) -> None:
    """Measure set by set, and write the record after each, so that what is done is kept."""
    sets: list[MeasuredSet] = []
    for dataset in [load_conversations(directory) for directory in options.directories]:
        sets.append(measured_set(dataset, options.methods or [DEFAULT, *PARTS], options.limit))
        write(options.json, record_sets(sets))
    print(render_sets(sets))


def measured_set(dataset: Dataset, names: list[str], limit: int | None) -> MeasuredSet:
    """Run the methods of these short names over a set."""
    labels: dict[str, str] = {}
    results = {}
    for name in names:
        method = build(name)
        labels[name] = method.name
        results[method.name] = measure(method, dataset, limit=limit)
    parts = tuple(labels[name] for name in PARTS if name in labels)
    return MeasuredSet(dataset, results, labels.get(DEFAULT), parts)


def write(path: Path | None, report: dict[str, Any]) -> None:
    if path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
