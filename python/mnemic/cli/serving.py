"""The verb mcp: a server for programs that speak MCP."""

import argparse
import gc
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mnemic.cli.call import Call
from mnemic.cli.output import note
from mnemic.errors import EmbeddingModelMismatchError, InvalidArgumentError, MissingExtraError
from mnemic.mcp.project import user_here

if TYPE_CHECKING:
    from mnemic import Memory
    from mnemic.mcp.opening import OpenedMemory
    from mnemic.mcp.server import MemoryServer

TOKEN: Final = "MNEMIC_MCP_TOKEN"  # noqa: S105 - the name of a variable
_LEAST_TOKEN: Final = 16
PORT: Final = 8365
_LAST_PORT: Final = 65_535


def declare_mcp(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of mcp."""
    parser.add_argument("--read-only", action="store_true", help="offers no tool that writes")
    parser.add_argument("--http", action="store_true", help="streamable HTTP in place of stdio")
    parser.add_argument("--port", type=port, default=PORT, help=f"of HTTP ({PORT}); 0 is any")


def port(given: str) -> int:
    """Return the number of a port; argparse says the name of this function."""
    number = int(given)
    if not 0 <= number <= _LAST_PORT:
        raise ValueError
    return number


def mcp(call: Call) -> None:
    """Serve one user's memories until the client leaves."""
    if call.given.all_users:
        raise InvalidArgumentError("a server is for one user; name one by --user, not --all-users")
    from mnemic.mcp.opening import OpenedMemory  # noqa: PLC0415 - loads the package

    opened = OpenedMemory(lambda: _memory(call), user_here(call.given.user))
    gc.disable()  # the library makes many objects and no garbage: a fifth of its time
    try:
        import anyio  # noqa: PLC0415 - as below

        from mnemic.mcp.server import MemoryServer  # noqa: PLC0415 - loads the library
    except ImportError as error:
        raise MissingExtraError(
            "mnemic mcp needs mcp: python -m pip install 'mnemic[mcp]'"
        ) from error
    server = MemoryServer(opened, read_only=call.given.read_only)
    gc.enable()
    gc.freeze()
    with _answering_hooks(call, opened):
        if call.given.http:
            _serve_http(call, opened, server)
        else:
            if sys.stdin.isatty():
                note("waits for a client on stdin; mnemic install adds it to one")
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for stdin till it ends
            anyio.run(server.run_stdio_async)


def _memory(call: Call) -> "Memory":
    """Open the memory; without a model if its vectors are of none that is installed."""
    try:
        return call.memory(read_only=call.given.read_only)
    except EmbeddingModelMismatchError:
        return call.stored(read_only=call.given.read_only)


def _serve_http(call: Call, opened: "OpenedMemory", server: "MemoryServer") -> None:
    import anyio  # noqa: PLC0415 - as above

    from mnemic.mcp.http import HOST, PATH, serve  # noqa: PLC0415 - as above

    with socket.create_server((HOST, call.given.port)) as listening:
        port = listening.getsockname()[1]
        note(f"http://{HOST}:{port}{PATH} for user {opened.user!r}")
        anyio.run(serve, server, _token(), listening)


def _token() -> str:
    given = os.environ.get(TOKEN)
    if given:
        if len(given) < _LEAST_TOKEN:
            raise InvalidArgumentError(f"{TOKEN} has fewer than {_LEAST_TOKEN} characters")
        return given
    made = secrets.token_urlsafe(32)
    note(f"Authorization: Bearer {made}")
    return made


@contextmanager
def _answering_hooks(call: Call, opened: "OpenedMemory") -> Generator[None]:
    """Answer hooks in a thread; without sockets, or a folder for them, nothing does."""
    from mnemic.mcp.local import Address, Listener  # noqa: PLC0415 - as above
    from mnemic.mcp.responses import respond  # noqa: PLC0415 - as above

    try:
        address = Address(call.place, call.given.agent, opened.user)
        listener = Listener(address, lambda request: respond(opened.wait(), request))
    except (OSError, AttributeError):
        yield
        return
    threading.Thread(target=listener.run, name="mnemic-hooks", daemon=True).start()
    try:
        yield
    finally:
        listener.close()
