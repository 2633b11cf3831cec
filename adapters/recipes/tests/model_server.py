"""A server on loopback that plays the model of OpenAI, Anthropic and Ollama.

Its answer has the whole request in it, so that a test sees what reached the model.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "sk-test"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        request = json.loads(self.rfile.read(size) if size else self._chunks())
        self.server.requests.append((self.path, request))
        said = self.server.answer(request)
        text = json.dumps(reply(self.path, request["model"], said)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _chunks(self):
        read = b""
        while size := int(self.rfile.readline(), 16):
            read += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return read

    def log_message(self, *_):
        pass


def reply(path, model, said):
    """Return an answer in the form of the interface that a path belongs to."""
    message = {"role": "assistant", "content": said}
    if path == "/api/chat":
        return {
            "model": model,
            "created_at": "2026-01-01T00:00:00Z",
            "message": message,
            "done": True,
        }
    if path == "/v1/messages":
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": said}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


class ModelServer(ThreadingHTTPServer):
    """Answers each request by `answer`, a function of the request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.answer = lambda request: f"I was told: {texts(request)}"
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


def texts(request):
    """Return everything that a request says."""
    return json.dumps([request.get("system"), request.get("messages")])
