"""The figures of blocks: evidence that is cited, words of the answer, and tokens."""

import pytest

import mnemic
from benches.quality import blocks
from benches.quality.datasets import Collection, Dataset, Memory, Question
from tests.support.embedders import WordEmbedder

MEMORIES = [
    Memory(id="a", content="The gate code is 4711"),
    Memory(id="b", content="The gate is red"),
    Memory(id="c", content="Tea at noon"),
]
QUESTION = Question(
    id="q",
    text="What is the gate code?",
    kind="k",
    grades={"a": 1, "b": 1},
    answer="code 4711 blue",
)


def test_a_block_is_judged_by_its_memories_its_words_and_its_tokens():
    collection = Collection(name="one", memories=MEMORIES, questions=[QUESTION])
    dataset = Dataset(name="set", sha256="", relevant_from=1, collections=[collection])
    ways = {
        "one": blocks.by_context(limit=1, max_tokens=100),
        "both": blocks.by_context(limit=2, max_tokens=100),
        "none": blocks.by_context(max_tokens=1),
    }
    measured = blocks.measured(dataset, ways, None, WordEmbedder(64))
    rows = {way: found["one q"] for way, found in measured.items()}
    assert (rows["one"][0], rows["both"][0], rows["none"][0]) == (0.5, 1.0, 0.0)
    assert (rows["one"][3], rows["none"][3]) == (1.0, 0.0), "blue is in no evidence"
    assert rows["none"][1] == 0
    assert 0 < rows["one"][1] < rows["both"][1]


@pytest.mark.parametrize("way", sorted(blocks.WAYS))
def test_each_way_gives_a_block_within_its_tokens(way):
    with mnemic.Memory(":memory:", embedder=None) as memory:
        memory.add_many([one.content for one in MEMORIES])
        made = blocks.WAYS[way](memory, QUESTION.text)
        assert "4711" in made.text
        assert 0 < made.tokens <= 1500
        assert made.ids
