"""Reciprocal rank fusion of keywords and vectors, the usual hybrid search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benches.quality.methods.bm25 import flat
from benches.quality.methods.dense import Dense
from benches.quality.methods.ranking import best_first, reciprocal_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class Fusion:
    """Sum of 1 / (60 + rank) over BM25 and cosine (Cormack et al., SIGIR 2009).

    Both rank every memory, but BM25 none without a word of the question.
    """

    name = "RRF k 60 of BM25 k1 0.9 b 0.4 and dense"

    def __init__(self) -> None:
        self._keywords = flat()
        self._dense = Dense()
        self._ids: list[str] = []

    def index(self, memories: Sequence[Memory]) -> None:
        self._ids = [memory.id for memory in memories]
        self._keywords.index(memories)
        self._dense.index(memories)

    def search(self, question: str, limit: int) -> list[str]:
        keywords = self._keywords.scores(question)
        fused = reciprocal_ranks(keywords, keywords > 0)
        fused += reciprocal_ranks(self._dense.scores(question))
        return [self._ids[row] for row in best_first(fused, limit)]

    def close(self) -> None:
        self._keywords.close()
        self._dense.close()
