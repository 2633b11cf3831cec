"""A server in this process that answers coding agents in place of their language model."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "On Mondays, as the memories say."
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class Model(BaseHTTPRequestHandler):
    """Gives one answer to all requests, in the form of the interface that is asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(json.loads(asked))
        is_codex = self.path.partition("?")[0].endswith("/responses")
        events = of_responses() if is_codex else of_messages()
        lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]
        body = "".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        """Print nothing."""


def of_messages():
    """Events of the interface that Claude Code asks."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "none", "content": []}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "usage": USAGE}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = {"type": "text_delta", "text": ANSWER}
    yield {"type": "content_block_delta", "index": 0, "delta": text}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE}
    yield {"type": "message_stop"}


def of_responses():
    """Events of the interface that Codex asks."""
    text = {"type": "output_text", "text": ANSWER}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    yield {"type": "response.created", "response": {"id": "r"}}
    yield {"type": "response.output_item.done", "item": message}
    yield {"type": "response.completed", "response": {"id": "r", "usage": USAGE}}


@contextmanager
def language_model():
    """A running server; `asked` has the requests, `url` is its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        server.asked, server.url = [], f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
