"""A block is as full without the memories that are too long for what better ones leave of it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.policy import PromptBlock, RetrievalConfig, RetrievalPolicy, RetrievalRequest
from mnemic.repository.entry_cache import EntryCache
from tests.support.tiers import examples

WORDS = [
    "tea",
    "kettle",
    "Lisbon",
    "harbour",
    "Überraschung",
    "茶",
    "lavender",
    "12",
    "<b>",
    "a\u200db",
    "is",
]
LENGTHS = ((1, 3), (4, 12), (10, 30), (25, 60), (1, 400))
SPEAKERS = (None, "Al", "Caroline", "Maximiliana")


def memories(seed):
    """Return memories of which nearly all match a question about tea, some with equal texts."""
    own = random.Random(seed)  # noqa: S311 - the same texts for a seed
    lengths = own.choices(LENGTHS, k=own.randint(1, 3))
    space = own.choice([" ", " ", ". ", " \n  "])
    contents = []
    for at in range(own.choice([20, 200, 300])):
        words = own.choices(WORDS, k=own.randint(*own.choice(lengths)))
        content = f"{space.join(words)} tea {at}"
        contents.append(own.choice(contents) if contents and own.random() < 0.1 else content)
    return [
        {
            "content": content,
            "type": own.choice(["fact", "conversation"]),
            "speaker": own.choice(SPEAKERS),
        }
        for content in contents
    ]


def are_alike(made, whole):
    """Whether blocks differ in the last two lines at most, which take what the others leave."""
    lines = [[line.split("] ", 1)[-1] for line in text.splitlines()] for text in (made, whole)]
    shared = min(map(len, lines)) - 2
    return lines[0][:shared] == lines[1][:shared] and abs(len(lines[0]) - len(lines[1])) <= 2


@examples(20)
@given(st.integers(0, 2**32), st.sampled_from([60, 200, 800, 1000, 1500]))
def test_a_block_is_that_of_all_that_were_found(seed, max_tokens):
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(memories(seed), user_id="ada")
        question = "Who has tea in Lisbon?"
        made = memory.context(question, max_tokens=max_tokens, user_id="ada")
        # What was left out is explained by all that were found.
        whole = memory.context(question, max_tokens=max_tokens, explain=True, user_id="ada")
        assert are_alike(made, whole)
        assert whole.tokens - made.tokens <= 24
        # A share that is named says no other order than that by score.
        configs = [
            RetrievalConfig(
                max_tokens=max(100, max_tokens),
                ratio=ratio,
                block=PromptBlock(group_by_type=False),
            )
            for ratio in (None, 1.0)
        ]
        policies = [RetrievalPolicy(memory, config) for config in configs]
        prompts = [
            policy.run(RetrievalRequest(question, "ada", "session")).prompt.rpartition("\n\n")[0]
            for policy in policies
        ]
        assert are_alike(*prompts)


@pytest.mark.parametrize("max_tokens", [200, 1000])
def test_few_more_memories_are_read_than_a_block_holds(max_tokens, monkeypatch):
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many(f"The kettle of room {at} is for tea alone. " * 3 for at in range(300))
        read, whole = [], EntryCache.get_rows

        def get_rows(cache, scope, rows, *others, **named):
            read.extend(rows)
            return whole(cache, scope, rows, *others, **named)

        monkeypatch.setattr(EntryCache, "get_rows", get_rows)
        made = memory.context("the kettle for tea", max_tokens=max_tokens)
        assert made.tokens > max_tokens - 40
        assert len(made.hits) <= len(read) < 2 * len(made.hits) + 3
