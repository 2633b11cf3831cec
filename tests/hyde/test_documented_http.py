"""Embedders and language models over HTTP: the documented requests, answers and errors."""

import asyncio
import inspect
import threading

import numpy as np
import pytest

from mnemic import HttpEmbedder, Memory
from mnemic.errors import EmbeddingError, MnemicError
from mnemic.llm import HttpLanguageModel
from tests.support.scripted_server import Answer, counted, scripted, vectors

KEY = "sk-very-secret"
NAMES = ("OPENAI_API_KEY", "EMBEDDING_API_KEY", "OPENAI_BASE_URL", "EMBEDDING_BASE_URL")


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Leave no key and no address in the environment."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def embedded(embedder, texts):
    """Return the vectors of texts, and close the embedder."""

    async def main():
        try:
            result = embedder.embed(texts)
            return await result if inspect.isawaitable(result) else result
        finally:
            await embedder.aclose()

    return asyncio.run(main())


def completed(model, prompt, system=None):
    """Return the answer to a prompt, and close the model."""

    async def main():
        try:
            return await model.complete(prompt, system=system)
        finally:
            await model.aclose()

    return asyncio.run(main())


def embed(server, *texts, **options):
    """Return the vectors of texts by a server."""
    given = {"base_url": server.url, "api_key": KEY, **options}
    return embedded(HttpEmbedder("m", **given), list(texts))


def chat(text):
    """Return a body of the protocol with one answer."""
    message = {"role": "assistant", "content": text}
    return {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}


@pytest.mark.requirement("T077", "R381", "R351")
def test_the_embedder_has_the_name_of_its_model():
    assert HttpEmbedder("a-model", base_url="http://127.0.0.1:1/v1", api_key=KEY).model == "a-model"


@pytest.mark.requirement("T078")
def test_the_key_and_the_address_may_be_given():
    with scripted() as server:
        embed(server, "a")
        assert server.sent[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.requirement("T078")
@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "EMBEDDING_BASE_URL"])
def test_the_key_and_the_address_come_from_the_environment(monkeypatch, name):
    with scripted() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv(name, server.url)
        embedded(HttpEmbedder("m"), ["a"])
        assert server.sent[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.requirement("T078")
def test_the_embedders_own_address_goes_before_the_general_one(monkeypatch):
    with scripted() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        monkeypatch.setenv("EMBEDDING_BASE_URL", server.url)
        embedded(HttpEmbedder("m", api_key=KEY), ["a"])
        assert len(server.sent) == 1


@pytest.mark.requirement("T078")
@pytest.mark.parametrize("kind", [HttpEmbedder, HttpLanguageModel])
def test_a_missing_key_is_an_error(kind):
    with pytest.raises(MnemicError, match="API key required"):
        use(kind("m"))


@pytest.mark.requirement("T078")
@pytest.mark.parametrize("kind", [HttpEmbedder, HttpLanguageModel])
def test_a_missing_model_is_an_error(kind):
    with pytest.raises(MnemicError, match="model name must not be empty"):
        use(kind("", api_key=KEY))


def use(made):
    return completed(made, "a") if isinstance(made, HttpLanguageModel) else embedded(made, ["a"])


@pytest.mark.requirement("T079")
def test_one_request_has_all_inputs_and_its_vectors_come_in_order():
    with scripted(vectors([1, 0], [0, 1])) as server:
        found = embed(server, "first", "second")
        (sent,) = server.sent
    assert sent.path == "/v1/embeddings"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"].startswith("application/json")
    assert sent.body["model"] == "m"
    assert sent.body["input"] == ["first", "second"]
    assert np.asarray(found).tolist() == [[1, 0], [0, 1]]


@pytest.mark.requirement("T080")
def test_vectors_out_of_order_are_put_in_order():
    with scripted(vectors([3, 4], [0, 5], [5, 0], indexes=[2, 0, 1])) as server:
        found = np.asarray(embed(server, "a", "b", "c"), np.float64)
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    assert units == pytest.approx(np.array([[0, 1], [1, 0], [0.6, 0.8]]), abs=1e-6)


@pytest.mark.requirement("T081")
def test_a_refusal_is_an_error_with_status_and_body_and_without_the_key():
    body = '{"error": "no such key: ' + KEY + '"}'
    with scripted(Answer(body, 401)) as server:
        with pytest.raises(EmbeddingError) as caught:
            embed(server, "a")
        assert len(server.sent) == 1
    assert "401" in str(caught.value)
    assert "no such key" in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.requirement("T082")
def test_no_texts_make_no_request():
    with scripted() as server:
        found = embed(server)
        assert server.sent == []
    assert found is None or len(found) == 0


@pytest.mark.requirement("T083")
@pytest.mark.parametrize("body", ["", "{", "not json", "\x00", '"text"', "[]", "7", "null"])
def test_a_malformed_answer_is_an_error(body):
    with scripted(body) as server, pytest.raises(EmbeddingError, match="decode response"):
        embed(server, "a", max_retries=0)


WRONG = {
    "too few": vectors([1, 0]),
    "too many": vectors([1, 0], [1, 0], [1, 0]),
    "none": vectors(),
    "beyond": vectors([1, 0], [1, 0], indexes=[0, 2]),
    "negative": vectors([1, 0], [1, 0], indexes=[0, -1]),
    "twice": vectors([1, 0], [1, 0], indexes=[1, 1]),
    "index of text": vectors([1, 0], [1, 0], indexes=["0", "1"]),
    "index of a flag": vectors([1, 0], [1, 0], indexes=[False, True]),
    "no vector": {"data": [{"index": 0}, {"index": 1, "embedding": [1, 0]}]},
    "null vector": {"data": [{"index": 0, "embedding": None}] * 2},
    "text in a vector": vectors(["a", 0], [1, 0]),
    "no data": {"object": "list"},
    "two lengths": vectors([1, 0], [1]),
}


@pytest.mark.requirement("T084")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_an_error_and_never_vectors_of_other_texts(wrong):
    with scripted(WRONG[wrong]) as server, pytest.raises(EmbeddingError):
        embed(server, "a", "b", max_retries=0)


@pytest.mark.requirement("T084")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_an_error(number):
    body = f'{{"data": [{{"index": 0, "embedding": [1, {number}]}}]}}'
    with scripted(body) as server, pytest.raises(EmbeddingError):
        embed(server, "a", max_retries=0)


@pytest.mark.requirement("T086")
def test_an_overloaded_server_is_asked_once_more():
    with scripted(Answer("busy", 503), Answer(counted)) as server:
        found = embed(server, "a")
        assert len(server.sent) == 2
        assert server.sent[0].body == server.sent[1].body
    assert len(found) == 1


@pytest.mark.requirement("T086")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_wrong_request_is_not_sent_again(status):
    with scripted(Answer("wrong", status)) as server:
        with pytest.raises(EmbeddingError, match=str(status)):
            embed(server, "a")
        assert len(server.sent) == 1


@pytest.mark.requirement("T086")
def test_a_server_that_stays_overloaded_is_an_error_after_the_retries():
    with scripted(Answer("busy", 503, {"Retry-After": "0"})) as server:
        with pytest.raises(EmbeddingError, match="503"):
            embed(server, "a", max_retries=1)
        assert len(server.sent) == 2


@pytest.mark.requirement("T086")
def test_a_slow_server_is_a_time_out_error_with_the_limit():
    gate = threading.Event()
    with scripted(Answer(counted, gate=gate)) as server:
        with pytest.raises(EmbeddingError, match=r"0\.2|200"):
            embed(server, "a", timeout=0.2, max_retries=0)
        gate.set()


@pytest.mark.requirement("T079", "T086")
def test_a_language_model_gets_one_request_and_its_answer_comes_back():
    with scripted(Answer("busy", 503), chat("the port is 80")) as server:
        model = HttpLanguageModel("m", base_url=server.url, api_key=KEY)
        assert completed(model, "which port?", "be brief") == "the port is 80"
        _, sent = server.sent
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["model"] == "m"
    assert sent.body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "which port?"},
    ]


@pytest.mark.requirement("T083", "T081")
@pytest.mark.parametrize(
    "answer",
    [
        Answer("no", 401),
        Answer("{"),
        Answer({}),
        Answer({"choices": []}),
        Answer({"choices": [{}]}),
        Answer({"choices": [{"message": {"content": None}}]}),
        Answer({"choices": [{"message": {"content": 7}}]}),
        Answer("[]"),
    ],
)
def test_a_language_models_wrong_answers_are_typed_errors(answer):
    with scripted(answer) as server:
        model = HttpLanguageModel("m", base_url=server.url, api_key=KEY, max_retries=0)
        with pytest.raises(MnemicError) as caught:
            completed(model, "which port?")
    assert KEY not in str(caught.value)


@pytest.mark.requirement("T078")
def test_the_key_shows_in_no_repr():
    for kind in (HttpEmbedder, HttpLanguageModel):
        made = kind("m", base_url="http://127.0.0.1:1/v1", api_key=KEY)
        assert KEY not in repr(made)
        assert KEY not in str(made)


@pytest.mark.requirement("T079", "R385")
def test_a_memory_over_http_is_searched_as_any_other():
    with scripted() as server:
        embedder = HttpEmbedder("m", base_url=server.url, api_key=KEY)
        with Memory(":memory:", embedder=embedder) as memory:
            memory.add_many(["a", "bb", "ccc"])
            assert len(memory.search("bb", limit=3)) == 3
        embedder.close()
