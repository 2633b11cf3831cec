"""Functions and other libraries' objects as embedders."""

import asyncio
import math

import numpy as np
import pytest

from mnemic import Memory, as_embedder
from mnemic.embed import AdaptedEmbedder, MiniLmEmbedder
from mnemic.errors import EmbedderResultError, EmbeddingError, InvalidArgumentError, MnemicError
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


async def several_texts_awaited(texts):
    await asyncio.sleep(0)
    return words.embed(texts)


def a_row_of_one_text(text):
    return words.embed([text.strip()])  # a list is no text here


def a_generator(texts):
    return (vector for vector in words.embed(texts))


class CallableObject:
    def __call__(self, texts):
        return words.embed(texts)


class Encoder:
    model_name = "words"
    max_seq_length = 64

    def get_sentence_embedding_dimension(self):
        return words.dimensions

    def encode(self, sentences, *_):
        if isinstance(sentences, str):
            return words.embed([sentences])[0]
        return words.embed(sentences)


class EmbedsOnly:
    model_id = "words"

    def embed(self, documents):
        return iter(words.embed(list(documents)))


class EmbedsOne:
    model_id = "words"

    def embed(self, text):
        return words.embed([text.strip()])[0]


class LangChained:
    model = "words"

    def embed_documents(self, texts):
        return words.embed(texts).tolist()

    def embed_query(self, text):
        return words.embed([text]).tolist()[0]


class AwaitedLangChained:
    model = "words"

    async def aembed_documents(self, texts):
        return words.embed(texts).tolist()

    async def aembed_query(self, text):
        return words.embed([text]).tolist()[0]


class AwaitedEncoder:
    model = "words"

    async def aencode(self, texts):
        return words.embed(texts)


NAMELESS = [
    one_text,
    several_texts,
    one_text_awaited,
    several_texts_awaited,
    a_row_of_one_text,
    a_generator,
    CallableObject(),
    words.embed,
]
NAMED = [
    Encoder(),
    EmbedsOnly(),
    EmbedsOne(),
    LangChained(),
    AwaitedLangChained(),
    AwaitedEncoder(),
]


def found(memory):
    return [(hit.content, hit.score, hit.components) for hit in memory.search("the red table")]


@pytest.fixture(scope="module")
def expected():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(TEXTS)
        return found(memory)


@pytest.mark.parametrize("given", [*NAMELESS, *NAMED])
@pytest.mark.parametrize("is_batch", [True, False])
def test_each_form_embeds_memories_and_queries(given, expected, is_batch):
    named = {"embedding_model": "words"} if given in NAMELESS else {}
    with Memory(":memory:", embedder=given, **named) as memory:
        if is_batch:
            memory.add_many(TEXTS)
        else:
            for text in TEXTS:
                memory.add(text)
        assert found(memory) == expected
        assert isinstance(memory.embedder, AdaptedEmbedder)
        assert memory.embedder.model == "words"


@pytest.mark.parametrize("given", [one_text, lambda texts: texts, CallableObject(), object])
def test_an_embedder_without_a_name_is_refused_with_the_line_to_write(path, given):
    with pytest.raises(InvalidArgumentError) as caught:
        Memory(path, embedder=given)
    said = str(caught.value)
    assert "embedding_model='my-model-v1'" in said or "give an instance" in said
    assert not path.exists()


def test_a_name_for_no_embedder_of_ones_own_is_refused(path):
    with pytest.raises(InvalidArgumentError, match="embedding_model names the model"):
        Memory(path, embedding_model="mine")
    with pytest.raises(InvalidArgumentError, match="got 'text-embedding-3-small'"):
        Memory(path, embedder="text-embedding-3-small")
    assert not path.exists()


def test_a_name_given_takes_the_place_of_the_objects_own():
    with Memory(":memory:", embedder=LangChained(), embedding_model="mine") as memory:
        assert memory.embedder.model == "mine"
    with Memory(":memory:", embedder=WordEmbedder(), embedding_model="mine") as memory:
        assert memory.add("tea").embedding_model == "mine"
    renamed = as_embedder(as_embedder(one_text, model="a", query_prefix="q "), model="b")
    assert (renamed.model, renamed.has_queries) == ("b", True)


def test_a_complete_embedder_stays_what_it_is():
    given = WordEmbedder()
    with Memory(":memory:", embedder=given) as memory:
        assert memory.embedder is given
    assert as_embedder(MiniLmEmbedder()).join_calls is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda _: None, r"it returned None.*one text: it returned None, which is not numbers"),
        (lambda _: "vector", "a str of 6 characters"),
        (lambda _: [[1.0, 2.0], [3.0]], "a list of 2 items"),
        (lambda _: 0.5, r"returned shape \(\)"),
        (lambda _: np.zeros((3, 2)), r"returned shape \(3, 2\)"),
        (lambda _: np.zeros((2, 1, 2)), r"returned shape \(2, 1, 2\)"),
        (
            lambda text: words.embed([f"{text}"]),
            r"of a list of 2 texts it returned shape \(1, 64\)",
        ),
        (lambda _: [[1.0, 2.0]], r"of a list of 2 texts it returned shape \(1, 2\)"),
        (lambda given: [1.0, 2.0] * len(given), r"shape \(4,\), and of one .* shape \(12,\)"),
        (lambda given: [*given, [1.0]], "a list of 3 items"),
        (lambda given: {text: [1.0] for text in given}, "a dict of 1 item"),
        (lambda given: ([1.0] for _ in given[1:]), r"returned shape \(1, 1\)"),
        (lambda given: [["1", "2"] for _ in given], "a list of 2 items"),
        (lambda given: [[math.nan, 1.0] for _ in given], "returned NaN"),
        (lambda text: text.upper(), "raised AttributeError, and of one text: it returned a str"),
        (lambda _: [], r"returned shape \(0,\)"),
    ],
)
def test_an_error_says_what_was_returned(given, said):
    with Memory(":memory:", embedder=given, embedding_model="m") as memory:
        with pytest.raises(EmbedderResultError, match=said) as caught:
            memory.add("secret")
        assert "the embedder 'm'" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value, EmbeddingError)
        assert memory.count() == 0


def test_queries_and_documents_are_embedded_apart_with_their_prefixes():
    texts = []

    def embed(several):
        texts.extend(several)
        return words.embed(several)

    given = as_embedder(embed, model="e5", query_prefix="query: ", document_prefix="passage: ")
    with Memory(":memory:", embedder=given) as memory:
        memory.add_many(["tea", "cup"])
        assert texts == ["passage: tea", "passage: cup"]
        texts.clear()
        memory.search("tea")
        assert set(texts) == {"query: tea"}
        texts.clear()
        memory.update(memory.add("sofa").id, content="chair")
        assert texts == ["passage: sofa", "passage: chair"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda memory, _: memory.search("tea"),
        lambda memory, entry: memory.salience(entry.id, query="tea"),
    ],
    ids=["search", "salience"],
)
def test_an_objects_own_queries_are_used(ask):
    class Apart(WordEmbedder):
        def embed_query(self, text):
            return self.embed([f"asked {text}"])[0]

    given = Apart()
    with Memory(":memory:", embedder=given) as memory:
        ask(memory, memory.add("tea"))
        assert given.texts == ["tea", "asked tea"]


def test_encoders_of_documents_and_queries_are_used():
    class Newer(Encoder):
        def __init__(self):
            self.texts = []

        def encode_document(self, texts):
            self.texts.extend(("document", text) for text in texts)
            return words.embed(texts)

        def encode_query(self, texts):
            self.texts.extend(("query", text) for text in texts)
            return words.embed(texts)

    given = Newer()
    with Memory(":memory:", embedder=given) as memory:
        memory.add("tea")
        memory.search("cup")
    assert set(given.texts) == {("document", "tea"), ("query", "cup")}


def test_batches_have_the_size_that_is_named():
    sizes = []

    def embed(texts):
        sizes.append(len(texts))
        return words.embed(texts)

    given = as_embedder(embed, model="m", batch_size=10)
    with Memory(":memory:", embedder=given) as memory:
        memory.add_many([f"text {at}" for at in range(25)])
        assert sizes == [10, 10, 5]
        assert memory.search("text 24", search_type="semantic")[0].content == "text 24"


@pytest.mark.parametrize("on_embed_error", ["raise", "pending"])
def test_a_failing_batch_fails_the_call_or_leaves_all_pending(on_embed_error):
    fails_at = 3

    def embed(texts):
        nonlocal fails_at
        fails_at -= 1
        if not fails_at:
            raise ConnectionError
        return words.embed(texts)

    given = as_embedder(embed, model="m", batch_size=10)
    with Memory(":memory:", embedder=given) as memory:
        texts = [f"text {at}" for at in range(25)]
        if on_embed_error == "raise":
            with pytest.raises(EmbeddingError, match="ConnectionError"):
                memory.add_many(texts)
            assert memory.count() == 0
        else:
            memory.add_many(texts, on_embed_error="pending")
            assert memory.count() == 25
            assert memory.search("text 24", search_type="semantic")[0].content == "text 24"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dimensions": 0}, "dimensions must be an int of at least 1"),
        ({"dimensions": True}, "dimensions must be an int of at least 1"),
        ({"batch_size": 0}, "batch_size must be an int of at least 1"),
        ({"max_tokens": "9"}, "max_tokens must be an int of at least 1"),
        ({"similarity_floor": 2}, "similarity_floor must be a cosine"),
        ({"query_prefix": None}, "query_prefix must be a str"),
        ({"join_calls": 1}, "join_calls must be True or False"),
        ({"model": " "}, "embedding_model"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        as_embedder(one_text, **{"model": "m", **options})


def test_wrong_languages_are_refused_at_opening():
    given = as_embedder(one_text, model="m", languages="en")
    with pytest.raises(InvalidArgumentError, match="languages must be a set"):
        Memory(":memory:", embedder=given)


def test_options_of_an_object_are_its_own_unless_given():
    own = as_embedder(Encoder())
    assert (own.model, own.dimensions, own.max_tokens) == ("words", 64, 64)
    given = as_embedder(
        Encoder(), model="mine", max_tokens=32, similarity_floor=0.3, languages={"de"}
    )
    assert (given.model, given.max_tokens, given.similarity_floor) == ("mine", 32, 0.3)
    assert given.languages == {"de"}
    assert repr(given) == "AdaptedEmbedder(model='mine', dimensions=64)"


def test_a_prefix_takes_its_space_from_the_text():
    seen = []

    class Counting(Encoder):
        max_tokens = 20

        def characters_seen(self, text):
            seen.append(text)
            return min(len(text), 40)

    given = as_embedder(Counting(), document_prefix="passage: ")
    assert given.max_tokens == 20 - 4
    assert given.characters_seen("x" * 100) == 40 - len("passage: ")
    assert seen == ["passage: " + "x" * 100]


def test_errors_of_arguments_are_errors_of_mnemic():
    with pytest.raises(MnemicError):
        as_embedder(7)
