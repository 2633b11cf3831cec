"""Expanded queries and suggested ones."""

import asyncio
import logging
import math
import pickle

import pytest

from mnemic import Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import (
    InvalidArgumentError,
)
from mnemic.model import ExpandedQuery, MemoryQuery
from mnemic.retrieval import CorpusExpander, LanguageModelExpander, LanguageModelSuggester
from mnemic.retrieval.expansion import terms_of
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import (
    QUERY,
    Adding,
    FixedEmbedder,
    Gated,
    found,
    serve,
    store_near,
    until,
    words,
)


class Scripted:
    """A language model that answers what was written down, and keeps what it was asked."""

    model = "scripted"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def complete(self, prompt, *, system=None):
        await asyncio.sleep(0)
        self.asked.append((prompt, system))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.requirement("R170")
def test_the_offline_expander_adds_words_of_what_matches():
    async def scenario(memory, service):
        await memory.add_many(
            [
                "the ferry to Tromsø leaves from quay seven",
                *(f"note {number} on something else entirely" for number in range(20)),
            ]
        )
        expansion = await service.expand_query("ferry")
        assert expansion.original == "ferry"
        assert expansion.expanded == " ".join(["ferry", *expansion.added_terms])
        assert {"quay", "seven"} & set(expansion.added_terms)
        assert "ferry" not in expansion.added_terms
        assert 0.5 <= expansion.confidence <= 1

    serve(scenario, memory=words())


def test_the_offline_expander_is_unsure_where_nothing_matches():
    async def scenario(_, service):
        expansion = await service.expand_query("ferry")
        assert (expansion.expanded, expansion.added_terms) == ("ferry", ())
        assert expansion.confidence < 0.5

    serve(scenario, memory=words())


def test_expansion_sees_only_the_memories_of_the_scope():
    async def scenario(memory, service):
        await memory.add("the ferry leaves from quay seven", user_id="alice")
        await memory.add("the ferry costs much", user_id="boris")
        for user, wanted, other in (("alice", "quay", "costs"), ("boris", "costs", "quay")):
            terms = (await service.expand_query("ferry", user_id=user)).added_terms
            assert wanted in terms
            assert other not in terms
        assert (await service.expand_query("ferry")).added_terms == ()

    serve(scenario, memory=words())


@pytest.mark.requirement("C028")
def test_words_of_sensitive_memories_are_not_added_to_queries():
    async def scenario(memory, service):
        await memory.add("the ferry password is swordfish", sensitive=True)
        await memory.add("the ferry leaves from quay seven")
        expansion = await service.expand_query("ferry")
        assert "quay" in expansion.added_terms
        assert "swordfish" not in expansion.expanded

    serve(scenario, memory=words())


def test_an_abbreviation_is_spelled_out():
    async def scenario(_, service):
        expansion = await service.expand_query("which DB?")
        assert expansion.added_terms[0] == "database"
        assert expansion.confidence >= 0.5

    serve(scenario, memory=words())
    own = CorpusExpander(abbreviations={"zq": "zebra quartet"}, terms=0)

    async def with_own(_, service):
        assert (await service.expand_query("zq")).expanded == "zq zebra quartet"
        assert (await service.expand_query("db")).added_terms == ()

    serve(with_own, memory=words(), expander=own)


def test_an_ordinary_word_is_no_abbreviation():
    async def scenario(_, service):
        expansion = await service.expand_query("how much rest after surgery?")
        assert expansion.added_terms == ()

    serve(scenario, memory=words())


def test_a_language_model_expands():
    llm = Scripted("1. couch\n- settee\n* Sofa\n\ncouch, divan", "", RuntimeError("down"))

    async def scenario(_, service):
        expansion = await service.expand_query("red sofa")
        assert expansion.added_terms == ("couch", "settee", "divan")
        assert expansion.expanded == "red sofa couch settee divan"
        ((prompt, system),) = llm.asked
        assert prompt == "red sofa"
        assert system
        nothing = await service.expand_query("red sofa")
        assert (nothing.added_terms, nothing.expanded) == ((), "red sofa")
        broken = await service.expand_query("red sofa")
        assert (broken.added_terms, broken.expanded, broken.failed) == ((), "red sofa", True)
        assert not nothing.failed

    serve(scenario, memory=words(), expander=LanguageModelExpander(llm))


class Giving:
    """An expander and suggester that gives or raises what it is told to."""

    def __init__(self, given):
        self.given, self.asked = given, 0

    async def expand(self, query, ask):  # noqa: ARG002 - the contract
        return self._give()

    async def suggest(self, context, limit, ask):  # noqa: ARG002 - the contract
        return self._give()

    def _give(self):
        self.asked += 1
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given() if callable(self.given) else self.given


def unsure(confidence):
    return ExpandedQuery(
        original="query", expanded="query x", added_terms=("x",), confidence=confidence
    )


FAILURES = {
    "raises": RuntimeError("the secret query"),
    "times out": TimeoutError(),
    "too sure": lambda: unsure(7),
    "not a number": lambda: unsure(math.nan),
    "no expansion": "query x",
    "nothing": None,
}


@pytest.mark.parametrize("given", FAILURES.values(), ids=FAILURES)
def test_where_an_expander_fails_the_query_is_answered_as_it_was_asked(given, caplog):
    caplog.set_level(logging.DEBUG, "mnemic")
    expander = Giving(given)

    async def scenario(memory, service):
        await store_near(memory, 0.9, 0.8)
        plain = await service.retrieve(QUERY)
        query = MemoryQuery(query="query", expand_query=True)
        result = await service.retrieve(query)
        assert (result.results, result.total_matches) == (plain.results, plain.total_matches)
        assert (result.expansion_failed, result.expanded_query) == (True, None)
        assert not plain.expansion_failed
        expansion = await service.expand_query("query")
        assert expansion == ExpandedQuery(
            original="query", expanded="query", added_terms=(), confidence=0.0, failed=True
        )
        # and the next call tries again
        expander.given = lambda: unsure(0.9)
        again = await service.retrieve(query)
        assert (again.from_cache, again.expanded_query) == (False, "query x")
        assert not again.expansion_failed
        assert (await service.retrieve(query)).from_cache

    serve(scenario, expander=expander, log_queries=False)
    told = [one for one in caplog.records if "expansion failed" in one.message]
    assert [one.levelno for one in told] == [logging.WARNING] * 2
    assert "secret" not in caplog.text


@pytest.mark.parametrize("given", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_a_call_is_no_failure_of_an_expander_or_suggester(given):
    giving = Giving(given)
    with Memory(":memory:", "aide", embedder=FixedEmbedder(), clock=Clock()) as memory:
        memory.add("one")
        service = AsyncRetrievalService(memory, expander=giving, suggester=giving)
        query = MemoryQuery(query="query", expand_query=True)
        for call in (
            lambda: service.retrieve(query),
            lambda: service.expand_query("query"),
            lambda: service.suggest_queries("one"),
        ):
            with pytest.raises(type(given)):
                run_sync(call())


def test_those_who_wait_for_an_answer_whose_expansion_fails_get_it_too():
    expander = Giving(RuntimeError("down"))

    async def scenario(memory, service):
        await store_near(memory, 0.9)
        query = MemoryQuery(query="query", expand_query=True)
        tasks = [asyncio.create_task(service.retrieve(query)) for _ in range(5)]
        await until(memory.embedder.asked.is_set)
        await asyncio.sleep(0.05)
        memory.embedder.gate.set()
        for result in await asyncio.gather(*tasks):
            assert (found(result), result.expansion_failed) == (["near 0.9"], True)
        assert expander.asked == 1

    serve(scenario, expander=expander, memory={"embedder": Gated()})


@pytest.mark.parametrize(
    "given", [RuntimeError("a secret"), "one text", [3], None, ["lone \ud800"]], ids=str
)
def test_where_a_suggester_fails_nothing_is_suggested(given, caplog):
    async def scenario(_, service):
        suggested = await service.suggest_queries("one thing and another")
        assert (suggested, suggested.failed) == ([], True)

    serve(scenario, suggester=Giving(given))
    assert "Suggesting queries failed" in caplog.text
    assert "secret" not in caplog.text


def test_suggestions_say_that_nothing_failed_and_are_no_more_than_asked_for():
    async def scenario(_, service):
        suggested = await service.suggest_queries("one thing", limit=2)
        assert (suggested, suggested.failed) == (["a", "b"], False)
        copied = pickle.loads(pickle.dumps(suggested))  # noqa: S301 - our own
        assert (copied, copied.failed) == (suggested, False)

    serve(scenario, suggester=Giving(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("query", "answer", "added"),
    [
        ("cartography of spain", "art\nmap", ["art", "map"]),
        ("red sofa", "sofa\nred sofa\nsofa red", ["sofa red"]),
        ("red sofa", "Sofa.\nred-sofa", ["red-sofa"]),
        ("concatenate", "cat\nCAT\ncat flap\nflap", ["cat", "cat flap"]),
        ("C# code", "C\nC#\nC++", ["C", "C++"]),
        ("stra\u00dfe", "STRASSE\nstrasse 5", ["strasse 5"]),
        ("tea", "...\n-\n", []),
    ],
)
def test_terms_are_compared_word_by_word_with_those_of_the_query(query, answer, added):
    assert terms_of(answer, query) == added


@pytest.mark.requirement("R170")
@pytest.mark.parametrize("confidence", [7, -0.1, math.nan, math.inf, True, "high", None])
def test_a_confidence_is_a_number_from_0_to_1_wherever_it_is_given(confidence):
    for make in (
        lambda: unsure(confidence),
        lambda: LanguageModelExpander(Scripted(), confidence=confidence),
    ):
        with pytest.raises(InvalidArgumentError, match="confidence"):
            make()


def test_expanders_and_suggesters_refuse_what_they_cannot_use():
    for make in (
        lambda: LanguageModelExpander(5),
        lambda: LanguageModelSuggester(5),
        lambda: LanguageModelExpander(Scripted(), terms=-1),
        lambda: CorpusExpander(terms=1.5),
    ):
        with pytest.raises(InvalidArgumentError):
            make()


def test_a_language_model_expands_a_retrieval_at_the_plain_door():
    llm = Scripted("couch")
    with Memory(":memory:", "aide", embedder=WordEmbedder(512)) as memory:
        memory.add("couch")
        service = AsyncRetrievalService(memory, expander=LanguageModelExpander(llm))
        memory._services._retrieval_engine = service._engine
        result = memory.retrieve(MemoryQuery(query="sofa", expand_query=True, min_relevance=0))
        assert found(result) == ["couch"]
        assert result.expanded_query == "sofa couch"


@pytest.mark.requirement("C023")
def test_the_confidence_that_is_needed_can_be_set():
    async def scenario(memory, _):
        for least, terms in ((0.6, ("more",)), (0.61, ())):
            service = AsyncRetrievalService(
                memory, expander=Adding("more", confidence=0.6), min_confidence=least
            )
            assert (await service.expand_query("query")).added_terms == terms

    serve(scenario)


def test_suggestions_are_phrases_that_memories_know_of():
    async def scenario(memory, service):
        await memory.add_many(
            ["the ferry leaves from quay seven", "the red sofa was bought", "tea at noon"]
        )
        context = "hello! we talked about the red sofa. when does the ferry leave? and zeppelins?"
        suggested = await service.suggest_queries(context)
        assert any("ferry" in phrase for phrase in suggested)
        assert any("sofa" in phrase for phrase in suggested)
        assert not any("zeppelin" in phrase for phrase in suggested)
        assert len(suggested) == len(set(suggested))
        assert await service.suggest_queries(context, limit=1) == suggested[:1]
        assert await service.suggest_queries("") == []
        assert await service.suggest_queries(" \n") == []
        assert await service.suggest_queries("zeppelins zoom") == []
        for wrong in (None, 3, b"x"):
            with pytest.raises(InvalidArgumentError, match="conversation_context"):
                await service.suggest_queries(wrong)
        with pytest.raises(InvalidArgumentError, match=r"conversation_context .* surrogate"):
            await service.suggest_queries("the red sofa \ud800")
        for limit in (0, 1001, True):
            with pytest.raises(InvalidArgumentError, match="limit"):
                await service.suggest_queries(context, limit=limit)

    serve(scenario, memory=words())


def test_a_language_model_suggests_and_phrases_serve_where_it_is_silent():
    llm = Scripted("1. When does the ferry leave?\n- Which quay?\n- Which quay?\nMore?", " \n")

    async def scenario(memory, service):
        await memory.add("the ferry leaves from quay seven")
        suggested = await service.suggest_queries("about the ferry", limit=2)
        assert suggested == ["When does the ferry leave?", "Which quay?"]
        assert llm.asked[0][0] == "about the ferry"
        silent = await service.suggest_queries("about the ferry", limit=2)
        assert silent
        assert all("ferry" in phrase for phrase in silent)

    serve(scenario, memory=words(), suggester=LanguageModelSuggester(llm))


def test_a_suggested_question_keeps_the_number_it_begins_with():
    llm = Scripted("1. 2024 budget?\n3 best quays?\n2) 1.5 km to the ferry?\n1.5 km?")

    async def scenario(_, service):
        suggested = await service.suggest_queries("about the ferry")
        assert suggested == ["2024 budget?", "3 best quays?", "1.5 km to the ferry?", "1.5 km?"]

    serve(scenario, memory=words(), suggester=LanguageModelSuggester(llm))
