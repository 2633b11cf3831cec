"""A memory service for many tenants: `python examples/service.py [MEMORY_FILE]`, offline.

One process, one file, one event loop. A client sends a line of JSON and gets a line of JSON back:

    {"token": "alice-secret", "verb": "remember", "text": "Allergic to peanuts"}

The token decides the user; no request can name another one. The program starts the service, lets
three clients talk to it at once, and stops.
"""

import asyncio
import json
import sys
from collections.abc import Coroutine, Mapping
from importlib.util import find_spec
from typing import Any

from mnemic import AsyncMemory, AsyncScopedMemory
from mnemic.errors import MnemicError

USER_OF_TOKEN = {f"{name}-secret": name for name in ("alice", "bob", "carol")}


async def remember(memory: AsyncScopedMemory, request: Mapping[str, Any]) -> dict[str, Any]:
    """Store a text; a repeated request with the same key stores nothing."""
    stored = await memory.add(request["text"], idempotency_key=request.get("key"))
    return {"id": str(stored.id)}


async def search(memory: AsyncScopedMemory, request: Mapping[str, Any]) -> dict[str, Any]:
    """Find texts; a search that takes longer than a second gives the hits it has."""
    limit = request.get("limit", 5)
    found = await memory.search(request["text"], limit=limit, timeout=1.0, on_timeout="partial")
    return {"hits": [{"text": hit.content, "score": round(hit.score, 3)} for hit in found]}


async def forget(memory: AsyncScopedMemory, _request: Mapping[str, Any]) -> dict[str, Any]:
    """Delete all of the user's memories for good."""
    return {"deleted": int(await memory.delete_all(permanent=True))}


VERBS = {"remember": remember, "search": search, "forget": forget}


async def answer(memory: AsyncMemory, line: bytes) -> dict[str, Any]:
    """Answer one request; what is wrong with it is answered too."""
    try:
        request = json.loads(line)
        user, verb = USER_OF_TOKEN.get(request["token"]), VERBS.get(request["verb"])
        if user is None or verb is None:
            return {"error": "unknown token or verb"}
        return await verb(memory.scoped(user_id=user), request)
    except (MnemicError, ValueError, KeyError, TypeError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def serve(memory: AsyncMemory) -> asyncio.Server:
    """Listen on a free port of this machine."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(await answer(memory, line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    return await asyncio.start_server(talk, "127.0.0.1")


async def ask(server: asyncio.Server, *requests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Send requests over one connection; return the replies."""
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    replies: list[dict[str, Any]] = []
    for request in requests:
        writer.write(json.dumps(request).encode() + b"\n")
        replies.append(json.loads(await reader.readline()))
    writer.close()
    return replies


async def main() -> None:
    """Let three users store and search at once."""
    path = sys.argv[1] if len(sys.argv) > 1 else ":memory:"
    local = find_spec("mnemic_minilm")
    async with (
        AsyncMemory(path, embedder="minilm" if local else None) as memory,
        await serve(memory) as server,
    ):
        talks: list[Coroutine[Any, Any, list[dict[str, Any]]]] = []
        for token, user in USER_OF_TOKEN.items():
            told = {"token": token, "verb": "remember", "text": f"{user} likes tea at noon"}
            asked = {"token": token, "verb": "search", "text": "who likes tea?"}
            talks.append(ask(server, told, asked))
        for _, found in await asyncio.gather(*talks):
            print(found)


if __name__ == "__main__":
    asyncio.run(main())
