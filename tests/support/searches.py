"""Searches of every kind."""

import numpy as np

from tests.support.embedders import WordEmbedder

TEXTS = ["the cat sleeps on the red sofa", "ferries leave at noon", "a red sofa was bought"]


def found(results):
    return [hit.content for hit in results]


def scores(results):
    return {hit.content: hit.score for hit in results}


def cosine(one, other):
    first, second = WordEmbedder().embed([one, other]).astype(np.float64)
    return first @ second / np.sqrt((first @ first) * (second @ second))


CALLS = {
    "hybrid": lambda memory, **options: memory.search("tea", **options),
    "semantic": lambda memory, **options: memory.search("tea", search_type="semantic", **options),
    "keyword": lambda memory, **options: memory.search("tea", search_type="keyword", **options),
    "recent": lambda memory, **options: memory.recent(**options),
    "important": lambda memory, **options: memory.important(**options),
    "similar": lambda memory, **options: memory.similar(memory.list().entries[6].id, **options),
}
"""Each way to search; what is similar to the oldest of a week is sought without it."""


def names(results):
    return sorted(hit.content.removeprefix("tea of ") for hit in results)


SCOPED_CALLS = {name: call for name, call in CALLS.items() if name != "similar"}
