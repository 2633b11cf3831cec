"""The default ranking with other embedders: `python -m benches.quality.embedders DIRECTORY …`.

Each is asked on the learned scale, and once more with its cosines as they are. Figures are R@10 /
nDCG@10 of hybrid searches, and the percent of questions and of nonsense that `min_score="auto"`
refuses.
"""

from __future__ import annotations

import argparse
import random
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import mnemic
from benches.quality.datasets import load_conversations
from benches.quality.floors import nonsense
from benches.quality.measure import DEPTH, figures_of
from benches.quality.methods.front_door import entry_fields
from benches.quality.progress import Line
from benches.quality.vectors import minilm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benches.quality.datasets import Dataset

    Embed = Callable[[Sequence[str]], np.ndarray]

TOKENS = "tokens"
OWN_PARTS = 512
NONSENSE = 60
AS_THEY_ARE = {"similarity_floor": -1.0, "score_floors": {"hybrid": -1.0, "semantic": -1.0}}
"""An embedder that is calibrated keeps its cosines; by these floors nothing is left out."""


class Named(NamedTuple):
    """An embedder of a function, with floors of its own or none."""

    model: str
    dimensions: int
    embed: Embed
    similarity_floor: float | None = None
    score_floors: dict[str, float] | None = None


def squeezed(mean: float, share: float) -> Embed:
    """Embed so that the cosine of two texts is `mean` and a share of that of the default's."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        seeds = [np.random.default_rng(zlib.crc32(text.encode())) for text in texts]
        own = unit(np.stack([seed.standard_normal(OWN_PARTS) for seed in seeds]))
        common = np.full((len(texts), 1), mean**0.5)
        parts = [share**0.5 * unit(minilm().embed(texts)), common, (1 - mean - share) ** 0.5 * own]
        return np.hstack(parts).astype(np.float32)

    return embed


def projected(texts: Sequence[str]) -> np.ndarray:
    axes = np.random.default_rng(5).standard_normal((minilm().dimensions, 256))
    return unit(minilm().embed(texts) @ axes).astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def embedders() -> dict[str, Named]:
    wide = minilm().dimensions + 1 + OWN_PARTS
    found = [
        Named("as a function", minilm().dimensions, minilm().embed),
        Named("copy of .7 + .2 cos", wide, squeezed(0.7, 0.2)),
        Named("copy of .75 + .15 cos", wide, squeezed(0.75, 0.15)),
        Named("projection to 256", 256, projected),
    ]
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        print(f"{TOKENS}: left out; pip install wordllama==0.4.0.post1 measures them too")
    else:
        from wordllama import WordLlama  # noqa: PLC0415 - optional

        # It has its files in itself, and looks elsewhere for one of them.
        static = WordLlama.load(cache_dir=Path(package.origin).parent, disable_download=True)
        found.append(Named(TOKENS, 256, lambda texts: static.embed(list(texts))))
    return {each.model: each for each in found}


def measured(dataset: Dataset, embedder: object, limit: int | None) -> str:
    """Return a cell of the table."""
    chance, line = random.Random(7), Line()  # noqa: S311 - data for a measurement
    words = [nonsense(chance) for _ in range(NONSENSE)]
    figures, refused, strange = [], [], []
    for collection in dataset.collections:
        line.show(f"{dataset.name}: {collection.name}")
        with mnemic.Memory(":memory:", track_access=False, embedder=embedder) as memory:
            memory.add_many([entry_fields(one) for one in collection.memories])
            for question in collection.questions[:limit]:
                hits = memory.search(question.text, limit=DEPTH)
                names = [hit.metadata["benchmark_id"] for hit in hits]
                row = figures_of(names, question, dataset.relevant_from)
                figures.append([row["R@10"], row["nDCG@10"]])
                refused.append(not memory.search(question.text, limit=1, min_score="auto"))
            strange += [not memory.search(text, limit=1, min_score="auto") for text in words]
    recall, gain = 100 * np.mean(figures, axis=0)
    return f"{recall:.1f} / {gain:.1f}, {100 * np.mean(refused):.1f}, {100 * np.mean(strange):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.quality.embedders")
    parser.add_argument("directories", metavar="DIRECTORY", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, help="questions of each conversation; default: all")
    parser.add_argument("--local", action="store_true", help="the models of packages alone")
    options = parser.parse_args()
    sets = [load_conversations(directory) for directory in options.directories]
    rows: dict[str, object] = {"MiniLM": minilm()}
    if find_spec("mnemic_e5"):
        rows["multilingual"] = mnemic.E5Embedder()
    for name, embedder in () if options.local else embedders().items():
        rows[name] = embedder
        rows[f"{name}, cosines as they are"] = embedder._replace(**AS_THEY_ARE)
    print(f"| | {' | '.join(one.name for one in sets)} |\n|---|{'---|' * len(sets)}")
    for name, embedder in rows.items():
        cells = [measured(one, embedder, options.limit) for one in sets]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
