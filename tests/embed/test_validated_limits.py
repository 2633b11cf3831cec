"""A call with a time limit does not wait for an embedder that hangs."""

import threading
import time

import numpy as np
import pytest

from mnemic import Memory
from mnemic.embed.validated import MAX_CALLS, ValidatedEmbedder
from mnemic.errors import DeadlineExceededError, EmbeddingError
from tests.support.embedders import WordEmbedder
from tests.support.interrupts import interrupted_at

SOON = 0.01


class Hanging:
    """Hangs, while it is told to, until it is let go."""

    model, dimensions = "hanging", 2
    join_calls = False

    def __init__(self):
        self.hangs, self.let_go = True, threading.Event()
        self.threads = []

    def embed(self, texts):
        self.threads.append(threading.current_thread())
        if self.hangs:
            self.let_go.wait(60)
        return np.ones((len(texts), 2), np.float32)


@pytest.fixture
def embedder():
    hanging = Hanging()
    yield hanging
    hanging.let_go.set()


def soon():
    return time.monotonic() + SOON


def later():
    return time.monotonic() + 3600


def test_without_a_deadline_the_embedder_is_called_in_the_same_thread(embedder):
    embedder.hangs = False
    limited = ValidatedEmbedder(embedder).queries_until
    assert limited(["tea"], None)[0].tolist() == [[1, 1]]
    assert embedder.threads == [threading.current_thread()]
    assert limited(["tea"], later())[0].tolist() == [[1, 1]]
    assert embedder.threads[1] is not threading.current_thread()


def test_a_hanging_embedder_is_given_up_and_its_late_result_dropped(embedder):
    limited = ValidatedEmbedder(embedder).queries_until
    with pytest.raises(DeadlineExceededError):
        limited(["tea"], soon())
    embedder.hangs = False
    assert len(limited(["tea", "cup"], later())) == 2
    embedder.let_go.set()
    embedder.threads[0].join(60)
    assert len(limited(["tea"], later())) == 1


def test_no_more_threads_hang_than_there_are_slots(embedder):
    limited = ValidatedEmbedder(embedder).queries_until
    for _ in range(MAX_CALLS + 5):
        with pytest.raises(DeadlineExceededError):
            limited(["tea"], soon())
    assert len(embedder.threads) == MAX_CALLS
    embedder.let_go.set()
    assert len(limited(["tea"], later())) == 1
    for thread in embedder.threads:
        thread.join(60)
    for _ in range(2 * MAX_CALLS):  # every slot is free again
        assert len(limited(["tea"], later())) == 1


def test_an_error_of_the_embedder_is_raised_as_without_a_limit(embedder):
    embedder.embed = lambda _: 1 / 0
    limited = ValidatedEmbedder(embedder).queries_until
    for deadline in (None, later()):
        with pytest.raises(EmbeddingError, match="ZeroDivisionError"):
            limited(["tea"], deadline)


def test_without_a_thread_to_be_had_the_embedder_is_called_in_the_same(embedder, monkeypatch):
    embedder.hangs = False

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    limited = ValidatedEmbedder(embedder).queries_until
    for _ in range(2 * MAX_CALLS):
        assert len(limited(["tea"], later())) == 1


def test_a_search_gives_up_while_its_embedder_hangs(embedder):
    embedder.hangs = False
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("tea at noon")
        embedder.hangs = True
        with pytest.raises(DeadlineExceededError):
            memory.search("tea", timeout=SOON)
        partial = memory.search("tea", timeout=SOON, on_timeout="partial")
        assert (len(partial), partial.partial) == (0, True)
        embedder.hangs = False
        assert len(memory.search("tea", timeout=3600)) == 1
        embedder.let_go.set()


def test_an_interrupted_call_blocks_no_later_one():
    embedding = ValidatedEmbedder(WordEmbedder()).queries_until
    call = lambda: embedding(["tea"], time.monotonic() + 30)  # noqa: E731
    for moment in range(MAX_CALLS - 1):
        interrupted_at(moment, call)
    done = threading.Thread(target=call, daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()
