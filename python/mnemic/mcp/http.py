"""The server over streamable HTTP: on this computer alone, for those who have the token."""

import hmac
import logging
import socket
from typing import Any, Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemic.mcp.server import MemoryServer

HOST: Final = "127.0.0.1"
PATH: Final = "/mcp"
_MOST_BYTES: Final = 1024 * 1024


class WithToken:
    """Refuses requests without the token.

    Args:
        app: What answers the others.
        token: The token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Args:
            scope: What ASGI says of it.
            receive: Gives its parts.
            send: Takes the parts of the answer.
        """
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                refusal = JSONResponse({"error": "wrong or no bearer token"}, 401)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class WithoutDisconnects(logging.Filter):
    """Leaves out clients that went before their request was whole, which is no failure."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged.

        Args:
            record: The record.
        """
        return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def guarded_app(server: MemoryServer, token: str) -> ASGIApp:
    """Return the application, which refuses other tokens, names of hosts and origins.

    A page in a browser that makes a name lead here, by DNS, asks with that name as its host.

    Args:
        server: The server.
        token: The token of clients.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, host=HOST, max_request_body_size=_MOST_BYTES
    )
    return WithToken(app, token)


async def serve(server: MemoryServer, token: str, listening: socket.socket) -> None:
    """Answer requests until the process is stopped.

    Args:
        server: The server.
        token: The token of clients.
        listening: A socket that listens.
    """
    logging.getLogger("mcp.server.streamable_http").addFilter(WithoutDisconnects())
    config: Any = uvicorn.Config(guarded_app(server, token), log_level="error", lifespan="on")
    await uvicorn.Server(config).serve(sockets=[listening])
