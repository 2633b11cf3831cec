"""Services that send too much, redirect, or answer through a proxy."""

import asyncio
import gzip
import logging
import socket
import threading
import traceback

import pytest

from mnemic import HttpEmbedder, errors
from mnemic.http import transport
from mnemic.llm import HttpLanguageModel
from tests.support.model_server import KEY


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(transport, "MAX_RESPONSE", 10_000)


@pytest.mark.usefixtures("small")
def test_a_response_with_too_many_bytes_is_refused(server):
    with HttpEmbedder("m", base_url=server.url) as embedder:
        embedder.embed_sync(["a"])
        server.faults(padding=10_000)
        with pytest.raises(errors.EmbedderResultError, match="more than 10000 bytes"):
            embedder.embed_sync(["a"])
        server.faults(padding=5_000)
        assert embedder.embed_sync(["a"]).shape == (1, 64)


def failure(url, kind, message=None, **options):
    """The error of a call."""
    embedder = HttpEmbedder("m", base_url=url, **options)
    with embedder, pytest.raises(kind, match=message) as raised:
        embedder.embed_sync(["a"])
    return raised.value


def raw_server(respond):
    """The address of a server that answers each connection with bytes, until it is left."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                try:
                    for part in respond():
                        connection.sendall(part)
                except OSError:
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/v1", thread


def endless(head):
    yield head
    while True:
        yield b"x" * 65536


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    ],
)
def test_an_endless_response_is_left(head):
    url, thread = raw_server(lambda: endless(head))

    async def scenario():
        async with HttpLanguageModel("m", base_url=url) as llm:
            with pytest.raises(errors.LanguageModelResultError, match="bytes"):
                await llm.complete("a")

    asyncio.run(scenario())
    thread.join(20)
    assert not thread.is_alive()  # the connection was closed


def test_an_endless_error_is_cut():
    url, thread = raw_server(lambda: endless(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    error = failure(url, errors.EmbeddingServiceError)
    thread.join(20)
    assert error.status == 400
    assert len(str(error)) < 1000


@pytest.mark.usefixtures("small")
def test_a_compressed_response_is_bounded_by_what_it_holds():
    packed = gzip.compress(b"[" * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    url, thread = raw_server(lambda: [head, packed])
    failure(url, errors.EmbedderResultError, "bytes")
    thread.join(20)


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000,
    ],
)
def test_what_is_no_http_is_an_error_of_the_service(response):
    url, thread = raw_server(lambda: [response])
    error = failure(url, errors.EmbeddingServiceError, "cannot be reached", max_retries=0)
    thread.join(20)
    assert error.status is None


def test_a_redirect_is_not_followed_and_the_key_stays(server):
    url, thread = raw_server(
        lambda: [
            b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: "
            + server.url.encode()
            + b"/embeddings\r\n\r\n"
        ]
    )
    error = failure(url, errors.EmbeddingServiceError, "redirects are not followed", api_key=KEY)
    thread.join(20)
    assert error.status == 307
    assert server.requests() == []


def test_the_proxy_of_the_environment_is_used(server, monkeypatch):
    for name in ("NO_PROXY", "no_proxy", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.root)
    failure(
        "http://models.invalid/v1", errors.EmbeddingServiceError, "404"
    )  # the server is no proxy
    assert [each["path"] for each in server.requests()] == ["http://models.invalid/v1/embeddings"]


def test_a_server_that_comes_back_is_used_again():
    body = b'{"data": [{"index": 0, "embedding": [1.0]}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    listener = socket.create_server(("127.0.0.1", 0))
    served = []

    def serve():  # each connection gives one response, and is closed without a word
        for _ in range(3):
            connection, _ = listener.accept()
            with connection:
                served.append(connection.recv(65536))
                connection.sendall(head + body)

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    with listener, HttpEmbedder("m", base_url=url) as embedder:
        for _ in range(3):
            assert embedder.embed_sync(["a"]).tolist() == [[1.0]]
        thread.join(20)
    assert len(served) == 3


SAID = "the safe opens with 7194"
STATUS_LINES = {
    "a status": f"HTTP/1.1 500 {SAID}\r\nContent-Length: 0\r\nX-Echo: {SAID}\r\n\r\n",
    "no number": f"HTTP/1.1 {SAID}\r\n\r\n",
    "a long number": f"HTTP/1.1 50000 {SAID}\r\n\r\n",
    "no HTTP": f"{SAID}\r\n\r\n",
    "a header": f"HTTP/1.1 200 OK\r\n{SAID}\r\n\r\n",
    "a length": f"HTTP/1.1 200 OK\r\nContent-Length: {SAID}\r\n\r\n",
    "a coding": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {SAID}\r\n\r\n",
    "a chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{SAID}\r\n",
    "a redirect": f"HTTP/1.1 302 {SAID}\r\nLocation: http://{SAID}/\r\n\r\n",
    "a good one": f"HTTP/1.1 200 {SAID}\r\nX-Echo: {SAID}\r\nContent-Length: 2\r\n\r\n{{}}",
}


@pytest.mark.parametrize("kind", STATUS_LINES)
def test_what_a_service_says_in_its_head_is_in_no_error_and_in_no_log(kind, caplog):
    caplog.set_level(logging.DEBUG)
    url, thread = raw_server(lambda: [STATUS_LINES[kind].encode()])
    error = failure(url, errors.EmbeddingError, max_retries=0)
    thread.join(20)
    shown = "".join(traceback.format_exception(error)) + caplog.text
    assert "safe" not in shown
    assert "7194" not in shown
    assert "HTTP Request: POST" in caplog.text or error.status is None


def test_a_proxy_that_refuses_is_not_quoted(caplog):
    caplog.set_level(logging.DEBUG)
    url, thread = raw_server(lambda: [f"HTTP/1.1 407 {SAID}\r\nContent-Length: 0\r\n\r\n".encode()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", url.removesuffix("/v1"))
        error = failure("https://models.example/v1", errors.EmbeddingServiceError, max_retries=0)
    thread.join(20)
    assert "7194" not in "".join(traceback.format_exception(error)) + caplog.text


def test_log_lines_of_other_requests_stay_as_they_are(caplog):
    caplog.set_level(logging.INFO, "httpx2")
    logging.getLogger("httpx2").info('HTTP Request: %s "%s %d %s"', "GET", "HTTP/1.1", 200, "Fine")
    assert 'HTTP/1.1 200 Fine"' in caplog.text
