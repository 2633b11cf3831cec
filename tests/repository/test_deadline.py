"""A search gives up at its deadline, between its steps."""

import time

import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from tests.support.embedders import WordEmbedder


class Slow(WordEmbedder):
    """Takes longer than the deadline to embed a query."""

    seconds = 0.0

    def embed(self, texts):
        time.sleep(self.seconds)
        return super().embed(texts)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=Slow()) as memory:
        memory.add("tea at noon")
        yield memory


def verbs(memory):
    kept = memory.add("tea at four")
    return {
        "search": lambda timeout: memory.search("tea", timeout=timeout),
        "context": lambda timeout: memory.context("tea", timeout=timeout),
        "similar": lambda timeout: memory.similar(kept.id, timeout=timeout),
        "recent": lambda timeout: memory.recent(timeout=timeout),
        "important": lambda timeout: memory.important(timeout=timeout),
    }


@pytest.mark.parametrize("verb", ["search", "context", "similar", "recent", "important"])
def test_a_search_with_time_left_is_answered_and_one_without_raises(memory, verb):
    call = verbs(memory)[verb]
    assert call(None) == call(60) == call(3600)
    with pytest.raises(TimeoutError) as raised:
        call(0)
    assert isinstance(raised.value, DeadlineExceededError)
    assert "allow more time" in str(raised.value)


def test_a_search_gives_up_after_an_embedder_that_was_too_slow(memory):
    memory.embedder.seconds = 0.05
    with pytest.raises(DeadlineExceededError):
        memory.search("tea", timeout=0.04)
    memory.embedder.seconds = 0.0
    assert len(memory.search("tea", timeout=60)) == 1


@pytest.mark.parametrize("timeout", [-1, -0.001, "1", True, float("nan"), float("inf"), [1]])
def test_a_timeout_is_a_number_of_seconds(memory, timeout):
    with pytest.raises(InvalidArgumentError, match="timeout"):
        memory.search("tea", timeout=timeout)
