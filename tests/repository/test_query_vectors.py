"""Vectors of a program's own as queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import MemoryEntry, Ranking
from mnemic.errors import (
    InvalidArgumentError,
)
from mnemic.model import HYBRID, KEYWORD
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.tiers import examples

NORTH, EAST = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
BETWEEN = [3.0, 4.0, 0.0]


@pytest.fixture
def memory():
    with opened(embedder=None) as made:
        yield made


def contents(found):
    return [hit.content for hit in found]


def scores(found):
    return {hit.content: round(hit.score, 6) for hit in found}


def test_a_vector_alone_searches_by_meaning(memory):
    memory.add_many(["north", "east"], embeddings=[NORTH, EAST])
    for search_type in ("hybrid", "semantic"):
        found = memory.search(vector=BETWEEN, search_type=search_type)
        assert scores(found) == {"east": 0.8, "north": 0.6}


def test_a_text_and_a_vector_search_by_both(memory):
    memory.add_many(["the old lamp stands here", "a new boat lies there"], embeddings=[NORTH, EAST])
    found = memory.search("lamp", vector=EAST, explain=True)
    parts = {hit.content: hit.components for hit in found}
    assert parts["the old lamp stands here"]["keyword"] > 0
    assert parts["a new boat lies there"]["similarity"] == 1
    assert contents(memory.search("lamp", vector=EAST, search_type="semantic"))[0].startswith("a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector": [0.0, 0.0, 0.0]}, "zeros"),
        ({"vector": [NORTH, [0.0] * 3]}, "zeros"),
        ({"vector": [1.0, float("inf"), 0.0]}, "infinity"),
        ({"vector": [1.0]}, "3 dimensions"),
        ({"vector": []}, "shape"),
        ({"vector": "north"}, "list of numbers"),
        ({"vector": NORTH, "query": ""}, "query must be a text"),
        ({"vector": NORTH, "query": "x", "search_type": "keyword"}, "leave vector out"),
        ({"vector": NORTH, "search_type": "keyword"}, "leave vector out"),
        ({"vector": NORTH, "query": "x", "ranking": KEYWORD}, "leave vector out"),
        ({}, "query must be a text"),
    ],
)
def test_a_search_refuses_what_it_cannot_compare(memory, options, message):
    memory.add(MemoryEntry("north", embedding=NORTH))
    with pytest.raises(InvalidArgumentError, match=message):
        memory.search(**options)


def test_a_vector_has_no_language():
    embedder = WordEmbedder()
    embedder.languages = {"en"}
    with opened(embedder=embedder) as memory:
        memory.add("one red cat sleeps there")
        embedder.texts.clear()
        vector = embedder.embed(["one red cat sleeps there"])[0]
        by_text, by_vector = memory.search("кот"), memory.search("кот", vector=vector)
        assert len(by_text) == 0
        assert [round(hit.components["similarity"], 6) for hit in by_vector] == [1]


def test_context_takes_a_vector_and_passes_over_empty_texts(memory):
    memory.add(MemoryEntry("", embedding=NORTH))
    memory.add(MemoryEntry("north", embedding=NORTH))
    assert [entry.content for entry in memory.context(vector=NORTH).memories] == ["north"]


def test_similar_compares_own_vectors(memory):
    one = memory.add(MemoryEntry("lamp and boat", embedding=NORTH))
    memory.add_many(["near", "a boat far away"], embeddings=[[0.9, 0.1, 0.0], EAST])
    plain = memory.add("a lamp without a vector")
    assert contents(memory.similar(one.id))[0] == "near"
    assert contents(memory.similar(plain.id))[0] == "lamp and boat"


words = st.sampled_from(["red", "cat", "dog", "tree", "boat", "lamp", "the", "a", "Oslo", "5"])
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)
search_types = st.sampled_from(["hybrid", "semantic"])
rankings = st.sampled_from([None, HYBRID, Ranking(similarity=0.5), Ranking(full_words=3)])


@examples(60)
@given(st.lists(texts, min_size=1, max_size=8), texts, rankings, search_types)
def test_the_vector_of_a_text_finds_what_the_text_finds(stored, query, ranking, search_type):
    embedder = WordEmbedder(dimensions=16)
    with opened(embedder=embedder, clock=lambda: NOON) as memory:
        memory.add_many(stored)
        options = {"search_type": search_type} if ranking is None else {"ranking": ranking}
        vector = embedder.embed([query])[0]
        by_text = memory.search(query, explain=True, **options)
        by_vector = memory.search(query, vector=vector, explain=True, **options)
        assert exact(by_text) == exact(by_vector)
        if search_type == "semantic" and ranking is None:
            assert exact(by_text) == exact(memory.search(vector=vector, explain=True))


def exact(found):
    return [(hit.id, hit.score.hex(), sorted(hit.components.items())) for hit in found], found.share
