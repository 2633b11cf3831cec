"""Vectors that all systems share: MiniLM's, computed once and looked up by text."""

import numpy as np

from benches.quality.vectors import minilm


class StoredVectors:
    """An embedder that looks texts up.

    A text that was not given beforehand, such as a query that a system rewrote, is embedded when
    it is first seen and counted in `late`.
    """

    def __init__(self, texts, vectors, embedder=None):
        self._rows = dict(zip(texts, vectors, strict=True))
        self._embedder = embedder or minilm()
        self.model = self._embedder.model
        self.dimensions = self._embedder.dimensions
        self.max_tokens = self._embedder.max_tokens
        self.similarity_floor = self._embedder.similarity_floor
        self.score_floors = self._embedder.score_floors
        self.languages = self._embedder.languages
        self.late = 0

    def embed(self, texts):
        """Return the texts' vectors, shape (len(texts), dimensions), float32."""
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text):
        found = self._rows.get(text)
        if found is None:
            found = self._rows[text] = self._embedder.embed([text])[0]
            self.late += 1
        return found
