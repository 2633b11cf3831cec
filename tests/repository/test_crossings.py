"""A search calls into the core once, and a second time only where its query may name a speaker."""

import pytest

from mnemic import Memory
from tests.support.embedders import WordEmbedder


class CountedCore:
    """The core's index, which notes every attribute that is read of it."""

    def __init__(self, core):
        self.core, self.crossings = core, []

    def __getattr__(self, name):
        self.crossings.append(name)
        return getattr(self.core, name)

    def __len__(self):
        self.crossings.append("__len__")
        return len(self.core)


def crossings_of(memory, call):
    index = memory.repository._indexes.active.index
    core = index._core
    index._core = counted = CountedCore(core)
    try:
        call()
    finally:
        index._core = core
    return counted.crossings


@pytest.mark.parametrize(
    ("embedder", "speaker", "crossings"),
    [
        (WordEmbedder(), None, ["rank"]),
        (WordEmbedder(), "Ada", ["in_first_person", "rank"]),
        (None, "Ada", ["rank"]),
    ],
)
def test_a_search_crosses_into_the_core_once_or_twice(embedder, speaker, crossings):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("tea at noon", speaker=speaker)
        kept = memory.add("tea at four", speaker=speaker)
        memory.search("tea")
        assert crossings_of(memory, lambda: memory.search("Ada's tea")) == crossings
        assert crossings_of(memory, memory.recent) == ["rank"]
        assert crossings_of(memory, lambda: memory.similar(kept.id)) == ["rank"]
        memory.add("tea at six", speaker="Bob")
        memory.search("Bob's tea")  # takes in the change
        again = crossings_of(memory, lambda: memory.search("Bob's tea"))
        assert again == (["rank"] if embedder is None else ["in_first_person", "rank"])
