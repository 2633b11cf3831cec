"""`HttpEmbedder` against a server process: requests, their size, and failures."""

import asyncio

import numpy as np
import pytest

from mnemic import HttpEmbedder, as_embedder, errors
from tests.support.model_server import KEY


@pytest.fixture
def embedder(server):
    with HttpEmbedder("small", base_url=server.url, api_key=KEY) as made:
        yield made


def refused(embedder, server, *texts, **fault):
    server.faults(**fault)
    with pytest.raises(errors.EmbedderResultError) as raised:
        embedder.embed_sync(list(texts) or ["a", "b", "c"])
    assert len(server.requests()) == 1  # it is not sent again
    return str(raised.value)


@pytest.mark.requirement("T079")
def test_a_request_has_path_key_type_model_and_texts(embedder, server):
    vectors = embedder.embed_sync(["red sofa", "blue chair"])
    (request,) = server.requests()
    assert request["path"] == "/v1/embeddings"
    assert request["headers"]["Authorization"] == f"Bearer {KEY}"
    assert request["headers"]["Content-Type"] == "application/json"
    assert request["body"]["model"] == "small"
    assert request["body"]["input"] == ["red sofa", "blue chair"]
    assert vectors.shape == (2, 64)
    assert vectors.dtype == np.float32
    alone = [embedder.embed_sync([text])[0] for text in ("red sofa", "blue chair")]
    assert np.array_equal(vectors, alone)


@pytest.mark.requirement("T081")
def test_an_error_has_status_and_body(embedder, server):
    server.faults(status=401, body='{"error": "invalid credentials of the account"}')
    with pytest.raises(errors.EmbeddingServiceError, match=r"401.*invalid credentials") as raised:
        embedder.embed_sync(["a"])
    assert raised.value.status == 401
    assert "invalid credentials" in raised.value.body
    assert raised.value.kind == "status 401"


@pytest.mark.requirement("T082")
def test_no_texts_are_no_request(embedder, server):
    assert embedder.embed_sync([]).shape == (0, 0)
    embedder.embed_sync(["a"])
    assert embedder.embed_sync([]).shape == (0, 64)
    assert len(server.requests()) == 1


def test_dimensions_are_requested_and_demanded(server):
    with HttpEmbedder("small", base_url=server.url, dimensions=8) as embedder:
        assert embedder.dimensions == 8
        assert embedder.embed_sync(["a"]).shape == (1, 8)
        assert server.requests()[0]["body"]["dimensions"] == 8
        server.reset()
        reply = {"data": [{"index": 0, "embedding": [1.0] * 9}]}
        assert "9 dimensions in place of 8" in refused(embedder, server, "a", reply=reply)


def test_further_members_and_headers_are_sent(server):
    with HttpEmbedder(
        "small", base_url=server.url, headers={"X-Team": "search"}, extra_body={"truncate": True}
    ) as embedder:
        embedder.embed_sync(["a"])
    (request,) = server.requests()
    assert request["headers"]["X-Team"] == "search"
    assert request["body"]["truncate"] is True
    assert "Authorization" not in request["headers"]


def test_many_texts_are_split_into_requests_some_of_which_run_at_once(server):
    texts = [f"text {number}" for number in range(25)]
    with HttpEmbedder("small", base_url=server.url, batch_size=3) as embedder:
        right = np.concatenate([embedder.embed_sync([text]) for text in texts])
        server.reset()
        server.faults(delay=0.05, times=0)
        assert np.array_equal(embedder.embed_sync(texts), right)
    report = server.report()
    assert (report["embeddings"], report["texts"]) == (9, 25)
    assert 2 <= report["most"] <= 4


def test_one_failing_request_fails_the_call_and_ends_the_others(server):
    server.faults({"status": 400}, {"hang": True, "times": 0})
    with HttpEmbedder("small", base_url=server.url, batch_size=1) as embedder:
        with pytest.raises(errors.EmbeddingServiceError, match="400"):
            embedder.embed_sync(["a", "b", "c", "d"])
        server.until(lambda report: report["running"] == 0)


def test_what_is_no_list_of_texts_is_refused(embedder, server):
    for texts in ("one text", [1], ["\ud800"], None):
        with pytest.raises(errors.InvalidArgumentError):
            embedder.embed_sync(texts)
    assert server.requests() == []


def test_any_text_comes_to_the_service_unchanged(embedder, server):
    texts = ["", " ", "\0", "line\nline", "\U0001f600 é \u2028", '"quoted" \\', "x" * 100_000]
    assert len(embedder.embed_sync(texts)) == len(texts)
    assert server.requests()[0]["body"]["input"] == texts


def test_prefixes_of_documents_and_queries(server):
    with HttpEmbedder("small", base_url=server.url) as embedder:
        adapted = as_embedder(embedder, query_prefix="query: ", document_prefix="passage: ")

        async def both():
            await adapted.embed(["tea"])
            await adapted.embed_queries(["tea"])

        asyncio.run(both())
    assert [each["body"]["input"] for each in server.requests()] == [
        ["passage: tea"],
        ["query: tea"],
    ]


def test_a_closed_embedder_is_refused(server):
    embedder = HttpEmbedder("small", base_url=server.url)
    embedder.embed_sync(["a"])
    for _ in range(2):
        embedder.close()
        asyncio.run(embedder.aclose())
    with pytest.raises(errors.EmbeddingError, match="closed"):
        asyncio.run(embedder.embed(["a"]))
    assert len(server.requests()) == 1
