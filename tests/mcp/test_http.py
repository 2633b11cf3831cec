"""The server over streamable HTTP: who is answered, and who is refused."""

import asyncio
import contextlib
import http.client
import os
import re
import subprocess
import sys

import pytest

from tests.mcp.clients import http_client, run, structured

TOKEN = "a token of the tests"  # noqa: S105 - of these servers alone
LIST = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


@contextlib.contextmanager
def served(path, **environment):
    """A server over HTTP; gives its address and what it printed."""
    command = [sys.executable, "-m", "mnemic.cli", "mcp", "--http", "--port", "0"]
    command += ["--db", str(path), "--user", "ana"]
    variables = {**os.environ, **environment}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as server:
        try:
            lines = [server.stderr.readline()]
            if "MNEMIC_MCP_TOKEN" not in environment:
                lines.append(server.stderr.readline())
            yield re.search(r"http://\S+", lines[0])[0], lines
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(tmp_path_factory.mktemp("http") / "m.db", MNEMIC_MCP_TOKEN=TOKEN) as (address, _):
        yield address


def status(url, **headers):
    """The answer to one request with these headers."""
    port = int(re.search(r":(\d+)/", url)[1])
    sent = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    sent.update({name.replace("_", "-"): value for name, value in headers.items()})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/mcp", LIST, sent)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@run
async def test_a_client_with_the_token_is_answered(url):
    async with http_client(url, TOKEN) as client:
        stored = await structured(client, "remember", text="Ana lives in Oslo")
        found = await structured(client, "recall", query="Oslo")
        assert [one["id"] for one in found["memories"]] == [stored["id"]]


@run
async def test_clients_at_once_are_all_answered(url):
    async def stores(number):
        async with http_client(url, TOKEN) as client:
            stored = await structured(client, "remember", text=f"client {number} was here")
            read = await structured(client, "read", ids=[stored["id"]])
            return read["memories"][0]["content"]

    said = await asyncio.gather(*map(stores, range(8)))
    assert said == [f"client {number} was here" for number in range(8)]


@pytest.mark.parametrize("given", ["", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}"])
def test_another_token_is_refused(url, given):
    assert status(url, Authorization=given) == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "0.0.0.0:80"])
def test_another_host_is_refused(url, host):
    assert status(url, Host=host) == 421


def test_a_page_of_another_origin_is_refused(url):
    assert status(url, Origin="https://evil.example") == 403


def test_it_listens_on_this_computer_alone(url):
    assert url.startswith("http://127.0.0.1:")


def test_without_a_token_one_is_made_and_printed_once(tmp_path):
    with served(tmp_path / "m.db") as (address, lines):
        made = re.search(r"Bearer (\S+)", lines[1])[1]
        assert len(made) > 40
        assert status(address, Authorization=f"Bearer {made}") != 401
        assert status(address) == 401
