"""One client for each event loop, closed with its loop."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

import httpx2

from mnemic.threads.locks import Lock

if TYPE_CHECKING:
    import ssl
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, Callable

IDLE_SECONDS = 30.0
"""Seconds after which an unused connection is closed."""

CONNECT_SECONDS = 5.0

CLOSE_SECONDS = 10.0
"""Seconds that `close` waits for the loop of another thread."""


class _OpenClient(NamedTuple):
    client: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]


class Clients:
    """Clients by event loop, made by the first request of each.

    A connection belongs to the loop that opened it. A client is closed with its loop, where
    `asyncio.run` or a `Runner` ends that, and a child process makes clients of its own.

    Args:
        make: Makes a client.
    """

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._lock = Lock()
        self._clients: dict[AbstractEventLoop, _OpenClient] = {}
        self.is_closed = False
        _all.add(self)

    async def client(self) -> httpx2.AsyncClient:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        open_client = self._clients.get(loop)
        if open_client is None:
            client = self._make()
            open_client = _OpenClient(client, self._keep(loop, client))
            with self._lock:
                self._forget_closed_loops()
                self._clients[loop] = open_client
            await anext(open_client.keeper)
        return open_client.client

    async def _keep(
        self, loop: AbstractEventLoop, client: httpx2.AsyncClient
    ) -> AsyncGenerator[None, None]:
        """Close a client when this generator is closed, as a loop closes all at its end."""
        try:
            yield
        finally:
            with self._lock:
                self._clients.pop(loop, None)
            await client.aclose()

    def _forget_closed_loops(self) -> None:
        for loop in [loop for loop in self._clients if loop.is_closed()]:
            del self._clients[loop]

    async def aclose(self) -> None:
        """Close all clients. Repeated calls have no effect."""
        self.is_closed = True
        here = asyncio.get_running_loop()
        for loop, open_client in self._open_clients():
            if loop is here:
                await open_client.keeper.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(open_client.keeper.aclose(), loop)
                await asyncio.wait([asyncio.wrap_future(closing)], timeout=CLOSE_SECONDS)

    def close(self) -> None:
        """Do the same from outside of an event loop; in one, its client is closed by its next turn.

        A loop that does not run keeps its client.
        """
        self.is_closed = True
        here = _running_loop()
        for loop, open_client in self._open_clients():
            if loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(open_client.keeper.aclose(), loop)
                if loop is not here:
                    with suppress(Exception):
                        closing.result(CLOSE_SECONDS)

    def _open_clients(self) -> list[tuple[AbstractEventLoop, _OpenClient]]:
        with self._lock:
            return list(self._clients.items())

    def inherit(self) -> None:
        """Forget the clients in a child process: their connections are its parent's."""
        self._lock = Lock()
        self._clients = {}


def _running_loop() -> AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_all: WeakSet[Clients] = WeakSet()


def _inherit() -> None:
    for clients in list(_all):
        clients.inherit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit)


@cache
def ssl_context() -> ssl.SSLContext:
    """Return the process's one context, which takes some 50 ms to make."""
    return httpx2.create_ssl_context()


def make_client(max_connections: int) -> httpx2.AsyncClient:
    """Return a client; proxies are those of the environment, and redirects are not followed.

    Args:
        max_connections: Connections at a time; further requests wait for one of them.
    """
    return httpx2.AsyncClient(
        verify=ssl_context(),
        follow_redirects=False,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # the whole request has its limit
        limits=httpx2.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=IDLE_SECONDS,
        ),
    )
