"""Pages, floors and reasons over many memories: `python -m benches.finding [--rows N]`.

Real sentences of one user with random vectors, searched by meaning and keywords at the synchronous
door, the embedding left out. The calls take turns; medians in milliseconds, and each call's over
that of a plain search.
"""

import argparse
import statistics
import time

import numpy as np

import mnemic
from benches.datasets import real_texts

DIM = 384
ROUNDS = 200
FILTER = {"metadata": {"part": 1}}
CALLS = {
    "search": {},
    "offset=40": {"offset": 40},
    "filter": {"filters": FILTER},
    'min_score="auto"': {"min_score": "auto"},
    "total=True": {"total": True},
    "explain=True": {"explain": True},
    "recent, offset=40": None,
}


class RandomEmbedder:
    """A vector for each text, at no cost."""

    model, dimensions, max_tokens, similarity_floor = "random", DIM, None, 0.25

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def embed(self, texts: list[str]) -> np.ndarray:
        vectors = self._random.standard_normal((len(texts), DIM)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def timed(memory: mnemic.Memory, query: str, options: dict | None) -> float:
    begun = time.perf_counter()
    if options is None:
        memory.recent(offset=40)
    else:
        memory.search(query, **options)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.finding", description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    rows = parser.parse_args().rows
    texts = list(real_texts())
    queries = [text for text in texts[:1000] if len(text.split()) <= 12]
    with mnemic.Memory(":memory:", embedder=RandomEmbedder(), track_access=False) as memory:
        memory.add_many(
            [
                {"content": text, "metadata": {"part": at % 5}}
                for at, text in enumerate(texts[:rows])
            ]
        )
        took: dict[str, list[float]] = {name: [] for name in CALLS}
        for turn in range(ROUNDS):
            for name, options in CALLS.items():
                took[name].append(timed(memory, queries[turn % len(queries)], options))
    plain = statistics.median(took["search"])
    for name, times in took.items():
        median = statistics.median(times)
        print(f"{name:20} {median:7.3f} ms   {median / plain:5.2f}")


if __name__ == "__main__":
    main()
