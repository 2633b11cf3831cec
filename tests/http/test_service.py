"""Addresses and keys: from arguments, from the environment, and refused."""

import sys

import pytest

from mnemic import HttpEmbedder
from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.http import CHAT, EMBEDDINGS, Service
from mnemic.llm import HttpLanguageModel
from tests.support.model_server import KEY

VARIABLES = ("EMBEDDING_BASE_URL", "OPENAI_BASE_URL", "EMBEDDING_API_KEY", "OPENAI_API_KEY")
KINDS = (HttpEmbedder, HttpLanguageModel)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def service(base_url=None, api_key=None, headers=None, variables=EMBEDDINGS):
    return Service(base_url, api_key, headers, variables)


def bearer(made):
    return made.headers.get("Authorization")


@pytest.mark.requirement("T078")
def test_address_and_key_of_arguments():
    made = service("http://localhost:1234/v1/", KEY)
    assert (made.base_url, bearer(made)) == ("http://localhost:1234/v1", f"Bearer {KEY}")


@pytest.mark.requirement("T078")
def test_address_and_key_of_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-general\n")
    for variables in (CHAT, EMBEDDINGS):
        made = service(variables=variables)
        assert (made.base_url, bearer(made)) == ("http://localhost:1/v1", "Bearer sk-general")
    monkeypatch.setenv("EMBEDDING_BASE_URL", "http://localhost:2/v1")
    monkeypatch.setenv("EMBEDDING_API_KEY", "sk-embedding")
    made = service()
    assert (made.base_url, bearer(made)) == ("http://localhost:2/v1", "Bearer sk-embedding")
    made = service(variables=CHAT)
    assert (made.base_url, bearer(made)) == ("http://localhost:1/v1", "Bearer sk-general")
    made = service("http://localhost:3/v1", "sk-argument")
    assert (made.base_url, bearer(made)) == ("http://localhost:3/v1", "Bearer sk-argument")


def test_the_environment_as_the_objects_read_it(monkeypatch, server):
    monkeypatch.setenv("EMBEDDING_BASE_URL", server.url)
    monkeypatch.setenv("EMBEDDING_API_KEY", KEY)
    with HttpEmbedder("m") as embedder:
        embedder.embed_sync(["a"])
    assert server.requests()[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    with pytest.raises(InvalidArgumentError, match="API key required"):
        HttpLanguageModel("m")


@pytest.mark.requirement("T078")
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_key_is_an_error_for_the_default_address_alone(kind, monkeypatch):
    for blank in ("", "  "):
        monkeypatch.setenv("OPENAI_API_KEY", blank)
        with pytest.raises(InvalidArgumentError, match="API key required"):
            kind("m")
    kind("m", base_url="http://localhost:1").close()
    kind("m", headers={"authorization": "Bearer other"}).close()
    with pytest.raises(InvalidArgumentError, match="API key required"):
        kind("m", base_url="https://api.openai.com/v1/", api_key="")


def test_an_empty_key_keeps_the_environments_key_at_home(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = service("http://localhost:1", "")
    assert (bearer(made), made.secrets) == (None, ())


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://localhost",
        "http://",
        "http://localhost:99999",
        "http://localhost:port",
        "http://localhost:0",
        "http://local host",
        "http://localhost/\nX",
        "file:///etc/passwd",
        "http://[::1",
        "http://" + "a" * 3000,
        b"http://localhost",
        1,
    ],
)
def test_an_invalid_address_is_refused(url):
    with pytest.raises(InvalidArgumentError, match="base_url"):
        service(url, KEY)


@pytest.mark.parametrize(
    "url", [f"http://user:{KEY}@localhost", f"http://localhost?key={KEY}", f"http://a/#{KEY}"]
)
def test_an_address_with_a_secret_is_refused_and_not_quoted(url):
    with pytest.raises(InvalidArgumentError, match="api_key=") as raised:
        service(url)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "key", [f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}é", KEY * 500, 5, KEY.encode()]
)
def test_an_invalid_key_is_refused_and_not_quoted(key):
    with pytest.raises(InvalidArgumentError, match="api_key") as raised:
        service("http://localhost", key)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "headers",
    [
        {"X Y": KEY},
        {"X-Y": f"{KEY}\r\nHost: evil"},
        {"X-Y": ""},
        {"Host": "evil"},
        {"content-length": "5"},
        {"X-Y": 5},
        {5: KEY},
        [("X-Y", KEY)],
        KEY,
    ],
)
def test_invalid_headers_are_refused_and_not_quoted(headers):
    with pytest.raises(InvalidArgumentError, match="headers") as raised:
        service("http://localhost", None, headers)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("missing", ["httpx2", "tenacity"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_package_is_named_with_its_extra(kind, missing, monkeypatch):
    for name in ("transport", "clients", "retries"):
        monkeypatch.delitem(sys.modules, f"mnemic.http.{name}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"mnemic\[http\]"):
        kind("m", base_url="http://localhost:1")


@pytest.mark.parametrize("ending", ["/embeddings", "/embeddings/", "/chat/completions"])
def test_an_address_with_the_part_that_requests_add_is_told_without_it(ending):
    with pytest.raises(InvalidArgumentError, match=r"http://localhost:11434/v1$"):
        HttpEmbedder("m", base_url=f"http://localhost:11434/v1{ending}")
    HttpEmbedder("m", base_url="http://localhost:11434/embeddings/v1").close()
