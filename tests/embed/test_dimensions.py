"""Dimensions that an embedder does not name are learned from the file or from the first vectors."""

from functools import partial

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry, as_embedder, errors
from mnemic.model.validation import MAX_DIMENSIONS
from tests.support.embedders import WordEmbedder
from tests.support.threads import run_together


class Counted:
    """`WordEmbedder` behind a function, with the number of its calls."""

    def __init__(self, dimensions=64):
        self.words = WordEmbedder(dimensions)
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        return self.words.embed(texts)


def adapted(function, **options):
    return as_embedder(function, model="words", **options)


def test_opening_makes_no_call_and_the_first_vectors_tell(path):
    function = Counted()
    with Memory(path, embedder=adapted(function)) as memory:
        assert function.calls == 0
        memory.add_many(["red sofa", "blue chair"])
        assert memory.search("red", search_type="semantic")[0].content == "red sofa"
        assert memory.search("red")[0].components["similarity"] > 0
    again = Counted()
    with Memory(path, embedder=adapted(again)) as memory:
        assert again.calls == 0
        assert memory.search("red", search_type="semantic")[0].content == "red sofa"
        assert again.calls == 1


def test_a_search_before_any_vector_finds_memories_stored_without_an_embedder(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many(["red sofa", "blue chair"])
    with Memory(path, embedder=adapted(Counted())) as memory:
        hits = memory.search("red", search_type="semantic")
        assert [hit.content for hit in hits] == ["red sofa", "blue chair"]
        assert hits[0].components["similarity"] == pytest.approx(0.5**0.5, abs=1e-6)


def test_another_process_may_tell_first(path):
    with (
        Memory(path, embedder=adapted(Counted())) as first,
        Memory(path, embedder=adapted(Counted())) as second,
    ):
        first.add("red sofa")
        assert second.search("red", search_type="semantic")[0].content == "red sofa"
        second.add("red chair")
        assert len(first.search("red", search_type="semantic")) == 2


def test_another_length_than_the_files_is_refused(path):
    with Memory(path, embedder=adapted(Counted(32))) as memory:
        memory.add("red sofa")
    with pytest.raises(errors.EmbeddingModelMismatchError, match=r"32 dimensions.*'words' with 64"):
        Memory(path, embedder=adapted(Counted(), dimensions=64))
    with pytest.raises(errors.EmbeddingModelMismatchError, match="the embedder is 'other'"):
        Memory(path, embedder=as_embedder(Counted(), model="other"))


def test_many_first_calls_at_once_agree(path):
    with Memory(path, embedder=adapted(Counted(), join_calls=False)) as memory:

        def work(at):
            memory.add(f"red sofa {at}")
            memory.search(f"red {at}")

        run_together(*(partial(work, at) for at in range(8)))
        assert len(memory.search("red sofa", search_type="semantic", limit=20)) == 8


def test_vectors_given_with_the_first_memory_tell_the_length(path):
    words = WordEmbedder()
    with Memory(path, embedder=words) as memory:
        entry = memory.add("red sofa")
    with Memory(":memory:", embedder=adapted(Counted())) as memory:
        memory.add_many([entry])
        assert memory.search("red", search_type="semantic")[0].content == "red sofa"


def ones(dimensions):
    return lambda texts: np.ones((len(texts), dimensions), dtype=np.float32)


def test_vectors_are_as_long_as_the_index_takes(path):
    with Memory(path, embedder=adapted(ones(MAX_DIMENSIONS))) as memory:
        memory.add("red sofa")
        assert len(memory.search("red", search_type="semantic")) == 1


def test_longer_vectors_are_refused_before_they_are_stored(path):
    too_many = "32769 dimensions; at most 32768 fit"
    with (
        Memory(path, embedder=adapted(ones(MAX_DIMENSIONS + 1))) as memory,
        pytest.raises(errors.EmbedderResultError, match=too_many),
    ):
        memory.add("red sofa")
    with Memory(path, embedder=None) as memory:
        with pytest.raises(errors.InvalidEntryError, match=too_many):
            memory.add(MemoryEntry("red sofa", embedding=np.ones(MAX_DIMENSIONS + 1)))
        assert not memory.search("red")
    with pytest.raises(errors.InvalidArgumentError, match="at most 32768 fit"):
        adapted(ones(1), dimensions=MAX_DIMENSIONS + 1)
