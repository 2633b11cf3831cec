"""A function, a coroutine function and a dict of synonyms as expanders."""

import asyncio
import itertools
import threading

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.compat import AsyncRetrievalService
from mnemic.errors import ExpanderError, InvalidArgumentError
from mnemic.model.validation import MAX_QUERY_LENGTH
from mnemic.retrieval import CorpusExpander, SynonymExpander, expander_of
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import Adding


def opened(expander):
    return Memory(":memory:", embedder=WordEmbedder(dimensions=512), expander=expander)


def couch(query):
    assert query == "sofa"
    return ["couch", "settee"]


async def couch_awaited(query):
    await asyncio.sleep(0)
    return couch(query)


class Callable:
    async def __call__(self, query):
        return await couch_awaited(query)


def couch_later(query):
    return couch_awaited(query)


SAME = {
    "a function": couch,
    "a coroutine function": couch_awaited,
    "an object": Callable(),
    "a function that returns a coroutine": couch_later,
    "a generator": lambda query: (each for each in couch(query)),
    "a dict": {"sofa": ["couch", "settee"]},
    "a protocol": Adding("couch", "settee", confidence=1.0),
}


@pytest.mark.parametrize("given", SAME.values(), ids=SAME)
def test_an_expander_in_any_form_adds_its_texts_at_each_door(given):
    async def awaited(memory):
        return await memory.expand("sofa"), await AsyncRetrievalService(
            memory, expander=given
        ).expand_query("sofa")

    with opened(given) as memory:
        memory.add("an old couch")
        memory.add("a lamp")
        expansion = memory.expand("sofa")
        assert (expansion.expanded, expansion.added_terms) == (
            "sofa couch settee",
            ("couch", "settee"),
        )
        assert expansion.confidence == 1.0
        assert asyncio.run(awaited(memory.aio)) == (expansion, expansion)
        result = memory.retrieve("sofa", expand=True, search_type="semantic", min_score=0.0)
        assert (result.expanded_query, result[0].content) == ("sofa couch settee", "an old couch")


def test_a_plain_function_does_not_block_the_event_loop():
    threads = []

    def remembering(_query):
        threads.append(threading.current_thread())
        return []

    async def scenario():
        async with AsyncMemory(":memory:", embedder=None, expander=remembering) as one:
            assert (await one.expand("sofa")).added_terms == ()

    asyncio.run(scenario())
    assert threads[0] is not threading.current_thread()
    with opened(remembering) as memory:
        memory.expand("sofa")
    assert threads[1] is threading.current_thread()


def expanded(given, query="sofa"):
    with opened(given) as memory:
        return memory.expand(query)


def test_words_of_the_query_and_repetitions_are_left_out():
    assert expanded(lambda _: ["SOFA", "Couch", " ", "couch", "a couch"]).added_terms == (
        "Couch",
        "a couch",
    )
    assert expanded(lambda _: []).expanded == "sofa"


def test_only_the_first_texts_of_an_expansion_are_used():
    endless = expanded(lambda _: (f"word{number}" for number in itertools.count()))
    assert endless.added_terms == tuple(f"word{number}" for number in range(32))
    assert len(expanded({"sofa": [f"word{number}" for number in range(99)]}).added_terms) == 32


def test_an_expanded_query_is_no_longer_than_a_query_may_be():
    query = "sofa " * 1900
    added = expanded(lambda _: ["x" * 400, "y" * 400, "z"], query).added_terms
    assert [text[0] for text in added] == ["x", "z"]
    assert len(expanded(lambda _: ["x" * 400, "y" * 400], query).expanded) <= MAX_QUERY_LENGTH


BAD = {
    "a text": "couch",
    "nothing": None,
    "a number": 3,
    "a dict": {"couch": 1},
    "numbers": [3],
    "a long text": ["x" * 501],
    "a lone surrogate": ["lone \ud800"],
    "a NUL character": ["a\0b"],
}


@pytest.mark.parametrize("returned", BAD.values(), ids=BAD)
def test_a_function_that_returns_no_list_of_texts_raises_a_typed_error(returned):
    async def returning(_query):
        return returned

    for function in (lambda _: returned, returning):
        with opened(function) as memory:
            memory.add("an old couch")
            for call in (
                lambda: memory.expand("sofa"),
                lambda: memory.retrieve("sofa", expand=True),
            ):
                with pytest.raises(ExpanderError, match="expan") as raised:
                    call()
                assert "couch" not in str(raised.value)
            assert memory.retrieve("couch")[0].content == "an old couch"


SYNONYMS = {
    "K8s": "kubernetes",
    "new york": ("NYC", "big apple"),
    "car": ["automobile"],
    "CAR": ["vehicle"],
    "東京": ["Tokyo"],
    "\uff21\uff29": ["artificial intelligence"],
}


@pytest.mark.parametrize(
    ("query", "added"),
    [
        ("is k8s up?", ("kubernetes",)),
        ("hotels in New  York, now", ("NYC", "big apple")),
        ("york new", ()),
        ("a car of New York", ("automobile", "vehicle", "NYC", "big apple")),
        ("scars", ()),
        ("東京に行く", ("Tokyo",)),
        ("AI and cars", ("artificial intelligence",)),
        ("an automobile", ()),
    ],
)
def test_synonyms_are_added_for_whole_words_and_phrases(query, added):
    expansion = expanded(SYNONYMS, query)
    assert expansion.added_terms == added
    assert expansion.confidence == (1.0 if added else 0.0)


@pytest.mark.parametrize(
    "synonyms", [{"": "x"}, {"?": "x"}, {"a": 3}, {"a": [3]}, {"a": None}, {3: "x"}], ids=str
)
def test_synonyms_that_are_no_texts_are_refused_before_a_file_is_made(synonyms, path):
    with pytest.raises(InvalidArgumentError):
        Memory(path, embedder=None, expander=synonyms)
    with pytest.raises(InvalidArgumentError):
        SynonymExpander(synonyms)
    assert not path.exists()


def test_what_is_no_expander_is_refused_with_the_forms_there_are():
    with pytest.raises(InvalidArgumentError, match=r"a function from a text .* a dict .* expand"):
        Memory(":memory:", embedder=None, expander=5)
    with opened(None) as memory, pytest.raises(InvalidArgumentError, match="got 5"):
        AsyncRetrievalService(memory, expander=5)
    assert isinstance(expander_of(None), CorpusExpander)
