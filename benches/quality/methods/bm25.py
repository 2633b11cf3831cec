"""Keyword baseline: BM25 as the library `bm25s` computes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import bm25s
import numpy as np
import Stemmer

from benches.quality.methods.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class Bm25:
    """BM25 over lower-case words stemmed by Snowball's English stemmer, without a stop list.

    The idf is ln(1 + (N - n + .5) / (n + .5)) over the indexed memories; a word that occurs twice
    in the question counts twice.
    """

    def __init__(self, *, k1: float, b: float) -> None:
        self.name = f"BM25 k1 {k1} b {b} stemmed"
        self._k1 = k1
        self._b = b
        self._stemmer = Stemmer.Stemmer("english")
        self._ids: list[str] = []

    def index(self, memories: Sequence[Memory]) -> None:
        self._ids = [memory.id for memory in memories]
        self._index = bm25s.BM25(k1=self._k1, b=self._b, method="lucene")
        self._index.index([self._words(memory.content) for memory in memories], show_progress=False)

    def search(self, question: str, limit: int) -> list[str]:
        return [self._ids[row] for row in best_first(self.scores(question), limit)]

    def scores(self, question: str) -> np.ndarray:
        """Return the score of every memory; 0 without a word of the question."""
        known = [word for word in self._words(question) if word in self._index.vocab_dict]
        return self._index.get_scores(known) if known else np.zeros(len(self._ids))

    def close(self) -> None:
        """Nothing is held."""

    def _words(self, text: str) -> list[str]:
        return self._stemmer.stemWords(re.findall(r"\w+", text.lower()))


def usual() -> Bm25:
    """The parameters most libraries have as their default."""
    return Bm25(k1=1.5, b=0.75)


def flat() -> Bm25:
    """Weaker length normalisation and earlier saturation, which suits short texts."""
    return Bm25(k1=0.9, b=0.4)
