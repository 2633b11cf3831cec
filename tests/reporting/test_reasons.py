import errno
import os
import socket
import ssl
import urllib.error

import pytest

from mnemic import Memory
from mnemic.errors import EmbeddingError
from mnemic.reporting.reasons import reason_of


class StatusError(Exception):
    def __init__(self, text, **named):
        super().__init__(text)
        vars(self).update(named)


class Response:
    status_code = 403


class BrokenError(Exception):
    """Every attribute and the text of it fail."""

    @property
    def response(self):
        raise ValueError

    def __str__(self):
        raise ValueError


def chained(outer, inner, *, is_cause=True):
    if is_cause:
        outer.__cause__ = inner
    else:
        outer.__context__ = inner
    return outer


class PoolTimeout(Exception):  # noqa: N818 - as httpx names it
    pass


REASONS = {
    "a number of the system": (OSError(errno.EHOSTUNREACH, "zqsecret"), "No route to host"),
    "the system's words in a text": (
        ConnectionError("zq [Errno 113] no route to host"),
        "No route",
    ),
    "a refused connection": (ConnectionRefusedError(111, "zqsecret"), "Connection refused"),
    "a file": (FileNotFoundError(2, "zqsecret", "zqsecret"), "No such file or directory"),
    "the innermost": (
        chained(
            RuntimeError("zqsecret"), chained(ValueError("zqsecret"), BrokenPipeError(32, "x"))
        ),
        "Broken pipe",
    ),
    "what was being handled": (
        chained(RuntimeError("zqsecret"), OSError(errno.ECONNRESET, ""), is_cause=False),
        "Connection reset by peer",
    ),
    "one of several": (
        ExceptionGroup("zqsecret", [OSError(errno.ECONNREFUSED, "")]),
        "Connection refused",
    ),
    "openai and httpx": (StatusError("zqsecret", status_code=401), "the service answered 401"),
    "requests": (StatusError("zqsecret", response=Response()), "the service answered 403"),
    "aiohttp": (StatusError("zqsecret", status=429), "the service answered 429"),
    "urllib": (
        urllib.error.HTTPError("http://zqsecret", 503, "zqsecret", None, None),
        "the service answered 503",
    ),
    "a name": (socket.gaierror(-2, "zqsecret"), "the name of the server is not known"),
    "a certificate": (ssl.SSLCertVerificationError("zqsecret"), "the certificate of the server"),
    "time": (TimeoutError("zqsecret"), "it was not done in time"),
    "time of a library": (PoolTimeout("zqsecret"), "it was not done in time"),
    "memory": (MemoryError("zqsecret"), "out of memory"),
    "a module": (ModuleNotFoundError("zqsecret", name="torch"), "there is no module 'torch'"),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_is_in_words_of_the_system_alone(name):
    error, wanted = REASONS[name]
    reason = reason_of(error)
    assert reason.text.startswith(wanted)
    assert reason.advice
    assert "zq" not in " ".join(reason)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("peanuts"),
        ValueError("cannot embed: I am allergic to peanuts"),
        StatusError("zqsecret", status="zqsecret", code=7),
        OSError("zqsecret"),
        OSError(10**6, "zqsecret"),
        BrokenError(),
    ],
)
def test_what_may_quote_a_memory_gives_no_reason(error):
    assert reason_of(error) is None


def test_errors_in_a_circle_end():
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert reason_of(first) is None


def failure_of(error):
    def embed(_):
        raise error

    memory = Memory(":memory:", embedder=embed, embedding_model="mine")
    with memory, pytest.raises(EmbeddingError) as caught:
        memory.add("Ana lives in Oslo")
    return caught.value


def test_the_message_of_a_failed_embedder_has_reason_and_advice():
    failed = failure_of(ConnectionError("no route to host"))
    assert failed.kind.startswith("ConnectionError at test_reasons.py:")
    assert str(failed) == (
        f"the embedder 'mine' failed: {failed.kind}: {os.strerror(errno.EHOSTUNREACH)}; see that "
        "the service runs and can be reached from here"
    )


def test_a_message_that_is_not_shown_is_told_how_to_be_seen():
    failed = str(failure_of(KeyError("Oslo")))
    assert failed.endswith("is not shown: call it with a text to see it")
    assert "Oslo" not in failed
