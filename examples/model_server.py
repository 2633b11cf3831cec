"""A local server of embeddings and chat completions: `python examples/model_server.py --port 0`.

It speaks the protocol of OpenAI-compatible services, offline, and prints its base URL. Vectors are
those of mnemic's MiniLM, or with `--embedder hash` of hashed n-grams. Chat completions come from
rules: statements made of the last lines of the prompt, always the same ones for the same prompt.

`POST /faults` breaks the next requests, for tests of clients; see `Fault`. `GET /requests` returns
the requests and their counts. `DELETE` of either forgets them. The server listens on the loopback
interface alone, and stops when its parent closes its standard input or ends.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import select
import signal
import stat
import sys
import threading
import time
import zlib
from collections import deque
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HOST = "127.0.0.1"
HASH_DIMENSIONS = 64
NGRAMS = (3, 4, 5)
KEPT_REQUESTS = 2000
MAX_BODY = 64 * 1024 * 1024
MAX_FAULT_SECONDS = 600.0
POLL_SECONDS = 0.02
PARENT_SECONDS = 0.5

_NUMBER_OF = re.compile(r"\b(\d{1,2})\b[^.\n]{0,40}?\b(?:statement|hypothes|memor|line|sentence)")
_SPEAKER = re.compile(r"^\s*(?:user|assistant|system|tool)\s*:\s*", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_QUESTION = re.compile(
    r"^(?:(?:please|so|and|but|ok|okay|hi|hello)\W+)*"
    r"(?:what|which|who|whom|whose|where|when|why|how|can|could|would|will|should|do|does|did|is|"
    r"are|was|were|have|has|had|remind me|tell me)\b\W*"
    r"(?:(?:many|much|often|long|you|do|does|did|is|are|was|were|we|i|kind of|sort of)\b\W*)*",
    re.IGNORECASE,
)


class Embedder(Protocol):
    """Gives the vectors of texts."""

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return rows of unit length."""
        ...


class HashEmbedder:
    """Hashes the character n-grams of a text; needs no model.

    Args:
        dimensions: Length of each vector.
    """

    def __init__(self, dimensions: int = HASH_DIMENSIONS) -> None:
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return rows of unit length, shape (len(texts), dimensions)."""
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            padded = f" {' '.join(text.casefold().split())} "
            for n in NGRAMS:
                for at in range(max(1, len(padded) - n + 1)):
                    hashed = zlib.crc32(padded[at : at + n].encode("utf-8", "replace"))
                    vector[hashed % self._dimensions] += 1 if hashed & 0x80000000 else -1
            if not vector.any():
                vector[0] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


@dataclass
class Fault:
    """A fault of one or more requests.

    Attributes:
        path: Part of the path of the requests it concerns; empty for all.
        times: Number of requests; 0 for all until it is deleted.
        delay: Seconds before the response.
        hang: No response, until the client leaves.
        drop: The connection is closed: "before" the response, or "midway" in its body.
        trickle: Seconds between the bytes of the body.
        status: Status of the response, with `body`.
        body: Its body; by default an error in the form of such services. Half a character
            from U+DC80 on is sent as the byte it stands for (`surrogateescape`).
        headers: Its further headers.
        echo: The body quotes the request's headers.
        rate_limit: Status 429, with this `Retry-After`: seconds or a date.
        malformed: The body is no JSON.
        reply: This JSON in place of the right response.
        change: Members put into the right response, or into its choice and message for a chat.
        wrong_count: The last vector is missing.
        wrong_index: The last index is out of range.
        missing_index: Vectors have no index.
        duplicate_index: Two vectors have the same index.
        shuffled: The vectors are in the opposite order, with their right indexes.
        number: In place of the first number of each vector: "NaN" or "Infinity" as well.
        padding: Bytes of blanks before the body.
    """

    path: str = ""
    times: int = 1
    delay: float = 0.0
    hang: bool = False
    drop: str = ""
    trickle: float = 0.0
    status: int = 200
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    echo: bool = False
    rate_limit: float | str | None = None
    malformed: bool = False
    reply: Any = None
    change: dict[str, Any] = field(default_factory=dict[str, Any])
    wrong_count: bool = False
    wrong_index: bool = False
    missing_index: bool = False
    duplicate_index: bool = False
    shuffled: bool = False
    number: Any = None
    padding: int = 0


NO_FAULT = Fault()


class State:
    """What the threads of the server share.

    Args:
        embedder: Gives the vectors.
        key: The key that requests must have; None for none.

    Attributes:
        stopping: Set when the server ends.
    """

    def __init__(self, embedder: Embedder, key: str | None) -> None:
        self.embedder = embedder
        self.key = key
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._faults: deque[Fault] = deque()
        self.forget()

    def forget(self) -> None:
        """Forget the requests."""
        with self._lock:
            self._requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)
            self._counts = dict.fromkeys(("embeddings", "chat", "texts", "abandoned", "most"), 0)
            self._running = 0

    def note(self, request: dict[str, Any]) -> None:
        """Keep and count a request."""
        with self._lock:
            self._requests.append(request)
            is_chat = request["path"].endswith("/chat/completions")
            self._counts["chat" if is_chat else "embeddings"] += 1
            body: dict[str, Any] | list[Any] | None = request["body"]
            if not is_chat and isinstance(body, dict):
                self._counts["texts"] += len(_inputs(body))
            self._running += 1
            self._counts["most"] = max(self._counts["most"], self._running)

    def end(self) -> None:
        """Note that a request has its response, or is abandoned."""
        with self._lock:
            self._running = max(0, self._running - 1)

    def note_abandoned(self) -> None:
        """Count a request whose client left before its response."""
        with self._lock:
            self._counts["abandoned"] += 1

    def report(self) -> dict[str, Any]:
        """Return the counts and the requests."""
        with self._lock:
            return {**self._counts, "running": self._running, "requests": list(self._requests)}

    def break_next(self, given: list[dict[str, Any]]) -> None:
        """Add faults.

        Raises:
            ValueError: If a fault has an unknown member.
        """
        known = {each.name for each in fields(Fault)}
        for each in given:
            if unknown := set(each) - known:
                raise ValueError(f"unknown members {sorted(unknown)}; there are {sorted(known)}")
        with self._lock:
            self._faults.extend(Fault(**each) for each in given)

    def repair(self) -> None:
        """Delete all faults."""
        with self._lock:
            self._faults.clear()

    def fault(self, path: str) -> Fault:
        """Return the fault of a request, and count it down."""
        with self._lock:
            for found in self._faults:
                if found.path in path:
                    if found.times == 1:
                        self._faults.remove(found)
                    found.times -= found.times > 1
                    return found
        return NO_FAULT


class Server(ThreadingHTTPServer):
    """Serves each connection in a thread of its own."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int, state: State) -> None:
        self.state = state
        super().__init__((HOST, port), Handler)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{HOST}:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over clients that left."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(cast("Any", request), client_address)


class Handler(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet for the headers and the body

    def do_GET(self) -> None:
        """Return the counts, or the models."""
        if self.path == "/requests":
            self._send(200, self._state.report())
        elif self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": "local", "object": "model"}]})
        else:
            self._send(404, _error(f"no such path: {self.path}"))

    def do_DELETE(self) -> None:
        """Forget the requests or the faults."""
        if self.path == "/requests":
            self._state.forget()
        elif self.path == "/faults":
            self._state.repair()
        self._send(200, {})

    def do_POST(self) -> None:
        """Answer a request of the protocol, or take faults."""
        body = self._body()
        if self.path == "/faults":
            self._take_faults(body)
            return
        request = {"path": self.path, "headers": dict(self.headers.items()), "body": body}
        self._state.note({**request, "at": time.time()})
        fault = self._state.fault(self.path)
        is_left = not self._waits(MAX_FAULT_SECONDS if fault.hang else fault.delay)
        response = None if is_left else self._response(body, fault)
        self._state.end()  # before the client can have the response, and send its next request
        try:
            if response is not None:
                self._send(*response, fault)
        except ConnectionError:
            is_left = True
        if is_left:
            self.close_connection = True
            self._state.note_abandoned()

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - its name there
        """Log nothing: requests hold texts and keys."""

    @property
    def _state(self) -> State:
        return cast("Server", self.server).state

    def _body(self) -> Any:
        size = int(self.headers.get("Content-Length") or 0)
        if size > MAX_BODY:
            self.close_connection = True
            return None
        try:
            return json.loads(self.rfile.read(size) or b"{}")
        except ValueError:
            return None

    def _take_faults(self, given: list[dict[str, Any]] | dict[str, Any]) -> None:
        try:
            self._state.break_next(given if isinstance(given, list) else [given])
        except (TypeError, ValueError) as error:
            self._send(400, _error(str(error)))
        else:
            self._send(200, {})

    def _waits(self, seconds: float) -> bool:
        """Wait; return False as soon as the client leaves or the server ends."""
        until = time.monotonic() + min(seconds, MAX_FAULT_SECONDS)
        while (left := until - time.monotonic()) > 0:
            if self._state.stopping.wait(min(POLL_SECONDS, left)) or self._is_left():
                return False
        return True

    def _is_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, 0x2)  # MSG_PEEK

    def _response(self, body: Any, fault: Fault) -> tuple[int, Any]:
        if broken := self._broken_response(fault):
            return broken
        if self._state.key and self.headers.get("Authorization") != f"Bearer {self._state.key}":
            return 401, _error("Incorrect API key provided")
        if not isinstance(body, dict):
            return 400, _error("the body is no JSON object")
        if self.path == "/v1/embeddings":
            return 200, _embeddings(self._state.embedder, cast("dict[str, Any]", body), fault)
        if self.path == "/v1/chat/completions":
            return 200, _completion(cast("dict[str, Any]", body), fault)
        return 404, _error(f"no such path: {self.path}")

    def _broken_response(self, fault: Fault) -> tuple[int, Any] | None:
        """Return the response of a fault; None where the right one is changed at most."""
        status = 429 if fault.rate_limit is not None else fault.status
        if fault.echo:
            return status, _error(f"wrong request: {dict(self.headers.items())}")
        if fault.body is not None:
            return status, fault.body
        if fault.reply is not None:
            return status, fault.reply
        return None if status == NO_FAULT.status else (status, _error("a fault"))

    def _send(self, status: int, content: Any, fault: Fault = NO_FAULT) -> None:
        if fault.drop == "before":
            self.close_connection = True
            return
        text = content if isinstance(content, str) else json.dumps(content)
        data = text.encode(errors="surrogateescape")
        if fault.malformed:
            data = data[: len(data) // 2]
        data = b" " * fault.padding + data
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) + (fault.drop == "midway")))
        if fault.rate_limit is not None:
            self.send_header("Retry-After", str(fault.rate_limit))
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if fault.drop == "midway":
            self.close_connection = True
        for part in [data[at : at + 1] for at in range(len(data))] if fault.trickle else [data]:
            self.wfile.write(part)
            self.wfile.flush()
            if fault.trickle and not self._waits(fault.trickle):
                raise ConnectionAbortedError


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


def _inputs(body: dict[str, Any]) -> list[str]:
    given = body.get("input", [])
    return [given] if isinstance(given, str) else [str(each) for each in given]


def _embeddings(embedder: Embedder, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
    inputs = _inputs(body)
    wanted = body.get("dimensions")
    embed = HashEmbedder(wanted).embed if isinstance(wanted, int) else embedder.embed
    vectors = embed(inputs) if inputs else np.empty((0, 0), np.float32)
    is_base64 = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, is_base64, fault)}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(text) // 4 + 1 for text in inputs)
    return {
        "object": "list",
        "data": _broken(data, fault),
        "model": body.get("model"),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        **fault.change,
    }


def _encoded(vector: NDArray[np.float32], is_base64: bool, fault: Fault) -> Any:  # noqa: FBT001
    numbers: list[Any] = vector.tolist()
    if fault.number is not None:
        is_special = isinstance(fault.number, str) and fault.number in ("NaN", "Infinity")
        numbers[0] = float(fault.number) if is_special else fault.number
    if is_base64 and all(isinstance(number, float) for number in numbers):
        return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()
    return numbers


def _broken(data: list[dict[str, Any]], fault: Fault) -> list[dict[str, Any]]:
    if data and fault.wrong_index:
        data[-1]["index"] = len(data)
    if data and fault.duplicate_index:
        data[-1]["index"] = 0
    if fault.missing_index:
        for each in data:
            del each["index"]
    kept = data[:-1] if fault.wrong_count else data
    return kept[::-1] if fault.shuffled else kept


def _completion(body: dict[str, Any], fault: Fault) -> dict[str, Any]:
    messages: list[dict[str, Any]] = body.get("messages") or []
    content = "\n".join(statements(messages))
    message = {"role": "assistant", "content": content}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    message.update({name: fault.change[name] for name in ("content", "refusal", "role")
                    if name in fault.change})  # fmt: skip
    choice.update({name: fault.change[name] for name in ("finish_reason", "message")
                   if name in fault.change})  # fmt: skip
    choices = fault.change.get("choices", [choice])
    tokens = len(content) // 4 + 1
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model"),
        "choices": choices,
        "usage": {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens},
    }


def statements(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Turn the last lines of a prompt into statements, one for each that it wants.

    Args:
        messages: Messages with a role and a content. A number before "statements" or the like, in
            any of them, is the number wanted; otherwise five.
    """
    prompts = [_text(message.get("content")) for message in messages]
    found = _NUMBER_OF.search("\n".join(prompts))
    wanted = int(found[1]) if found else 5
    said = [text for message, text in zip(messages, prompts, strict=True)
            if message.get("role") != "system"]  # fmt: skip
    sentences = [
        sentence.strip()
        for line in "\n".join(said).splitlines()
        for sentence in _SENTENCE.findall(_SPEAKER.sub("", line))
        if sentence.strip()
    ]
    made = dict.fromkeys(_statement(sentence) for sentence in reversed(sentences))
    return [line for line in made if line][: max(wanted, 1)]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "")) for part in cast("list[dict[str, Any]]", content)
        )
    return content if isinstance(content, str) else ""


def _statement(sentence: str) -> str:
    """Make a statement of a sentence: a question loses its question words."""
    topic = _QUESTION.sub("", sentence).rstrip("?!. ").strip() if "?" in sentence else sentence
    topic = topic.rstrip("?!. ")
    return f"{topic[0].upper()}{topic[1:]}." if topic else ""


def stop_with_parent(server: Server) -> None:
    """Stop the server when its parent closes its standard input or ends.

    Only where standard input is a pipe: in a terminal the server runs until it is interrupted.
    """
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_watch_parent, args=(server, os.getppid()), daemon=True).start()


def _watch_parent(server: Server, parent: int) -> None:
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_SECONDS)
        if readable and not os.read(0, 4096):
            break
    stop(server)


def stop(server: Server) -> None:
    """Stop a server; it ends the requests that wait."""
    server.state.stopping.set()
    threading.Thread(target=server.shutdown, daemon=True).start()


def embedder_of(name: str) -> Embedder:
    """Return the embedder of a name.

    Args:
        name: "minilm" or "hash".
    """
    if name == "hash":
        return HashEmbedder()
    from mnemic import MiniLmEmbedder  # noqa: PLC0415 - needs the extra `local`

    return MiniLmEmbedder()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A local server of embeddings and chats.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--embedder", choices=("minilm", "hash"), default="minilm")
    parser.add_argument("--key", help="the key that requests must have")
    given = parser.parse_args()
    server = Server(given.port, State(embedder_of(given.embedder), given.key))
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop(server))
    stop_with_parent(server)
    print(server.url, flush=True)
    try:
        server.serve_forever(POLL_SECONDS)
    except KeyboardInterrupt:
        server.state.stopping.set()
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
