"""A small embedder for tests: hashed words, so that shared words make texts similar."""

import re
import zlib

import numpy as np


class WordEmbedder:
    def __init__(self, dimensions=64, model="words"):
        self.model = model
        self.dimensions = dimensions
        self.max_tokens = None  # it sees all of any text
        self.similarity_floor = None
        self.texts = []

    def embed(self, texts):
        self.texts.extend(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                vector[zlib.crc32(word.encode()) % self.dimensions] += 1
        return vectors
