"""The vectors in a response of `/embeddings`: put in order, or refused."""

import numpy as np
import pytest

from mnemic import HttpEmbedder
from mnemic.errors import EmbedderResultError
from tests.support.model_server import KEY, NOT_UTF8


@pytest.fixture
def embedder(server):
    with HttpEmbedder("small", base_url=server.url, api_key=KEY) as made:
        yield made


def refused(embedder, server, *texts, **fault):
    server.faults(**fault)
    with pytest.raises(EmbedderResultError) as raised:
        embedder.embed_sync(list(texts) or ["a", "b", "c"])
    assert len(server.requests()) == 1  # it is not sent again
    return str(raised.value)


@pytest.mark.requirement("T080")
def test_vectors_out_of_order_are_put_in_order(embedder, server):
    texts = [f"text {number}" for number in range(20)]
    right = embedder.embed_sync(texts)
    server.faults(shuffled=True)
    assert np.array_equal(embedder.embed_sync(texts), right)


def item(number, **index):
    return {"embedding": [float(number), 1.0], **index}


LEFT_OUT = {
    "all": [item(0), item(1), item(2)],
    "all but null": [item(0, index=None), item(1, index=None), item(2, index=None)],
    "that of 0": [item(0), item(1, index=1), item(2, index=2)],
    "that of 0, out of order": [item(2, index=2), item(0), item(1, index=1)],
    "null for 0": [item(0, index=None), item(2, index=2), item(1, index=1)],
    "that of one text": [item(0)],
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_service_may_leave_out_an_index_of_0_or_all_indexes(embedder, server, kind):
    items = LEFT_OUT[kind]
    server.faults(reply={"data": items})
    found = embedder.embed_sync(["text"] * len(items))
    assert found[:, 0].tolist() == list(range(len(items)))


@pytest.mark.requirement("T083")
@pytest.mark.parametrize(
    "fault",
    [
        {"malformed": True},
        {"body": ""},
        {"body": "<html>"},
        {"body": "null"},
        {"body": NOT_UTF8},
        {"body": "[" * 100_000},
        {"reply": []},
        {"reply": {"data": {}}},
        {"reply": {"data": [{"index": 0}]}},
        {"reply": {"data": [{"index": 0, "embedding": [None]}]}},
        {"reply": {"data": [{"index": "0", "embedding": [1.0]}]}},
        {"reply": {"data": [{"index": 0, "embedding": "no base64!"}]}},
        {"reply": {"data": [{"index": 0, "embedding": "YWI="}]}},
        {"number": "NaN"},
        {"number": "Infinity"},
    ],
)
def test_a_response_that_is_no_json_of_the_protocol_is_refused(embedder, server, fault):
    assert refused(embedder, server, "a", **fault).startswith("decode response")


@pytest.mark.requirement("T084")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"wrong_count": True}, "2 vectors for 3 texts"),
        ({"wrong_index": True}, "index 3, which is out of range"),
        ({"duplicate_index": True}, "index 0 twice"),
        ({"reply": {"data": [item(0), item(1), item(2, index=2)]}}, "2 vectors without an index"),
        ({"reply": {"data": [item(0), item(1, index=0), item(2, index=2)]}}, "index 0 twice"),
        ({"reply": {"data": [{"index": -1, "embedding": [1]}] * 3}}, "index -1"),
        ({"reply": {"data": []}}, "0 vectors for 3 texts"),
        ({"number": 1e39}, "NaN or infinity"),
        ({"reply": {"data": [{"index": at, "embedding": []} for at in range(3)]}}, "lengths"),
        (
            {"reply": {"data": [{"index": at, "embedding": [1] * (at + 1)} for at in range(3)]}},
            r"different lengths: [1, 2, 3]",
        ),
    ],
)
def test_wrong_vectors_and_indexes_are_refused(embedder, server, fault, message):
    assert message in refused(embedder, server, **fault)


def test_vectors_of_another_length_than_the_known_one_are_refused(embedder, server):
    assert embedder.dimensions is None
    embedder.embed_sync(["a"])
    assert embedder.dimensions == 64
    server.reset()
    reply = {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}
    assert "2 dimensions in place of 64" in refused(embedder, server, "a", reply=reply)


def test_vectors_in_base64_are_the_same(embedder, server):
    options = {"base_url": server.url, "extra_body": {"encoding_format": "base64"}}
    with HttpEmbedder("small", **options) as packed:
        texts = ["red sofa", "blue chair"]
        assert np.array_equal(packed.embed_sync(texts), embedder.embed_sync(texts))
    assert server.requests()[0]["body"]["encoding_format"] == "base64"


def test_vectors_are_as_the_service_has_them(embedder, server):
    server.faults(reply={"data": [{"index": 0, "embedding": [3, 4]}]})
    assert embedder.embed_sync(["a"]).tolist() == [[3, 4]]
