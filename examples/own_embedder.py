"""An embedder of one's own with 1,536 dimensions: `python examples/own_embedder.py`, offline.

It hashes the character n-grams of a text, so that texts with similar words get similar vectors, in
any language and in spite of typing errors. A call of a service would stand in its place.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mnemic import Memory, as_embedder

DIMENSIONS = 1536
NGRAMS = (3, 4, 5)

MEMORIES = (
    "Maya keeps bees behind the old greenhouse.",
    "The beekeeping course starts on the first Monday in May.",
    "Jonas repairs accordions and concertinas.",
    "The harbour ferry does not run on Sundays.",
)


def ngrams(text: str) -> list[str]:
    """Return the n-grams of a text's words, with marks where words begin and end."""
    words = " ".join(text.casefold().split())
    padded = f" {words} "
    return [padded[at : at + n] for n in NGRAMS for at in range(len(padded) - n + 1)]


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return a vector of unit length for each text, shape (len(texts), 1536)."""
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        for ngram in ngrams(text):
            hashed = zlib.crc32(ngram.encode())
            vector[hashed % DIMENSIONS] += 1 if hashed & 0x80000000 else -1
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return vectors


def main() -> None:
    """Store memories with the function as embedder, and find them in spite of typing errors."""
    embedder = as_embedder(embed, model="hashed-ngrams-v1", batch_size=64, similarity_floor=0.1)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_many(MEMORIES, user_id="ann")
        for query in ("bee keping", "acordion repair", "harbor ferries"):
            best = memory.search(query, user_id="ann", search_type="semantic", limit=1)[0]
            print(f"{query}: {best.content}")
        print(f"{memory.embedder!r}")
    with Memory(":memory:", embedder=embed, embedding_model="hashed-ngrams-v1") as memory:
        stored = memory.add("The same function, named at the door.")
        print(
            f"{stored.embedding_model}, {0 if stored.embedding is None else len(stored.embedding)}"
        )


if __name__ == "__main__":
    main()
