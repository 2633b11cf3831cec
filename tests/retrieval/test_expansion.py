"""Expanded queries."""

import asyncio
import logging
import math

import pytest

from mnemic import Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import InvalidArgumentError
from mnemic.model import ExpandedQuery, MemoryQuery
from mnemic.retrieval import CorpusExpander, LanguageModelExpander, LanguageModelSuggester
from mnemic.retrieval.expansion import terms_of
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import Clock
from tests.support.retrieval import QUERY, Adding, FixedEmbedder, serve, served, store_near, words


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
@served(memory=words())
async def test_the_offline_expander_adds_words_of_what_matches(memory, service):
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


@served(memory=words())
async def test_expansion_sees_only_the_memories_of_the_scope(memory, service):
    await memory.add("the ferry leaves from quay seven", user_id="alice")
    await memory.add("the ferry costs much", user_id="boris")
    for user, wanted, other in (("alice", "quay", "costs"), ("boris", "costs", "quay")):
        terms = (await service.expand_query("ferry", user_id=user)).added_terms
        assert wanted in terms
        assert other not in terms
    assert (await service.expand_query("ferry")).added_terms == ()


@pytest.mark.requirement("C028")
@served(memory=words())
async def test_words_of_sensitive_memories_are_not_added_to_queries(memory, service):
    await memory.add("the ferry password is swordfish", sensitive=True)
    await memory.add("the ferry leaves from quay seven")
    expansion = await service.expand_query("ferry")
    assert "quay" in expansion.added_terms
    assert "swordfish" not in expansion.expanded


OWN = CorpusExpander(abbreviations={"zq": "zebra quartet"}, terms=0)


@pytest.mark.parametrize(
    ("expander", "query", "added"),
    [
        (None, "which DB?", ("database",)),
        (None, "how much rest after surgery?", ()),
        (OWN, "zq", ("zebra quartet",)),
        (OWN, "db", ()),
    ],
)
def test_abbreviations_are_spelled_out_where_nothing_matches(expander, query, added):
    with Memory(":memory:", embedder=FixedEmbedder(), expander=expander) as memory:
        expansion = memory.expand(query)
    assert expansion.expanded == " ".join([query, *added])
    assert expansion.added_terms == added
    assert (expansion.confidence >= 0.5) == bool(added)


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


@pytest.mark.requirement("C023")
@served()
async def test_the_confidence_that_is_needed_can_be_set(memory, service):
    for least, terms in ((0.6, ("more",)), (0.61, ())):
        service = AsyncRetrievalService(
            memory, expander=Adding("more", confidence=0.6), min_confidence=least
        )
        assert (await service.expand_query("query")).added_terms == terms
