"""Every verb with a timeout raises when it is over, or returns what is complete."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from mnemic import (
    ContextWindow,
    Memory,
    MemoryFilter,
    MemoryQuery,
    MemoryRetriever,
    RetrievalService,
)
from mnemic.errors import DeadlineExceededError, InvalidArgumentError
from mnemic.model import MemorySortOrder
from tests.support.embedders import WordEmbedder

BY_ACCESS = MemoryFilter(sort_by=MemorySortOrder.ACCESSED_DESCENDING)
BEGIN, END = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        first = memory.add("tea at noon")
        memory.link(first.id, memory.add("tea at four").id, "related")
        yield memory


def verbs(memory):
    first = memory.recent(limit=10)[-1].id
    retriever, service = MemoryRetriever(memory), RetrievalService(memory)

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
    }


NAMES = [
    *(f"recall {mode}" for mode in ("relevant", "recent", "important", "frequent")),
    *("retrieve", "retrieve, expanded", "retrieve, ordered", "service", "contradictions"),
    *("temporal", "topic", "by type", "linked", "linked in the store", "find_contradictions"),
]


def contents(result):
    return [getattr(each, "entry", None) or each.memory for each in result]


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_without_time_raises_or_is_partial(memory, name):
    verb = verbs(memory)[name]
    with pytest.raises(DeadlineExceededError):
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
    engine = MemoryRetriever(memory)._engine
    finder, deadline = memory.repository.finder, []
    find_linked = finder.find_linked

    def slow(*given, **named):
        found = find_linked(*given, **named)
        monkeypatch.setattr(time, "monotonic", lambda: named["deadline"] + 1)
        deadline.append(named["deadline"])
        return found

    assert engine is not None
    monkeypatch.setattr(finder, "find_linked", slow)
    found = memory.contradictions("tea is at five", timeout=3600, on_timeout="partial")
    assert found.partial
    assert len(deadline) == 1
