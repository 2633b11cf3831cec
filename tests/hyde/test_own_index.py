"""The index of a scope's memories by another model than the memory's own."""

import pytest

from mnemic import Memory
from mnemic.hyde.own_index import OwnIndex
from mnemic.model import Scope
from tests.support.embedders import WordEmbedder

OTHER = "other"


class Failing(WordEmbedder):
    """Fails for texts that hold a word."""

    def __init__(self, word, **options):
        super().__init__(model=OTHER, **options)
        self.word = word

    def embed(self, texts):
        if self.word is not None and any(self.word in text for text in texts):
            raise RuntimeError("broken")
        return super().embed(texts)


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "a.db", embedder=WordEmbedder()) as opened:
        yield opened


def repository_of(memory):
    return memory._repository


def index_of(memory, embedder=None, scope=None, **options):
    given = WordEmbedder(model=OTHER, dimensions=32) if embedder is None else embedder
    repository = repository_of(memory)
    return OwnIndex(repository, scope or repository.agent, given, **options)


def found(index, text, top_k=10, **options):
    """Return the contents that a search finds, best first."""
    vectors = WordEmbedder(model=OTHER, dimensions=index.dimensions or 32).embed([text])
    hits = index.search(vectors, top_k, **options)
    entries = index._companions.entries(Scope("default", all_users=True), [row for row, _ in hits])
    return [entries[row].content for row, _ in hits if row in entries]


@pytest.mark.requirement("R339", "R346")
def test_a_build_embeds_every_memory_and_a_search_finds_the_nearest_first(memory):
    memory.add_many(["red sofa", "blue chair", "red lamp beside the red sofa"])
    index = index_of(memory)
    built = index.build()
    assert (built.rows, built.embedded, built.failed, len(index)) == (3, 3, 0, 3)
    assert found(index, "red sofa", 2) == ["red sofa", "red lamp beside the red sofa"]
    assert (index.model, index.dimensions) == (OTHER, 32)


@pytest.mark.requirement("C115")
def test_a_later_build_embeds_what_is_new_alone(memory):
    memory.add("red sofa")
    embedder = WordEmbedder(model=OTHER)
    index = index_of(memory, embedder)
    index.build()
    memory.add("blue chair")
    assert index.build().embedded == 1
    assert embedder.texts == ["red sofa", "blue chair"]
    assert index.build().embedded == 0


@pytest.mark.requirement("R347")
def test_a_store_that_was_emptied_clears_the_index(memory):
    added = memory.add("red sofa")
    index = index_of(memory)
    index.build()
    memory.delete(added.id)
    assert found(index, "red sofa") == []
    assert index.build().rows == 0
    assert len(index) == 0


def test_other_vectors_of_a_query_find_each_memory_once_with_its_best(memory):
    memory.add_many(["red sofa", "blue chair"])
    index = index_of(memory)
    index.build()
    vectors = WordEmbedder(model=OTHER, dimensions=32).embed(["red sofa", "blue chair"])
    hits = index.search(vectors)
    assert len(hits) == 2
    assert [score for _, score in hits] == pytest.approx([1.0, 1.0])


def test_an_index_of_a_user_holds_and_finds_that_users_memories_alone(memory):
    memory.add("red sofa", user_id="alice")
    memory.add("red sofa of Bob", user_id="bob")
    index = index_of(memory, scope=Scope("default", "alice"))
    index.build()
    assert len(index) == 1
    assert found(index, "red sofa") == ["red sofa"]
