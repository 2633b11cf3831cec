"""The model of an agent's vectors: named by the first one, and changed where there are none."""

from functools import partial

import numpy as np
import pytest

from mnemic import Memory, as_embedder
from mnemic.errors import EmbeddingModelMismatchError
from mnemic.model import EmbeddingModel
from tests.support.embedders import WordEmbedder
from tests.support.failing_embedders import FailingEmbedder
from tests.support.threads import run_together

SMALL, LARGE = EmbeddingModel("small", 16), EmbeddingModel("large", 64)


def small():
    return WordEmbedder(16, "small")


def large():
    return WordEmbedder(64, "large")


def test_a_memory_without_vectors_takes_another_model(path):
    with Memory(path, embedder=small()) as memory:
        memory.delete(memory.add("tea").id, permanent=True)
        assert Memory.model_of(path) is None
    with Memory(path, embedder=large()) as memory:
        memory.add_many(["red sofa", "blue chair"])
        assert memory.search("red", search_type="semantic")[0].content == "red sofa"
    assert Memory.model_of(path) == LARGE
    with pytest.raises(EmbeddingModelMismatchError, match="'large' with 64 dimensions"):
        Memory(path, embedder=small())


def test_memories_that_wait_for_a_vector_do_not_hold_the_old_model(path):

    with Memory(path, embedder=FailingEmbedder(16, "small", is_down=True)) as memory:
        memory.add_many(["red sofa"], on_embed_error="pending")
        memory.add_many(["blue chair"], on_embed_error="pending")
    with Memory(path, embedder=large()) as memory:
        assert memory.search("red", search_type="semantic")[0].content == "red sofa"
    assert Memory.model_of(path) == LARGE


def test_a_soft_deleted_memory_keeps_its_model(path):
    with Memory(path, embedder=small()) as memory:
        kept = memory.add("tea")
        memory.delete(kept.id)
        assert Memory.model_of(path) == SMALL
    with pytest.raises(EmbeddingModelMismatchError):
        Memory(path, embedder=large())


@pytest.mark.parametrize("is_searched", [False, True])
def test_an_open_memory_whose_last_vector_is_gone_takes_vectors_of_another_length(
    path, is_searched
):
    with Memory(path, embedder=None) as memory, Memory(path, embedder=None) as other:
        for length in (3, 2, 5, 3):
            own = np.eye(length)
            memory.add_many(["red sofa"], embeddings=own[:1])
            other.add_many(["blue chair", "oak table"], embeddings=[own[1], None])
            if is_searched:
                for each in (memory, other):
                    found = each.search(vector=own[1], limit=3)
                    assert (found[0].content, found[0].score) == ("blue chair", 1.0)
            with pytest.raises(EmbeddingModelMismatchError):
                memory.add_many(["stool"], embeddings=np.eye(9)[:1])
            memory.delete_all()
            with pytest.raises(EmbeddingModelMismatchError):
                memory.add_many(["stool"], embeddings=np.eye(9)[:1])
            memory.delete_all(permanent=True)
            assert len(memory.search(vector=own[0])) == 0
        assert Memory.model_of(path) is None


def test_two_open_memories_of_two_models_cannot_both_bring_vectors(path):
    with (
        Memory(path, embedder=small()) as first,
        Memory(path, embedder=large()) as second,
    ):
        first.add("tea")
        with pytest.raises(EmbeddingModelMismatchError):
            second.add("cup")
        with pytest.raises(EmbeddingModelMismatchError):
            second.search("tea")
        assert [hit.content for hit in first.search("tea")] == ["tea"]


def test_of_many_first_vectors_at_once_one_model_wins(path):
    memories = [Memory(path, embedder=WordEmbedder(16 + at, f"m{at}")) for at in range(4)]
    refused = []

    def add(memory):
        try:
            memory.add("tea")
        except EmbeddingModelMismatchError as error:
            refused.append(error)

    run_together(*(partial(add, memory) for memory in memories))
    for memory in memories:
        memory.close()
    assert len(refused) == 3
    assert Memory.model_of(path).name in {f"m{at}" for at in range(4)}


def test_the_model_of_a_function_is_recorded_by_the_name_it_is_given(path):
    function = WordEmbedder(8).embed
    with Memory(path, embedder=as_embedder(function, model="mine-v1")) as memory:
        memory.add("tea")
    assert Memory.model_of(path) == EmbeddingModel("mine-v1", 8)
