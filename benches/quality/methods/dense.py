"""Vector baseline: the default embedder and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benches.quality.methods.ranking import best_first
from benches.quality.vectors import minilm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class Dense:
    """Cosine of sentence vectors, computed in float64 over every row."""

    name = "dense MiniLM (float64 brute force)"

    def __init__(self) -> None:
        self._embedder = minilm()
        self._ids: list[str] = []

    def index(self, memories: Sequence[Memory]) -> None:
        self._ids = [memory.id for memory in memories]
        self._vectors = self._embed([memory.content for memory in memories])

    def search(self, question: str, limit: int) -> list[str]:
        return [self._ids[row] for row in best_first(self.scores(question), limit)]

    def scores(self, question: str) -> np.ndarray:
        """Return the cosine of every memory."""
        return self._vectors @ self._embed([question])[0]

    def close(self) -> None:
        """Nothing is held."""

    def _embed(self, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(self._embedder.embed(texts), dtype=np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
