"""Every verb with a timeout raises when it is over, or returns what is complete."""

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from mnemic import Memory, MemoryFilter
from mnemic.compat import AsyncMemoryRetriever, AsyncRetrievalService, ContextWindow
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.model import MemoryQuery, MemorySortOrder
from tests.support.embedders import WordEmbedder
from tests.support.failing_embedders import FailingEmbedder

BY_ACCESS = MemoryFilter(sort_by=MemorySortOrder.ACCESSED_DESCENDING)
BEGIN, END = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


PATIENCE = 20


class HangingEmbedder(FailingEmbedder):
    """It hangs on request."""

    def __init__(self):
        super().__init__()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def embed(self, texts):
        vectors = super().embed(texts)
        assert self.goes_on.wait(PATIENCE)
        return vectors


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        first = memory.add("tea at noon")
        memory.link(first.id, memory.add("tea at four").id, "related")
        yield memory


def verbs(memory):
    first = memory.recent(limit=10)[-1].id
    retriever, service = AsyncMemoryRetriever(memory), AsyncRetrievalService(memory)

    def run(verb):
        return lambda *given, **named: asyncio.run(verb(*given, user_id=None, **named))

    recalls = {
        f"recall {mode}": lambda mode=mode, **more: memory.recall("tea", mode=mode, **more)
        for mode in ("relevant", "recent", "important", "frequent")
    }
    linked = run(retriever.recall_linked)
    return {
        **recalls,
        "retrieve": lambda **more: memory.retrieve(MemoryQuery.semantic("tea"), **more),
        "retrieve, expanded": lambda **more: memory.retrieve(
            MemoryQuery(query="tea", expand_query=True, search_type="hybrid"), **more
        ),
        "retrieve, ordered": lambda **more: memory.retrieve(
            MemoryQuery(query="tea", filters=BY_ACCESS), **more
        ),
        "service": lambda **more: run(service.retrieve)(MemoryQuery.semantic("tea"), **more),
        "contradictions": lambda **more: memory.contradictions("tea is at five", **more),
        "temporal": lambda **more: run(retriever.recall_temporal)(BEGIN, END, **more),
        "topic": lambda **more: run(retriever.recall_temporal)(BEGIN, END, "tea", **more),
        "by type": lambda **more: run(retriever.recall_by_type)("fact", **more),
        "linked": lambda **more: linked(first, **more),
        "linked in the store": lambda **more: linked(first, include_archived=True, **more),
        "find_contradictions": lambda **more: run(retriever.find_contradictions)(
            "tea is at five", **more
        ),
        "search": lambda **more: memory.search("tea", **more),
        "context": lambda **more: memory.context("tea", **more),
        "similar": lambda **more: memory.similar(first, **more),
        "recent": memory.recent,
        "important": memory.important,
    }


NAMES = [
    *(f"recall {mode}" for mode in ("relevant", "recent", "important", "frequent")),
    *("retrieve", "retrieve, expanded", "retrieve, ordered", "service", "contradictions"),
    *("temporal", "topic", "by type", "linked", "linked in the store", "find_contradictions"),
    *("search", "context", "similar", "recent", "important"),
]


def contents(result):
    hits = getattr(result, "hits", result)
    return [getattr(each, "entry", None) or each.memory for each in hits]


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_without_time_raises_or_is_partial(memory, name):
    verb = verbs(memory)[name]
    with pytest.raises(DeadlineExceededError, match="allow more time"):
        verb(timeout=0)
    late = verb(timeout=0, on_timeout="partial")
    assert (len(late), late.partial) == (0, True)
    for wrong in ({"timeout": -1}, {"on_timeout": "stop"}):
        with pytest.raises(InvalidArgumentError):
            verb(**wrong)


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_with_time_left_answers_as_without_a_timeout(memory, name):
    verb = verbs(memory)[name]
    plain = verb()
    for given in ({"timeout": 3600}, {"timeout": 3600, "on_timeout": "partial"}):
        in_time = verb(**given)
        assert [each.id for each in contents(in_time)] == [each.id for each in contents(plain)]
        assert not in_time.partial


def test_a_window_gets_what_is_complete(memory):
    window, query = ContextWindow(1000), MemoryQuery.semantic("tea")
    with pytest.raises(DeadlineExceededError):
        memory.retrieve_to_context(query, window, timeout=0)
    assert memory.retrieve_to_context(query, window, timeout=0, on_timeout="partial") == 0
    assert memory.retrieve_to_context(query, window, timeout=3600) == 2


def test_an_answer_within_a_timeout_is_kept_and_a_partial_one_is_not(memory):
    query = MemoryQuery.semantic("tea")
    assert memory.retrieve(query, timeout=0, on_timeout="partial").partial
    first = memory.retrieve(query, timeout=3600)
    assert (first.from_cache, len(first)) == (False, 2)
    second = memory.retrieve(query)
    assert (second.from_cache, len(second)) == (True, 2)
    late = memory.retrieve(query, timeout=0)  # kept answers need no ranking
    assert late.from_cache


def test_links_of_contradiction_are_followed_until_the_deadline(memory, monkeypatch):
    engine = AsyncMemoryRetriever(memory)._engine
    finder, deadline = memory.repository.finder, []
    find_linked = finder.find_linked

    def slow(*given, **named):
        found = find_linked(*given, **named)
        limit = given[2].deadline
        monkeypatch.setattr(time, "monotonic", lambda: limit + 1)
        deadline.append(limit)
        return found

    assert engine is not None
    monkeypatch.setattr(finder, "find_linked", slow)
    found = memory.contradictions("tea is at five", timeout=3600, on_timeout="partial")
    assert found.partial
    assert len(deadline) == 1


@pytest.fixture
def embedder():
    return HangingEmbedder()


@pytest.fixture
def pending(embedder, monkeypatch):
    """A memory with an entry that lacks a vector, and an embedder that hangs."""
    monkeypatch.setattr("mnemic.repository.missing_vectors.RETRY_SECONDS", 0.0)
    memory = Memory(":memory:", embedder=embedder)
    memory.add("tea at noon")
    embedder.is_down = True
    memory.add_many(["coffee at four"], on_embed_error="pending")
    embedder.is_down = False
    embedder.goes_on.clear()
    yield memory
    embedder.goes_on.set()
    memory.close()


@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
def test_an_embedder_that_hangs_on_a_pending_memory_is_not_waited_for(
    pending, embedder, search_type
):
    search = lambda **more: pending.search("coffee", search_type=search_type, **more)  # noqa: E731
    for _ in range(2):
        with pytest.raises(DeadlineExceededError):
            search(timeout=0.02)
        assert search(timeout=0.02, on_timeout="partial").partial
    pending.update(next(iter(pending.list())).id, importance=0.9)
    assert search(timeout=0.02, on_timeout="partial").partial  # with a change to apply, too
    embedder.goes_on.set()
    assert search(timeout=PATIENCE)[0].entry.content == "coffee at four"


def test_embedding_goes_on_after_a_deadline_and_is_done_once(pending, embedder):
    for _ in range(3):
        with pytest.raises(DeadlineExceededError):
            pending.search("coffee", timeout=0.02)
    embedder.goes_on.set()
    index = pending.repository.finder._active.index
    give_up = time.monotonic() + PATIENCE
    while index.summary().unembedded and time.monotonic() < give_up:
        pending.search("coffee", search_type="keyword", timeout=PATIENCE)
    assert not index.summary().unembedded


def test_closing_does_not_wait_for_an_embedder_that_hangs_past_a_deadline(pending):
    with pytest.raises(DeadlineExceededError):
        pending.search("coffee", timeout=0.02)
    closing = threading.Thread(target=pending.close, daemon=True)
    closing.start()
    closing.join(PATIENCE / 2)
    assert not closing.is_alive()


class LateExpander:
    """Has a time limit of its own, which passes."""

    async def expand(self, query, find_related):
        await find_related(query)
        raise DeadlineExceededError("the expander was late")


@pytest.mark.parametrize("timeout", [None, PATIENCE])
@pytest.mark.parametrize("on_timeout", ["raise", "partial"])
def test_a_deadline_of_an_expanders_own_fails_the_expansion_alone(memory, timeout, on_timeout):
    service = AsyncRetrievalService(memory, expander=LateExpander())
    query = MemoryQuery(query="tea", expand_query=True)
    for _ in range(2):
        found = asyncio.run(service.retrieve(query, timeout=timeout, on_timeout=on_timeout))
        assert found.expansion_failed
        assert not found.partial
        assert not found.from_cache
        assert len(found.results) == 2
