"""Keys and texts appear in no repr, error, pickle or log line, whatever a service echoes."""

import asyncio
import copy
import io
import json
import logging
import pickle
import traceback

import pytest

from mnemic import HttpEmbedder, Memory, as_embedder
from mnemic.errors import EmbeddingError, LanguageModelError
from mnemic.http import redaction
from mnemic.http.redaction import MAX_SHOWN, shown_body
from mnemic.llm import HttpLanguageModel, as_language_model
from tests.support.model_server import KEY

TEXT = "The safe of the bakery opens with 7-1-9-4, said Maya."
HEADER = "team-secret-0123456789"
ECHOES = [
    {"echo": True, "status": 401},
    {"echo": True, "status": 200},
    {"status": 500, "times": 0, "body": f"wrong key {KEY}"},
    {"status": 400, "body": json.dumps({"input": [TEXT], "key": KEY})},
    {"status": 400, "body": f"invalid: {TEXT[:30]}… with key {KEY[:9]}****{KEY[-6:]}"},
    {"status": 422, "body": json.dumps({"detail": [{"input": TEXT.upper().title()[:0] + TEXT}]})},
    {"status": 403, "headers": {"X-Echo": f"Bearer {KEY}", "WWW-Authenticate": KEY}},
    {"status": 307, "headers": {"Location": f"http://127.0.0.1:1/?key={KEY}"}},
    {"body": f"no json {KEY} {TEXT}"},
    {"reply": {"data": KEY, "choices": KEY}},
    {"drop": "midway", "times": 0},
    {"hang": True},
]


@pytest.fixture
def log():
    """All that any library logs."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def models(server):
    options = {
        "base_url": server.url,
        "api_key": KEY,
        "headers": {"X-Team": HEADER},
        "timeout": 0.5,
        "max_retries": 1,
    }
    with HttpEmbedder("m", **options) as embedder, HttpLanguageModel("m", **options) as llm:
        yield embedder, llm


def shows(text):
    """The secrets that a text shows, in parts of six letters and more."""
    secrets = (KEY, HEADER)
    parts = [secret[at : at + 6] for secret in secrets for at in range(len(secret) - 5)]
    return [part for part in (*parts, TEXT[4:24], "7-1-9-4") if part in text]


async def answered(model):
    if isinstance(model, HttpEmbedder):
        return await model.embed([TEXT])
    return await model.complete(TEXT, system=TEXT)


@pytest.mark.parametrize("fault", ECHOES)
@pytest.mark.parametrize("number", [0, 1])
def test_errors_and_log_lines_show_no_key_and_no_text(models, server, log, number, fault):
    server.faults(**fault)
    with pytest.raises((EmbeddingError, LanguageModelError)) as raised:
        asyncio.run(answered(models[number]))
    error = raised.value
    assert error.__cause__ is error.__context__ is None  # which would hold the request
    told = [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    told += [log.getvalue(), repr(pickle.dumps(error)), getattr(error, "body", "")]
    assert not shows("\n".join(told))
    assert "httpcore2.http11" in log.getvalue()  # it was listened to


def test_the_log_of_a_memory_shows_none_either(models, server, log):
    embedder, _ = models
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_many(["warm"], on_embed_error="pending")
        server.faults({"echo": True, "status": 401, "times": 0})
        memory.add_many([TEXT], on_embed_error="pending")
        with pytest.raises(EmbeddingError) as raised:
            memory.search(TEXT, search_type="semantic")
        memory.search(TEXT)
        told = "\n".join((log.getvalue(), repr(raised.value), repr(memory.embedder)))
    assert not shows(told)


def test_reprs_show_the_address_and_no_key(models, server):
    for model in models:
        wrapped = (
            as_embedder(model) if isinstance(model, HttpEmbedder) else as_language_model(model)
        )
        told = f"{model!r} {model!s} {wrapped!r} {model._service!r} {vars(model)!r}"
        assert server.url in told
        assert not shows(told)


@pytest.mark.parametrize("make", [pickle.dumps, copy.deepcopy])
def test_what_has_a_key_cannot_be_copied(models, make):
    for model in (*models, as_language_model(models[1])):
        with pytest.raises(TypeError, match="pickle"):
            make(model)


def test_a_body_is_cut():
    shown = shown_body(b"x" * 100_000, (), ())
    assert len(shown) == MAX_SHOWN + 1
    assert shown_body(b"\xff\x00\x1b[31m<html>\n", (), ()) == "\ufffd [31m<html>"
    assert shown_body(b"", (), ()) == ""


@pytest.mark.parametrize("form", [str, json.dumps, repr, lambda text: json.dumps({"a": [text]})])
@pytest.mark.parametrize(
    "text", [TEXT, "naïve “quoted” text\n\ton two lines \\ é", "四つの長い文がここにある。" * 3]
)
def test_a_body_shows_no_run_of_a_text(form, text):
    for begin in range(len(text) - 20):
        for end in (begin + 20, len(text)):
            shown = shown_body(f"error: {form(text[begin:end])} end".encode(), (), [text])
            assert not any(text[at : at + 10] in shown for at in range(len(text) - 10)), shown
            assert "error" in shown


def test_a_short_text_is_hidden_too_and_a_word_is_not():
    assert shown_body(b"bad input: pin 1234!", (), ["pin 1234"]) == "bad input: […]!"
    assert shown_body(b"bad input: no", (), ["no", "a"]) == "bad input: no"


def test_other_errors_are_shown_as_they_are():
    body = "This model's maximum context length is 8192 tokens"
    assert shown_body(body.encode(), (KEY, "sk"), [TEXT, "tea at noon"]) == body


@pytest.mark.usefixtures("models")
def test_filters_of_log_lines_are_added_once():
    for name in redaction._LOGGERS:
        assert logging.getLogger(name).filters.count(redaction._filter) == 1
    record = logging.LogRecord("httpx2", 10, "", 1, "sent %s to %s", (KEY, 5), None)
    assert redaction._filter.filter(record)
    assert not shows(record.getMessage())
    other = logging.LogRecord("httpx2", 10, "", 1, "sent %s to %s", ("it", 5), None)
    redaction._filter.filter(other)
    assert other.args == ("it", 5)
