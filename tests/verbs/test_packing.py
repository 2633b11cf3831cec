"""What `Memory.context` promises: a cited block for a prompt, within a budget of tokens."""

import math
import pickle
import re

import pytest

from mnemic import Memory
from mnemic.context import EstimatedTokens, MemoryContext
from mnemic.errors import InvalidArgumentError
from tests.support.clock import NOON, Clock
from tests.support.embedders import WordEmbedder


class Counter:
    """Counts tokens by a function."""

    def __init__(self, count):
        self.count = count


COUNTERS = {
    "estimate": EstimatedTokens(),
    "letters": Counter(len),
    "bytes": Counter(lambda text: len(text.encode())),
    "words": Counter(lambda text: len(text.split())),
    "fours": Counter(lambda text: math.ceil(len(text) / 4)),
    "lines": Counter(lambda text: text.count("\n") + 1),
    "squares": Counter(lambda text: len(text) ** 2),  # a whole takes more than its parts
    "one": Counter(lambda _: 1),
    "nothing": Counter(lambda _: 0),
    "digits": Counter(lambda text: sum(letter.isdigit() for letter in text)),
    "hash": Counter(lambda text: sum(map(ord, text)) % 23),  # without any sense
}


@pytest.fixture
def memory():
    with Memory(":memory:", "aide", embedder=WordEmbedder(256), clock=Clock()) as opened:
        yield opened


def test_a_block_is_of_the_best_matches_and_cites_them(memory):
    memory.add_many(["a red sofa was bought", "ferries leave at noon", "the sofa is red and soft"])
    block = memory.context("red sofa", limit=2)
    assert set(re.findall(r"^\[(\d)\] 2026-05-01 ", block, re.MULTILINE)) == {"1", "2"}
    assert {one.content for one in block.memories} == {
        "a red sofa was bought",
        "the sofa is red and soft",
    }
    best = memory.search("red sofa", limit=2)
    assert [one.id for one in block.memories] == [hit.entry.id for hit in best]
    assert block.tokens == EstimatedTokens().count(str(block))


def test_a_block_of_nothing_is_empty(memory):
    for options in ({}, {"limit": 0}, {"max_tokens": 1}, {"filters": {"importance": {"gt": 0.9}}}):
        block = memory.context("tea", **options)
        assert block == ""
        assert (block.memories, block.tokens) == ((), 0)
        memory.add("tea is served at noon, which takes more than one token")


@pytest.mark.parametrize("budget", [1, 2, 5, 10, 20, 40, 80, 160])
def test_a_block_keeps_its_budget_by_any_counter(memory, budget):
    memory.add_many([f"tea number {number} " + "word " * (number % 7) for number in range(30)])
    for counter in COUNTERS.values():
        block = memory.context("tea", max_tokens=budget, counter=counter)
        assert counter.count(str(block)) <= budget or not block
        assert block.tokens <= budget


def test_sensitive_memories_are_left_out_unless_asked_for(memory):
    memory.add("tea is open")
    memory.add("tea is secret", sensitive=True)
    assert "secret" not in memory.context("tea")
    assert len(memory.context("tea").memories) == 1
    assert "secret" in memory.context("tea", include_sensitive=True)


@pytest.mark.requirement("C028")
def test_sensitive_memories_take_no_other_place_in_a_block(memory):
    memory.add_many([{"content": f"tea tea {at}", "sensitive": True} for at in range(3)])
    memory.add("tea is open, and served in the garden")
    for filters in (None, {"content": {"contains": "tea"}}):
        assert len(memory.context("tea", limit=3, filters=filters).memories) == 1
    assert memory.context("tea", limit=3, filters={"sensitive": True}) == ""


def test_a_block_is_of_the_scope_alone(memory):
    memory.add("tea of alice", user_id="alice")
    memory.add("tea of boris", user_id="boris")
    memory.add("tea of boris in time", user_id="boris", created_at=NOON.replace(year=2020))
    assert memory.context("tea") == ""
    assert memory.context("tea", user_id="alice") == "[1] 2026-05-01 tea of alice"
    assert len(memory.context("tea", all_users=True).memories) == 3
    old = memory.context("tea", user_id="boris", until="2021-01-01")
    assert old == "[1] 2020-05-01 tea of boris in time"


@pytest.mark.parametrize(
    "wrong",
    [
        {"counter": 5},
        {"max_tokens": 0},
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"limit": -1},
        {"query": " "},
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused(memory, wrong):
    with pytest.raises(InvalidArgumentError):
        memory.context(**{"query": "tea", **wrong})


@pytest.mark.parametrize("answer", [-5, None, 1.5])
def test_a_counter_that_answers_nonsense_is_named(memory, answer):
    memory.add("tea is served at noon")
    with pytest.raises(InvalidArgumentError, match="the counter's answer"):
        memory.context("tea", counter=Counter(lambda _: answer))


def test_a_block_can_be_sent_to_another_process(memory):
    memory.add("tea")
    block = memory.context("tea")
    copy = pickle.loads(pickle.dumps(block))  # noqa: S301 - our own
    assert (str(copy), copy.memories, copy.tokens) == (str(block), block.memories, block.tokens)
    assert copy.tokens > 0
    marked = MemoryContext("tea", [], 3, degraded=True, approximate=True)
    again = pickle.loads(pickle.dumps(marked))  # noqa: S301 - our own
    assert (again.degraded, again.partial, again.approximate) == (True, False, True)
