"""A hybrid search compares the meanings of those texts alone that the embedder covers."""

import msgspec
import pytest

from mnemic import Memory
from mnemic.model import HYBRID, MemoryQuery
from tests.support.embedders import WordEmbedder

EVEN = msgspec.structs.replace(HYBRID, full_words=0)  # texts of few words too
TEA = ("вода и лампа", "вода вода вода", "лампа", "a lamp", "water for the lamp")


def english():
    made = WordEmbedder()
    made.languages = {"en"}
    return made


def opened(embedder, contents=TEA):
    memory = Memory(":memory:", embedder=embedder)
    memory.add_many(contents)
    return memory


@pytest.fixture
def memory():
    with opened(english()) as made:
        yield made


def lines(results):
    return [(hit.content, hit.score) for hit in results]


def explained(memory, query, **options):
    return {hit.content: hit.components for hit in memory.search(query, explain=True, **options)}


def test_a_query_in_another_script_is_answered_as_without_an_embedder(memory):
    found = memory.search("вода и лампа")
    with opened(None) as plain:
        assert lines(found) == lines(plain.search("вода и лампа"))
    assert len(found) == 3
    assert not found.degraded
    assert all("similarity" not in hit.components for hit in found)


def test_such_a_query_is_not_embedded(memory):
    embedded = len(memory.embedder.texts)
    memory.search("вода")
    assert len(memory.embedder.texts) == embedded
    memory.search("water")
    assert len(memory.embedder.texts) == embedded + 1


def test_a_context_of_another_script_ranks_by_keywords_too(memory):
    with opened(None) as plain:
        wanted = plain.context("вода и лампа", max_tokens=100)
    assert list(memory.context("вода и лампа", max_tokens=100)) == list(wanted)


def test_a_retrieval_keeps_the_context_that_a_query_in_another_script_comes_with(memory):
    query = MemoryQuery(query="вода", search_type="hybrid")
    near = msgspec.structs.replace(query, context_boost="вода и лампа", context_weight=1.0)
    embedded = len(memory.embedder.texts)
    assert memory.retrieve(query)[0].entry.content == "вода вода вода"
    assert memory.retrieve(near)[0].entry.content == "вода и лампа"
    assert memory.embedder.texts[embedded:] == ["вода и лампа"]


class Translating(WordEmbedder):
    """Knows a German word by its English one."""

    def embed(self, texts):
        return super().embed([text.replace("Leuchte", "lamp") for text in texts])


def test_meaning_decides_where_a_memory_in_another_language_has_no_word_of_the_query():
    embedder = Translating()
    embedder.languages = {"en"}
    contents = ("Die Leuchte ist bei dem Wein, den Anna mag", "the wine is for Anna and for you")
    ranking = msgspec.structs.replace(EVEN, similarity=0.2)
    with opened(embedder, contents) as memory:
        by_meaning = explained(memory, "a lamp", ranking=ranking)[contents[0]]
        by_words = explained(memory, "Anna", ranking=ranking)[contents[0]]
        assert memory.search("a lamp", ranking=ranking)[0].content == contents[0]
    assert by_meaning["similarity"] > by_meaning["keyword"] == 0
    assert by_words["keyword"] > by_words["similarity"] > 0
    assert (by_meaning["share"], by_words["share"]) == (0.2, 0.1)
    for parts in (by_meaning, by_words):
        forms = [s * parts["similarity"] + (1 - s) * parts["keyword"] for s in (0.1, 0.2)]
        assert parts["relevance"] == pytest.approx(max(forms))


def test_a_search_by_meaning_compares_whatever_it_is_given(memory):
    found = memory.search("вода", search_type="semantic")
    assert len(found) == len(TEA)
    assert found[0].content == "вода вода вода"
    assert found[0].score == pytest.approx(1)
