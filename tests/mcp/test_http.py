"""The server over streamable HTTP: who is answered, and who is refused."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys

import pytest

from tests.mcp.clients import http_client, run, structured

TOKEN = "a token of the tests"  # noqa: S105 - of these servers alone
LIST = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"


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
            lines += server.stderr


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(tmp_path_factory.mktemp("http") / "m.db", MNEMIC_MCP_TOKEN=TOKEN) as (address, _):
        yield address


def status(url, **headers):
    """The status of the answer to one request with these headers."""
    return asked(url, LIST, **headers)[0]


def asked(url, body, method="POST", **headers):
    """The status and the body of the answer to one request."""
    port = int(re.search(r":(\d+)/", url)[1])
    sent = {
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    sent.update({name.replace("_", "-"): value for name, value in headers.items()})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, "/mcp", body, sent)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return answer.status, said


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


def message(method, params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def opening(version):
    client = {"name": "test", "version": "1"}
    return message(
        "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    )


@pytest.mark.parametrize("version", HANDSHAKES)
def test_each_version_with_a_handshake_is_spoken(url, version):
    code, said = asked(url, opening(version))
    assert code == 200
    assert json.loads(said)["result"]["protocolVersion"] == version


@pytest.mark.parametrize("version", ["1999-01-01", "", "latest"])
def test_an_unknown_version_is_answered_with_one_that_is_spoken(url, version):
    _, said = asked(url, opening(version))
    assert json.loads(said)["result"]["protocolVersion"] in HANDSHAKES


def modern(version):
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}}
    return message("server/discover", {"_meta": meta})


def test_the_version_without_a_handshake_is_spoken(url):
    headers = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": "server/discover"}
    code, said = asked(url, modern(MODERN), **headers)
    assert code == 200
    assert "recall" in json.loads(said)["result"]["instructions"]
    headers["Mcp_Protocol_Version"] = "2099-01-01"
    code, said = asked(url, modern("2099-01-01"), **headers)
    assert code == 400
    assert json.loads(said)["error"]["data"]["supported"] == [MODERN]


@pytest.mark.parametrize(
    ("code", "method", "body", "headers"),
    [
        (400, "POST", b"", {}),
        (400, "POST", b"\xff\xfe{", {}),
        (400, "POST", b"[" * 200_000, {}),
        (400, "POST", f"[{LIST}, {LIST}]", {}),
        (400, "POST", LIST, {}),
        (400, "POST", opening(HANDSHAKES[-1]), {"Content_Type": "text/plain"}),
        (404, "POST", LIST, {"Mcp_Session_Id": "another"}),
        (404, "DELETE", b"", {"Mcp_Session_Id": "a" * 5000}),
        (405, "HEAD", b"", {}),
        (405, "OPTIONS", b"", {}),
        (405, "PUT", LIST, {}),
        (406, "POST", LIST, {"Accept": "text/html"}),
        (413, "POST", b"x" * 10_000_000, {}),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_one_answered(url, code, method, body, headers):
    assert asked(url, body, method, **headers)[0] == code
    assert asked(url, opening(HANDSHAKES[-1]))[0] == 200


def test_clients_that_leave_early_hold_up_nobody_and_leave_no_trace(tmp_path):
    with served(tmp_path / "m.db", MNEMIC_MCP_TOKEN=TOKEN) as (address, lines):
        port = int(re.search(r":(\d+)/", address)[1])
        begun = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Type: application/json\r\nAccept: */*\r\nContent-Length: 100\r\n\r\n{"
        )
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        for client in clients:
            client.sendall(begun.encode())
        assert asked(address, opening(HANDSHAKES[-1]))[0] == 200
        for client in clients:
            client.close()
        assert asked(address, opening(HANDSHAKES[-1]))[0] == 200
    assert len(lines) == 1, lines
