"""A socket on which a running server answers hooks of the same user of this computer."""

import hashlib
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

CONNECT_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 1.0
MOST_BYTES: Final = 1 << 20
_FOLDER_MODE: Final = 0o700

Request = dict[str, Any]


class Address(NamedTuple):
    """What a server serves, so that a hook asks one of the same memories alone."""

    place: str
    agent: str
    user: str | None

    @property
    def name(self) -> str:
        """The beginning of the names of its sockets."""
        place = self.place if "://" in self.place else os.path.realpath(self.place)
        of = json.dumps([place, self.agent, self.user])
        return hashlib.blake2b(of.encode(), digest_size=8).hexdigest()


def sockets_folder() -> Path:
    """Return the folder of the sockets, which only this user can open; it is made.

    Raises:
        PermissionError: If it is another's, or others may open it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime, "mnemic") if runtime else _temporary()
    folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    state = folder.lstat()
    is_own = state.st_uid == os.getuid() and not folder.is_symlink()
    if not is_own or state.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder of this user, with mode 700")
    return folder


def _temporary() -> Path:
    # The module tempfile imports compressors: a fifth of the time that a hook takes.
    return Path(os.environ.get("TMPDIR", "/tmp"), f"mnemic-{os.getuid()}")  # noqa: S108 - checked


def ask(address: Address, request: Request) -> str | None:
    """Return the answer of a running server; None where none answers.

    Args:
        address: What it has to serve.
        request: The request.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    for path in sorted(sockets_folder().glob(f"{address.name}-*"), reverse=True):
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.settimeout(CONNECT_SECONDS)
                server.connect(str(path))
                return _answer(server, request)
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)  # of a server that was killed
        except (OSError, ValueError):
            continue
    return None


def _answer(server: socket.socket, request: Request) -> str:
    server.settimeout(ANSWER_SECONDS)
    server.sendall(json.dumps(request).encode() + b"\n")
    with server.makefile("rb") as answers:
        answer = json.loads(answers.readline(MOST_BYTES))
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["text"])


class Listener:
    """Answers hooks while a server runs.

    Args:
        address: What the server serves.
        respond: Gives the text of an answer, in a thread.
    """

    def __init__(self, address: Address, respond: Callable[[Request], str]) -> None:
        self._respond = respond
        self._path = sockets_folder() / f"{address.name}-{os.getpid()}"
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()

    def run(self) -> None:
        """Answer one hook after the other, until closed."""
        with suppress(OSError):  # closed
            while True:
                client, _ = self._socket.accept()
                with client, suppress(OSError):
                    client.settimeout(ANSWER_SECONDS)
                    self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        with client.makefile("rb") as lines:
            line = lines.readline(MOST_BYTES)
        try:
            answer = {"text": self._respond(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - the hook logs it
            answer = {"error": f"{type(error).__name__}: {error}"}
        client.sendall(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Listen no longer."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
