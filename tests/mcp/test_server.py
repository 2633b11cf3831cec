"""The server in processes of its own, over stdio: several on one file, and one killed."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from mnemic import Memory
from tests.mcp.clients import Client, MCPError, client_of, run, stdio, structured, words_alone

CLIENTS = 8
EACH = 6
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@run
async def test_a_client_talks_to_a_process_over_stdio(tmp_path):
    async with Client(stdio(tmp_path / "m.db", "ana")) as client:
        stored = await structured(client, "remember", text="Ana lives in Oslo")
        found = await structured(client, "recall", query="Where does Ana live?")
        assert found["memories"][0]["id"] == stored["id"]
        assert (await structured(client, "stats"))["user"] == "ana"


@run
async def test_clients_of_the_versions_with_a_handshake_are_answered(tmp_path):
    async with Client(stdio(tmp_path / "m.db", "ana"), mode="legacy") as client:
        assert (await structured(client, "stats"))["active"] == 0


@run
async def test_vectors_of_another_model_leave_words_and_the_client_is_told_so(tmp_path):
    path = tmp_path / "m.db"
    vectors = {"embedder": lambda texts: [[1.0, 0.0]] * len(texts), "embedding_model": "another"}
    with Memory(path, **vectors) as memory:
        memory.add("Deploys are on Mondays.", user_id="ana")
    async with Client(stdio(path, "ana")) as client:
        assert "words alone" in client.instructions
        found = await structured(client, "recall", query="deploys")
        assert [one["line"] for one in found["memories"]] == ["Deploys are on Mondays."]
        await structured(client, "remember", text="The owner is Ben.")
    with Memory(path, **vectors) as memory:
        assert len(memory.search("owner", user_id="ana")) == 2


@run
async def test_vectors_that_another_program_replaces_meanwhile_are_told_in_one_sentence(tmp_path):
    path = tmp_path / "m.db"
    async with client_of(Memory(path)) as client:
        await structured(client, "remember", text="Ana lives in Oslo")
        another = {"embedder": lambda texts: [[1.0, 0.0]] * len(texts), "embedding_model": "b"}
        with Memory(path, **another, reembed=True) as memory:
            await asyncio.to_thread(memory.reembed)
        found = await client.call_tool("recall", {"query": "Oslo"})
        assert found.is_error
        assert "start the server again" in found.content[0].text


@run
async def test_a_client_is_told_nothing_of_words_where_there_is_a_model(tmp_path):
    async with client_of(Memory(tmp_path / "m.db")) as client:
        assert "words alone" not in client.instructions


@run
async def test_two_users_servers_on_one_file_see_nothing_of_each_other(tmp_path):
    path = tmp_path / "m.db"
    async with Client(stdio(path, "ana")) as ana, Client(stdio(path, "ben")) as ben:
        stored = await structured(ana, "remember", text="Ana lives in Oslo")
        assert not (await structured(ben, "recall", query="Oslo"))["memories"]
        assert (await structured(ben, "read", ids=[stored["id"]]))["missing"] == [stored["id"]]
        assert (await structured(ben, "forget", ids=[stored["id"]]))["count"] == 0
        assert (await structured(ben, "stats"))["active"] == 0
        assert len((await structured(ana, "recall", query="Oslo"))["memories"]) == 1


async def stores(path, number, acknowledged):
    async with Client(stdio(path, "ana")) as client:
        for at in range(EACH):
            text = f"client {number} note {at}"
            await structured(client, "remember", text=text)
            acknowledged.add(text)


def stores_until_killed(path, acknowledged):
    """Store by a server whose process is killed while a call is on its way."""
    command = [sys.executable, "-m", "mnemic.cli", "mcp", "--db", str(path), "--user", "ana"]
    calls = [("initialize", OPENING["params"])]
    for at in range(EACH):
        arguments = {"text": f"killed note {at}"}
        calls.append(("tools/call", {"name": "remember", "arguments": arguments}))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as server:
        for number, (method, params) in enumerate(calls):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            if number == EACH:
                server.kill()
                break
            assert json.loads(server.stdout.readline())["id"] == number
            if number:
                acknowledged.add(f"killed note {number - 1}")


@run
async def test_nothing_acknowledged_is_lost_with_eight_clients_and_a_kill(tmp_path):
    path = tmp_path / "m.db"
    words_alone(path).close()
    acknowledged = set()
    writers = [stores(path, number, acknowledged) for number in range(CLIENTS - 1)]
    killed = asyncio.to_thread(stores_until_killed, path, acknowledged)
    await asyncio.gather(*writers, killed)
    assert len(acknowledged) == (CLIENTS - 1) * EACH + EACH - 1
    with Memory(path) as memory:
        assert {one.content for one in memory.list(limit=1000, user_id="ana")} >= acknowledged
        assert memory.verify().ok


def test_what_is_no_message_ends_no_server(tmp_path):
    command = [sys.executable, "-m", "mnemic.cli", "mcp", "--db", str(tmp_path / "m.db")]
    sent = [b"", b"garbage", b"\xff\xfe", b"[]", b"[" * 100_000, b'{"jsonrpc": "2.0"}']
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    sent += [json.dumps(one).encode() for one in (OPENING, listing)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as server:
        server.stdin.write(b"\n".join([*sent, b""]))
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        assert [answer["id"] for answer in answers] == [1, 2]
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == -signal.SIGINT


@run
async def test_prompts_and_resources_are_listed():
    async with client_of(words_alone()) as client:
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert prompts == {"recall-first", "review-contradictions"}
        with pytest.raises(MCPError, match="question"):
            await client.get_prompt("recall-first", {})
        asked = await client.get_prompt("recall-first", {"question": "Where is Ana?"})
        assert "Where is Ana?" in asked.messages[0].content.text
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["memory://{id}"]
        stats = await client.read_resource("memory://stats")
        assert json.loads(stats.contents[0].text)["active"] == 0
