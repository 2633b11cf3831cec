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


SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han."""

# A Chinese sentence has no word of its own for `\w+`. On 47 questions about Chinese chats single
# characters had a mean of R@5, R@10, R@20 and nDCG@10 of .770, pairs .734, both together .764.
WORD = re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}])\w)+")


def words_of(text: str) -> list[str]:
    """Lower-case words; in scripts without spaces each character is one."""
    return WORD.findall(text.lower())


class Bm25:
    """BM25 over `words_of`, stemmed by Snowball's English stemmer, without a stop list.

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
        return self._stemmer.stemWords(words_of(text))


def usual() -> Bm25:
    """The parameters most libraries have as their default."""
    return Bm25(k1=1.5, b=0.75)


def flat() -> Bm25:
    """Weaker length normalisation and earlier saturation, which suits short texts."""
    return Bm25(k1=0.9, b=0.4)
