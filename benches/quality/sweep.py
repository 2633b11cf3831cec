"""Figures of open memories under many rankings, stored so that a run can be resumed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import mnemic
from benches.quality.compare import FIGURES
from benches.quality.constants import as_text, ranking_of
from benches.quality.measure import DEPTH, figures_of, measure
from benches.quality.methods import build
from benches.quality.progress import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.quality.constants import Point
    from benches.quality.datasets import Dataset
    from benches.quality.methods.front_door import FrontDoor
    from mnemic.model import Ranking


class OpenSet:
    """A data set whose collections are each indexed once and stay open."""

    def __init__(self, dataset: Dataset, open_door: Callable[[], FrontDoor]) -> None:
        self.dataset = dataset
        self._doors = [open_door() for _ in dataset.collections]
        for door, collection in zip(self._doors, dataset.collections, strict=True):
            door.index(collection.memories)

    def figures(self, ranking: Ranking) -> list[list[float]]:
        """R@5, R@10, R@20 and nDCG@10 of each question, in the order of the data."""
        rows = []
        for door, collection in zip(self._doors, self.dataset.collections, strict=True):
            for question in collection.questions:
                found = door.search(question.text, DEPTH, ranking=ranking)
                figures = figures_of(found, question, self.dataset.relevant_from)
                rows.append([figures[name] for name in FIGURES])
        return rows

    def close(self) -> None:
        for door in self._doors:
            door.close()


class FigureFile:
    """The four figures of every question, in an SQLite file by data, package and method."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, timeout=60)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS figures (data TEXT, package TEXT, method TEXT, "
            "figures TEXT, PRIMARY KEY (data, package, method)) WITHOUT ROWID"
        )

    def get(self, data: str, method: str) -> list[list[float]] | None:
        """The figures that this very package gave; None where there are none."""
        select = "SELECT figures FROM figures WHERE (data, package, method) = (?, ?, ?)"
        row = self._file.execute(select, (data, package_hash(), method)).fetchone()
        return row and json.loads(row[0])

    def put(self, data: str, method: str, figures: list[list[float]]) -> None:
        row = (data, package_hash(), method, json.dumps(figures))
        with self._file:
            self._file.execute("INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        self._file.close()


@cache
def package_hash() -> str:
    """SHA-256 of the package's code, compiled and not: another version may rank in another way."""
    folder = Path(mnemic.__file__).parent
    code = sorted(path for suffix in ("py", "so", "pyd") for path in folder.rglob(f"*.{suffix}"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


class Sweep:
    """Figures of merit of the sets under the preset with the constants of a point."""

    def __init__(
        self,
        sets: list[OpenSet],
        preset: Ranking,
        names: tuple[str, ...],
        file: FigureFile,
        part_names: tuple[str, ...] = (),
    ) -> None:
        """Take the sets, the constants that vary, and short names of methods for `parts`."""
        self.sets = {one.dataset.name: conversations_of(one.dataset) for one in sets}
        self._open = {one.dataset.name: one for one in sets}
        self._preset = preset
        self._names = names
        self._file = file
        self._part_names = part_names
        self._known: dict[tuple[str, str], np.ndarray] = {}
        self._line = Line()
        self.measured = 0
        self._seconds = 0.0

    def at(self, point: Point, name: str) -> np.ndarray:
        """Mean of the four figures of each question of a set, 0 to 1."""
        ranking = ranking_of(self._preset, self._names, point)
        return self._figures(name, as_text(ranking), lambda: self._open[name].figures(ranking))

    def parts(self, name: str) -> list[np.ndarray]:
        """The same by each of the methods that were named."""
        dataset = self._open[name].dataset
        return [
            self._figures(name, part, lambda part=part: figures_by(part, dataset))
            for part in self._part_names
        ]

    def _figures(
        self, name: str, method: str, compute: Callable[[], list[list[float]]]
    ) -> np.ndarray:
        if (name, method) not in self._known:
            rows = self._stored(name, method, compute)
            self._known[name, method] = np.asarray(rows, dtype=float).mean(axis=1)
        return self._known[name, method]

    def _stored(
        self, name: str, method: str, compute: Callable[[], list[list[float]]]
    ) -> list[list[float]]:
        data = data_of(self._open[name].dataset)
        rows = self._file.get(data, method)
        if rows is None:
            begin = time.monotonic()
            rows = compute()
            self._file.put(data, method, rows)
            self._report(name, time.monotonic() - begin)
        return rows

    def _report(self, name: str, seconds: float) -> None:
        self.measured += 1
        self._seconds += seconds
        self._line.show(
            f"measured {self.measured:,} rankings of single sets in {self._seconds:.0f} s, "
            f"{name} in {seconds:.1f} s"
        )


def conversations_of(dataset: Dataset) -> np.ndarray:
    """The conversation of each question."""
    return np.array([one.name for one in dataset.collections for _ in one.questions])


def data_of(dataset: Dataset) -> str:
    """Hash of the data and of the questions that are asked."""
    asked = [one.id for collection in dataset.collections for one in collection.questions]
    return f"{dataset.sha256} {hashlib.sha256(json.dumps(asked).encode()).hexdigest()}"


def figures_by(method: str, dataset: Dataset) -> list[list[float]]:
    """The four figures of each question by the method of that short name."""
    outcomes = measure(build(method), dataset)
    return [[outcome.figures[figure] for figure in FIGURES] for outcome in outcomes]
