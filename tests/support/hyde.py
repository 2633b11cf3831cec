"""Language models, embedders and memories for tests of the HyDE engine."""

import numpy as np

from mnemic import Memory

AXES = {"alpha": 0, "beta": 1, "gamma": 2, "delta": 3}


def axis(text, dimensions=8):
    """A unit vector of its own for each known word; others lie between the last two axes."""
    vector = np.zeros(dimensions, dtype=np.float32)
    if text in AXES:
        vector[AXES[text]] = 1.0
    else:
        vector[-2:] = 0.6, 0.8
    return vector


class AxisEmbedder:
    model = "axes"
    dimensions = 8

    def __init__(self):
        self.calls = []
        self.fail = None

    def embed(self, texts):
        self.calls.append(list(texts))
        if self.fail is not None:
            self.fail()
        return np.array([axis(text) for text in texts], dtype=np.float32)


class ListedModel:
    """A coroutine model that returns the same lines."""

    model = "listed"

    def __init__(self, *lines):
        self.lines = lines
        self.calls = 0
        self.fail = None

    async def complete(self, _prompt, **_):
        self.calls += 1
        if self.fail is not None:
            made = self.fail()
            if made is not None:
                await made
        return "\n".join(self.lines)


class PlainModel:
    """The same as a plain function, which may block its thread."""

    model = "plain"

    def __init__(self, *lines):
        self.lines = lines
        self.calls = 0
        self.blocks = None

    def complete(self, _prompt, **_):
        self.calls += 1
        if self.blocks is not None:
            self.blocks.wait(30)
        return "\n".join(self.lines)


def memory_of(*texts, embedder=None):
    memory = Memory(":memory:", embedder=embedder or AxisEmbedder())
    for text in texts:
        memory.add(text)
    return memory


def contents(memories):
    return [each.content for each in memories]
