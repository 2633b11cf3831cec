"""Choose constants of the ranking with each set and each conversation left out in turn.

`python -m benches.quality.choose DIRECTORY … --set similarity.long=.5,.7 --set session.next=.3,.5`
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from benches.quality.choosing import OBJECTIVES, Search, label, leave_out, pooled
from benches.quality.compare import PARTS
from benches.quality.constants import names_of, parse_candidates, ranking_of, value_of
from benches.quality.datasets import load_conversations, load_own
from benches.quality.methods.front_door import defaults, keyword
from benches.quality.metrics import mean_and_error
from benches.quality.progress import Line
from benches.quality.report import aligned, points
from benches.quality.sweep import FigureFile, OpenSet, Sweep
from benches.support.datasets import CACHE
from mnemic.errors import InvalidArgumentError
from mnemic.model.ranking import HYBRID, KEYWORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.choosing import Held, Report
    from benches.quality.constants import Point
    from benches.quality.datasets import Dataset

PRESETS = {"hybrid": (HYBRID, defaults), "keyword": (KEYWORD, keyword)}
"""Constants to begin with, and the memory that they rank."""

STORE = CACHE / "quality-choose.sqlite"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.choose",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directories", metavar="DIRECTORY", nargs="*", type=Path)
    parser.add_argument("--own", action="store_true", help="the project's own set as well")
    parser.add_argument(
        "--set",
        dest="candidates",
        metavar="NAME=V1,V2,…",
        type=parse_candidates,
        action="append",
        required=True,
        help="candidates of a constant, beside its present value",
    )
    parser.add_argument("--preset", choices=PRESETS, default="hybrid")
    parser.add_argument(
        "--descent", action="store_true", help="one constant at a time, not every combination"
    )
    parser.add_argument("--objective", choices=OBJECTIVES, default="no-loss")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="only the first N questions of each conversation"
    )
    parser.add_argument("--store", type=Path, default=STORE, help="figures of earlier runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there")
    options = parser.parse_args(arguments)
    if not (options.directories or options.own):
        parser.error("at least one DIRECTORY or --own")
    try:
        options.search = search_of(options)
    except (ValueError, InvalidArgumentError) as error:
        parser.error(str(error))
    return options


def search_of(options: argparse.Namespace) -> Search:
    """The candidates with the preset's value first, each of them tried on the preset.

    Raises:
        ValueError: If the ranking has no constant of a name.
        InvalidArgumentError: If it does not allow a value.
    """
    preset = PRESETS[options.preset][0]
    candidates = []
    for name, values in options.candidates:
        try:
            present = value_of(preset, name)
        except AttributeError:
            known = ", ".join(names_of(preset))
            raise ValueError(f"there is no constant {name!r}; there are {known}") from None
        candidates.append((present, *(value for value in values if value != present)))
        for value in values:
            ranking_of(preset, (name,), (value,))
    return Search(tuple(candidates), OBJECTIVES[options.objective], options.descent)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    names = tuple(name for name, _ in options.candidates)
    preset, door = PRESETS[options.preset]
    open_sets = [OpenSet(one, door) for one in datasets_of(options)]
    file = FigureFile(options.store)
    parts = PARTS if options.objective == "regret" else ()
    sweep = Sweep(open_sets, preset, names, file, parts)
    found = leave_out(options.search, sweep, Line().show)
    print(render(found, names))
    if options.json:
        text = json.dumps(record(found, names), indent=1, default=msgspec.to_builtins)
        options.json.write_text(f"{text}\n", encoding="utf-8")
    file.close()
    for one in open_sets:
        one.close()


def datasets_of(options: argparse.Namespace) -> list[Dataset]:
    datasets = [load_conversations(directory) for directory in options.directories]
    if options.own:
        datasets.append(load_own())
    return [limited(dataset, options.limit) for dataset in datasets]


def limited(dataset: Dataset, limit: int | None) -> Dataset:
    collections = [replace(one, questions=one.questions[:limit]) for one in dataset.collections]
    return replace(dataset, collections=collections)


def render(found: Report, names: tuple[str, ...]) -> str:
    """The constants chosen, the points of what was left out, and the most that was lost."""
    return "\n\n".join(
        [
            f"present: {constants(found.preset, names)}\nchosen:  {constants(found.chosen, names)}",
            gains_table(found.gains),
            held_table("set left out", found.by_set, names, found.chosen),
            held_table("conversation left out", found.by_conversation, names, found.chosen),
            pooled_table(pooled(found.by_conversation)),
            most_lost("set", found.by_set),
            most_lost("conversation", found.by_conversation),
            most_lost("set, by its conversations", list(pooled(found.by_conversation).values())),
        ]
    )


def gains_table(gains: dict[str, np.ndarray]) -> str:
    lines = [["set", "chosen on all against the present"]]
    return aligned(lines + [[name, shown(values)] for name, values in gains.items()])


HEADINGS = ["questions", "against the present", "against those chosen on all"]


def held_table(title: str, held: Sequence[Held], names: tuple[str, ...], chosen: Point) -> str:
    lines = [[title, *HEADINGS, "other than those chosen on all"]]
    for one in held:
        others = changes(one.point, chosen, names)
        lines.append([label(one.left), *effects(one), others])
    return aligned(lines)


def pooled_table(held: dict[str, Held]) -> str:
    lines = [["set, each question without its conversation", *HEADINGS]]
    return aligned(lines + [[name, *effects(one)] for name, one in held.items()])


def effects(held: Held) -> list[str]:
    count = str(len(held.against_all))
    return [count, shown(held.against_preset), shown(held.against_all)]


def shown(gains: np.ndarray) -> str:
    return points(mean_and_error(gains.tolist()))


def constants(point: Point, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, point, strict=True))


def changes(point: Point, other: Point, names: tuple[str, ...]) -> str:
    """The constants in which a point differs from the other."""
    differing = [at for at in range(len(names)) if point[at] != other[at]]
    return constants(tuple(point[at] for at in differing), tuple(names[at] for at in differing))


def most_lost(title: str, held: Sequence[Held]) -> str:
    """The worst left-out part, against both comparisons; a gain everywhere is no loss."""
    if not held:
        return f"left-out {title}: there is none"
    worst = [
        max(0.0, *(-float(np.mean(getattr(one, which))) for one in held))
        for which in ("against_preset", "against_all")
    ]
    return (
        f"left-out {title}: at most {worst[0]:.1f} points lost against the present, "
        f"{worst[1]:.1f} against the constants chosen on all"
    )


def record(found: Report, names: tuple[str, ...]) -> dict[str, Any]:
    """Choices and effects as JSON types."""
    return {
        "names": names,
        "present": found.preset,
        "chosen": found.chosen,
        "gains": {name: summary(values) for name, values in found.gains.items()},
        "by_set": list(map(held_record, found.by_set)),
        "by_conversation": list(map(held_record, found.by_conversation)),
        "pooled": {name: held_record(one) for name, one in pooled(found.by_conversation).items()},
    }


def held_record(held: Held) -> dict[str, Any]:
    return {
        "set": held.left.name,
        "conversation": held.left.conversation,
        "constants": held.point,
        "against_present": summary(held.against_preset),
        "against_all": summary(held.against_all),
    }


def summary(gains: np.ndarray) -> dict[str, Any]:
    mean, error = mean_and_error(gains.tolist())
    return {"questions": len(gains), "mean": mean, "error": None if np.isnan(error) else error}


if __name__ == "__main__":
    main()
