"""What programs give may be plain or a coroutine function, behind both forms of a memory."""

import asyncio
import threading

import pytest

from mnemic import Memory
from mnemic.compat import (
    AsyncMemoryRetriever,
    AsyncRetrievalService,
    CompactionStrategy,
    ContextItemType,
    ContextWindow,
    Judgement,
    MemoryRetriever,
    RetrievalService,
)
from mnemic.hyde import HydeConfig, HydeEngine
from mnemic.model import ExpandedQuery
from mnemic.threads.sync_bridge import called, run_sync
from tests.support.embedders import WordEmbedder

TEXT = "the red sofa stands in the hall"


class Noting:
    """Notes the threads in which it is called."""

    def __init__(self):
        self.threads = []

    def note(self):
        self.threads.append(threading.current_thread())


class PlainJudge(Noting):
    def judge(self, statement, others):
        assert statement
        self.note()
        return [Judgement(0.9, "said so") for _ in others]


class AwaitedJudge(PlainJudge):
    async def judge(self, statement, others):
        await asyncio.sleep(0)
        return super().judge(statement, others)


class PlainExpander(Noting):
    def expand(self, query, find_related):
        self.note()
        found = [term for term, _ in find_related(query).terms]
        assert isinstance(found, list)
        return ExpandedQuery(
            original=query, expanded=f"{query} couch", added_terms=("couch",), confidence=1.0
        )


class AwaitedExpander(Noting):
    async def expand(self, query, find_related):
        await asyncio.sleep(0)
        self.note()
        assert (await find_related(query)).terms is not None
        return ExpandedQuery(
            original=query, expanded=f"{query} couch", added_terms=("couch",), confidence=1.0
        )


class PlainSuggester(Noting):
    def suggest(self, context, limit, find_phrases):
        self.note()
        return [phrase for phrase, _ in find_phrases(context, limit)]


class AwaitedSuggester(Noting):
    async def suggest(self, context, limit, find_phrases):
        await asyncio.sleep(0)
        self.note()
        return [phrase for phrase, _ in await find_phrases(context, limit)]


class PlainModel:
    def complete(self, prompt, *, system=None):
        del prompt, system
        return TEXT


class AwaitedModel:
    async def complete(self, prompt, *, system=None):
        await asyncio.sleep(0)
        return PlainModel().complete(prompt, system=system)


class AwaitedEmbedder(WordEmbedder):
    async def embed(self, texts):
        await asyncio.sleep(0)
        return super().embed(texts)


JUDGED = (
    (MemoryRetriever, AsyncMemoryRetriever),
    lambda service: service.find_contradictions("the red sofa is gone", None),
    lambda found: [hit.score for hit in found] == [0.9],
)
EXPANDED = (
    (RetrievalService, AsyncRetrievalService),
    lambda service: service.expand_query("sofa"),
    lambda found: (found.added_terms, found.failed) == (("couch",), False),
)
SUGGESTED = (
    (RetrievalService, AsyncRetrievalService),
    lambda service: service.suggest_queries("we moved the red sofa"),
    lambda found: not found.failed and "red sofa" in found,
)
GIVEN = {
    "judge, plain": ("judge", PlainJudge, JUDGED),
    "judge, awaited": ("judge", AwaitedJudge, JUDGED),
    "expander, plain": ("expander", PlainExpander, EXPANDED),
    "expander, awaited": ("expander", AwaitedExpander, EXPANDED),
    "suggester, plain": ("suggester", PlainSuggester, SUGGESTED),
    "suggester, awaited": ("suggester", AwaitedSuggester, SUGGESTED),
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_part_may_be_plain_or_awaited_behind_both_forms(given):
    option, part_kind, ((plain, awaited), call, is_right) = GIVEN[given]
    part = part_kind()
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add(TEXT)
        assert is_right(call(plain(memory, **{option: part})))
        assert is_right(asyncio.run(call(awaited(memory, **{option: part}))))
    _, in_loop = part.threads
    assert (in_loop is threading.main_thread()) == given.endswith("awaited")


@pytest.mark.parametrize("embedder", [WordEmbedder, AwaitedEmbedder])
@pytest.mark.parametrize("model", [PlainModel, AwaitedModel])
def test_embedders_and_language_models_may_be_plain_or_awaited_behind_both_forms(embedder, model):
    with Memory(":memory:", embedder=embedder()) as memory:
        memory.add(TEXT)

        async def awaited():
            assert [hit.content for hit in await memory.aio.search("sofa")] == [TEXT]
            found = await engine.aio.retrieve("2", ["the sofa?"])
            return [each.content for each in found]

        with HydeEngine(memory, memory.embedder, model(), HydeConfig(timeout=20)) as engine:
            assert [hit.content for hit in memory.search("sofa")] == [TEXT]
            assert [each.content for each in engine.retrieve("1", ["the sofa?"])] == [TEXT]
            assert asyncio.run(awaited()) == [TEXT]


async def first_words(texts):
    await asyncio.sleep(0)
    return " / ".join(text.split()[0] for text in texts)


@pytest.mark.parametrize("summarizer", [first_words, lambda texts: asyncio.run(first_words(texts))])
def test_a_summarizer_may_be_plain_or_awaited(summarizer):
    window = ContextWindow(1000, summarizer=summarizer)
    for word in ("tea", "bread"):
        window.add(f"{word} at noon" * 100, ContextItemType.ASSISTANT_MESSAGE)
    assert len(window.compact(CompactionStrategy.SUMMARIZE, target_percent=10)) == 2
    assert "tea / bread" in window.build().text


def test_a_function_that_returns_an_awaitable_is_awaited_too():
    async def later(number):
        await asyncio.sleep(0)
        return number + 1

    def function(number, *, more=0):
        return later(number + more)

    assert run_sync(called(function, 1)) == 2
    assert asyncio.run(called(function, 1, more=2)) == 4
