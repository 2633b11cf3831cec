"""Searches by plain and by awaited calls."""

import asyncio
import inspect

import numpy as np

from tests.support.embedders import WordEmbedder

TEXTS = ["the cat sleeps on the red sofa", "ferries leave at noon", "a red sofa was bought"]


class Awaited:
    """A memory with awaited calls, each awaited at once in an event loop of its own."""

    def __init__(self, memory):
        self.awaited = memory

    def __getattr__(self, name):
        attribute = getattr(self.awaited, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute
        return lambda *arguments, **options: asyncio.run(attribute(*arguments, **options))

    def scoped(self, **names):
        return Awaited(self.awaited.scoped(**names))


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
