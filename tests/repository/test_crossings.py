"""A search calls into the core once, and a second time only where its query may name a speaker."""

import pytest

from benches.way import crossings_of
from mnemic import Memory
from tests.support.embedders import WordEmbedder


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
