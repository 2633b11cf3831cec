"""Functions that embed texts: their forms, found by calling them, and what they return."""

import asyncio

import numpy as np
import pytest

from mnemic import Memory, as_embedder
from mnemic.embed.functions import AWAITED_AT_ONCE
from mnemic.errors import EmbedderResultError, EmbeddingError
from tests.support.embedders import WordEmbedder

TEXTS = ["red sofa in the hall", "blue chair", "green table beside the red lamp"]

words = WordEmbedder()


def one_text(text):
    return words.embed([text.lower()])[0]


def several_texts(texts):
    return words.embed(list(texts)).tolist()


async def one_text_awaited(text):
    await asyncio.sleep(0)
    return words.embed([text.lower()])[0].tolist()


@pytest.mark.parametrize("given", [one_text, several_texts, one_text_awaited])
def test_a_failing_function_is_not_taken_for_another_form(given):
    is_down = True

    def flapping(texts):
        if is_down:
            raise ConnectionError("secret")
        return given(texts)

    with Memory(":memory:", embedder=flapping, embedding_model="words") as memory:
        with pytest.raises(EmbeddingError, match="ConnectionError") as caught:
            memory.add("tea")
        assert "secret" not in str(caught.value)
        is_down = False
        memory.add("tea")
        memory.add_many(TEXTS)
        assert memory.search("tea", search_type="semantic")[0].content == "tea"


def test_vectors_of_different_lengths_are_refused():
    lengths = {"one": 3, "two": 4}
    given = lambda text: np.ones(lengths.get(text, 3))  # noqa: E731
    with Memory(":memory:", embedder=given, embedding_model="m") as memory:
        memory.add("one")
        with pytest.raises(EmbedderResultError, match=r"different lengths: \[3, 4\]"):
            memory.add_many(["one", "two"])
        with pytest.raises(EmbedderResultError, match=r"shape \(1, 4\) for 1 texts.*\(1, 3\)"):
            memory.add("two")


def test_a_function_is_called_once_more_for_its_form_and_then_never():
    calls = []

    def embed(texts):
        calls.append(texts)
        return words.embed(texts)

    with Memory(":memory:", embedder=embed, embedding_model="m") as memory:
        memory.add("tea")
        memory.add("cup")
        memory.add_many(["red", "blue"])
    assert calls == [["tea", "tea"], ["cup"], ["red", "blue"]]


def test_a_function_that_returns_tensors_of_a_gradient_is_given_advice():
    class Tensor:
        def __array__(self, *_, **__):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

        def cpu(self):
            return self

    with (
        Memory(":memory:", embedder=lambda _: Tensor(), embedding_model="m") as memory,
        pytest.raises(EmbeddingError, match=r"read from tensor\.detach"),
    ):
        memory.add("tea")


def test_a_coroutine_function_of_one_text_runs_a_few_calls_at_once():
    running, most = 0, 0

    async def embed(text):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return words.embed([text.strip()])[0]

    with Memory(":memory:", embedder=embed, embedding_model="m") as memory:
        memory.add("tea")
        memory.add_many([f"text {at}" for at in range(40)])
        assert 1 < most <= AWAITED_AT_ONCE + 1
        assert memory.search("text 39", search_type="semantic")[0].content == "text 39"


def test_a_failing_coroutine_of_one_text_fails_the_call():
    async def embed(text):
        await asyncio.sleep(0)
        if text == "poison":
            raise ConnectionError("secret")
        return words.embed([text.strip()])[0]

    with Memory(":memory:", embedder=embed, embedding_model="m") as memory:
        memory.add("tea")
        with pytest.raises(EmbeddingError, match="ConnectionError at"):
            memory.add_many(["tea", "poison", "cup"])
        assert memory.count() == 1


def written_to(array):
    """Return the rows of an array that each call of the function writes to again."""

    def embed(texts):
        array[: len(texts)] = words.embed(texts)
        return array[: len(texts)]

    return embed


def one_written_to(array):
    def embed(text):
        array[:] = words.embed([text.lower()])[0]
        return array

    return embed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["batches", "one", "awaited"])
def test_a_function_may_return_the_same_array_at_each_call(form, dtype):
    if form == "batches":
        function = written_to(np.zeros((len(TEXTS), 64), dtype))
    else:
        function = one_written_to(np.zeros(64, dtype))
    if form == "awaited":
        plain = function

        async def function(text):
            return plain(text)

    embedder = as_embedder(function, model="words", batch_size=1)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_many(TEXTS)
        stored = memory.get_many([entry.id for entry in memory.list()], embeddings=True)
        for entry in stored:
            assert np.array_equal(entry.embedding, words.embed([entry.content])[0])


def test_a_function_may_empty_its_list():
    def embed(texts):
        vectors = words.embed(texts)
        texts.clear()
        return vectors

    with Memory(":memory:", embedder=embed, embedding_model="words") as memory:
        memory.add_many(TEXTS)
        assert memory.search("red sofa", search_type="semantic")[0].content == TEXTS[0]


def test_a_function_that_fails_by_chance_at_first_still_takes_several_texts():
    calls = []

    def embed(texts):
        calls.append(texts)
        if len(calls) == 1:
            raise ValueError("no JSON")
        return words.embed([texts] if isinstance(texts, str) else texts)

    with Memory(":memory:", embedder=embed, embedding_model="words") as memory:
        memory.add(TEXTS[0])
        memory.add_many(TEXTS[1:])
        assert calls == [[TEXTS[0]] * 2, TEXTS[0], TEXTS[1:]]
        assert memory.search("red sofa", search_type="semantic")[0].content == TEXTS[0]
