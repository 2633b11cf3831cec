"""Servers and clients of the tests, and what of the library and of the server they name.

Tests import these names from here: where the library is missing, their modules are skipped.
"""

import os
import sys
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

from mnemic import Memory
from mnemic.mcp.opening import OpenedMemory
from mnemic.mcp.server import MemoryServer
from mnemic.mcp.told import DATA
from mnemic.mcp.tools import ANNOTATIONS, READING
from tests.mcp.running import run

__all__ = ["ANNOTATIONS", "DATA", "READING", "Client", "MCPError", "MemoryServer", "OpenedMemory"]
__all__ += [
    "ToolError",
    "UnexpectedToolError",
    "client_of",
    "http_client",
    "run",
    "stdio",
    "stdio_of",
    "structured",
]
__all__ += ["text", "words_alone"]


@asynccontextmanager
async def client_of(memory, user="ana", *, read_only=False):
    """A client of a server in this process."""
    server = MemoryServer(OpenedMemory(lambda: memory, user), read_only=read_only)
    async with Client(server) as client:
        yield client


def stdio(path, user, *options):
    """The transport to a server in a process of its own."""
    return stdio_of("-m", "mnemic.cli", "mcp", "--db", str(path), "--user", user, *options)


def stdio_of(*arguments):
    """The transport to what Python runs in a process of its own."""
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=list(arguments), env=dict(os.environ))
    )


async def structured(client, tool, **arguments):
    """What a tool answers, as records."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return answer.structured_content


async def text(client, tool, **arguments):
    """What a tool answers, as text."""
    answer = await client.call_tool(tool, arguments)
    return answer.content[0].text


def words_alone(path=":memory:", **options):
    """A memory without a model, which opens at once."""
    return Memory(path, embedder=None, **options)


@asynccontextmanager
async def http_client(url, token):
    """A client of a server over HTTP."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as web,
        Client(streamable_http_client(url, http_client=web)) as client,
    ):
        yield client
