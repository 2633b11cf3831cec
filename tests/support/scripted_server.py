"""A server of HTTP in this process that answers as a script has it, and keeps what it was sent."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Sent(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    headers: dict
    body: object


class Answer(NamedTuple):
    """An answer: a body of text, or of JSON, or made from the request."""

    body: object = ""
    status: int = 200
    headers: dict = {}  # noqa: RUF012 - never changed
    gate: object = None
    """An event without which it is not sent."""


def vectors(*rows, indexes=None):
    """Return a body of the protocol with these vectors."""
    places = range(len(rows)) if indexes is None else indexes
    return {
        "object": "list",
        "model": "m",
        "data": [
            {"object": "embedding", "index": place, "embedding": list(row)}
            for place, row in zip(places, rows, strict=True)
        ],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


def counted(sent):
    """Return vectors that have the place of each text, and its length."""
    given = sent.body["input"]
    texts = [given] if isinstance(given, str) else given
    return vectors(*[[1.0, float(place), float(len(text))] for place, text in enumerate(texts)])


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request with the next answer of its script, and then with its last one."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.sent, self._lock = list(script), [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_answer(self, sent):
        with self._lock:
            self.sent.append(sent)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        sent = Sent("POST", self.path, headers, json.loads(raw))
        answer = self.server.next_answer(sent)
        if answer.gate is not None:
            answer.gate.wait(60)
        body = answer.body(sent) if callable(answer.body) else answer.body
        text = body if isinstance(body, str) else json.dumps(body)
        try:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())
        except ConnectionError:
            pass  # the client has gone

    def log_message(self, *_):
        pass


@contextmanager
def scripted(*script):
    """Run a server with these answers; bodies alone are answers too."""
    made = [each if isinstance(each, Answer) else Answer(each) for each in script]
    with ScriptedServer(made or [Answer(counted)]) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
