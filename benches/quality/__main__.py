"""Measure retrieval quality: `python -m benches.quality [DIRECTORY]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benches.quality.datasets import load_conversations, load_own
from benches.quality.measure import measure
from benches.quality.methods import METHODS, build
from benches.quality.report import record, render


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
        "directory",
        nargs="?",
        type=Path,
        help="folder with turns.jsonl and questions.jsonl; default: the project's own set",
    )
    parser.add_argument(
        "--methods",
        type=method_names,
        default=list(METHODS),
        help=f"comma-separated, of {', '.join(METHODS)}; default: all",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="only the first N questions of each conversation",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    dataset = load_conversations(options.directory) if options.directory else load_own()
    results = {}
    for name in options.methods:
        method = build(name)
        results[method.name] = measure(method, dataset, limit=options.limit)
    print(render(dataset, results))
    if options.json:
        report = record(dataset, results)
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
