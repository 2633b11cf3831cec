"""Suggested queries for a conversation."""

import pickle

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.retrieval import LanguageModelSuggester
from tests.retrieval.test_expansion import Giving, Scripted
from tests.support.retrieval import serve, served, words


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


@served(suggester=Giving(["a", "b", "c"]))
async def test_suggestions_say_that_nothing_failed_and_are_no_more_than_asked_for(service):
    suggested = await service.suggest_queries("one thing", limit=2)
    assert (suggested, suggested.failed) == (["a", "b"], False)
    copied = pickle.loads(pickle.dumps(suggested))  # noqa: S301 - our own
    assert (copied, copied.failed) == (suggested, False)


@served(memory=words())
async def test_suggestions_are_phrases_that_memories_know_of(memory, service):
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
