"""The services have the same calls without an event loop."""

import asyncio

import msgspec
import pytest

from mnemic import Memory
from mnemic.compat import ContextWindow, MemoryRetriever, RetrievalService
from mnemic.model import MemoryQuery
from tests.support.clock import DAY, NOON, Clock
from tests.support.recall import NamedSimilarities, ScriptedJudge

SCOPE = {"user_id": "alice"}
TEXTS = ("tea ~0.9", "bread ~0.7", "salt ~0.5")


@pytest.fixture
def memory():
    given = {"embedder": NamedSimilarities(), "clock": Clock(), "track_access": False}
    with Memory(":memory:", "aide", **given) as opened:
        added = opened.add_many(TEXTS, **SCOPE)
        opened.link(added[1].id, added[0].id, **SCOPE)
        yield opened


def as_shown(result):
    changed = {"query_time": None, "retrieval_time": None, "from_cache": False}
    if not isinstance(result, msgspec.Struct):
        return result
    named = {name: each for name, each in changed.items() if name in result.__struct_fields__}
    return msgspec.structs.replace(result, **named)


RETRIEVALS = {
    "retrieve": ("query",),
    "find_similar": (),
    "suggest_queries": ("we had bread",),
    "expand_query": ("tea",),
}


@pytest.mark.parametrize("verb", RETRIEVALS)
def test_a_retrieval_is_the_same_at_both_doors(memory, verb):
    service = RetrievalService(memory)
    given = RETRIEVALS[verb] or (memory.list(**SCOPE)[0].id,)
    awaited = asyncio.run(getattr(service.aio, verb)(*given, **SCOPE))
    assert as_shown(getattr(service, verb)(*given, **SCOPE)) == as_shown(awaited)
    assert len(service.retrieve(MemoryQuery.semantic("query"), **SCOPE)) == 3
    assert service.retrieve_to_context("query", ContextWindow(1000), **SCOPE) == 3
    assert service.get_stats() == asyncio.run(service.aio.get_stats())


def test_a_retriever_recalls_without_an_event_loop(memory):
    retriever = MemoryRetriever(memory, judge=ScriptedJudge({"tea ~0.9": 0.9}))
    tea, bread, salt = sorted(memory.list(**SCOPE), key=lambda each: TEXTS.index(each.content))
    assert len(retriever.recall("query", **SCOPE)) == 3
    assert len(retriever.recall_temporal(NOON, NOON + DAY, **SCOPE)) == 3
    assert len(retriever.recall_by_type("fact", "alice")) == len(
        asyncio.run(retriever.aio.recall_by_type("fact", "alice"))
    )
    assert [hit.id for hit in retriever.recall_linked(bread.id, **SCOPE)] == [tea.id]
    assert [hit.id for hit in retriever.find_contradictions("query", "alice")] == [tea.id]
    assert retriever.salience(salt.id, "alice").importance == salt.importance
    assert retriever.reinforce(salt.id, "repeated_access", "alice").importance > salt.importance
    retriever.record_use([salt.id], "alice")
