"""Vectors alone, where a program would use faiss: `python examples/vector_map.py [COUNT]`.

A catalogue of items with vectors of a program's own, held in memory: nearest items, only some of
them, those like two at once, all that are near, and a change. Every answer is exact. The whole map
is saved to a file and mapped again.
"""

import sys
import tempfile

import numpy as np
from numpy.typing import NDArray

from mnemic import VectorMap

DIMENSIONS = 128


def made(count: int) -> NDArray[np.float32]:
    """Return vectors around a hundred centres, shape (count, 128)."""
    random = np.random.default_rng(7)
    centres = random.standard_normal((100, DIMENSIONS))
    around = centres[random.integers(100, size=count)]
    return (around + random.standard_normal((count, DIMENSIONS))).astype(np.float32)


def main() -> None:
    """Build the map, search it, change it, and save it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    vectors, ids = made(count), np.arange(count)
    items = VectorMap(DIMENSIONS)  # cosine; faiss: IndexIDMap2(IndexFlatIP(128))
    items.upsert(ids, vectors)
    print(f"{len(items)} items, {items.nbytes / 1e6:.0f} MB")

    near, scores = items.search(vectors[5], k=3)
    print("nearest:", dict(zip(near.tolist(), scores.round(3).tolist(), strict=True)))
    cosines = vectors @ vectors[5] / np.linalg.norm(vectors, axis=1)
    print("as brute force:", near.tolist() == np.argsort(-cosines, kind="stable")[:3].tolist())

    in_stock = items.select(ids[::3])  # kept for many searches; never fewer than k hits
    print("in stock:", items.search(vectors[5], k=3, allow=in_stock).ids.tolist())
    print("like either:", items.search(vectors[[5, 6]], k=2, combine="max").ids.tolist())
    enough = items.range_search(vectors[5], min_score=0.3).ids
    print("near enough:", items.count(vectors[5], min_score=0.3), "as", len(enough))
    print("a batch:", items.search(vectors[:100], k=10, threads=2).ids.shape)  # one pass for all

    items.remove([0])
    items.upsert([6], vectors[[7]])
    print("after a change:", 0 in items, items.search(vectors[7], k=2).ids.tolist())

    with tempfile.TemporaryDirectory() as folder:
        items.save(f"{folder}/items.vectors")  # faiss: write_index
        again = VectorMap.load(f"{folder}/items.vectors")
    print("saved:", again.search(vectors[9]).ids.tolist() == items.search(vectors[9]).ids.tolist())


if __name__ == "__main__":
    main()
