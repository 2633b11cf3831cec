"""Starts `examples/model_server.py` in a process of its own, which ends with this one."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import ProxyHandler, Request, build_opener

from tests.support.paths import EXAMPLES
from tests.support.processes import ENVIRONMENT

PROGRAM = EXAMPLES / "model_server.py"
KEY = "sk-test-0123456789abcdefSECRET"
"""A key that nothing may show."""
NOT_UTF8 = (
    '{"choices": [{"message": {"content": "\udcff"}}],'
    ' "data": [{"index": 0, "embedding": "\udcff"}]}'
)
"""A body that the server sends with a byte 255 for each half of a character."""

_opener = build_opener(ProxyHandler({}))


class ModelServer:
    """A running server.

    Args:
        process: Its process.
        url: Its base URL, such as http://127.0.0.1:8000/v1.
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.root = url.removesuffix("/v1")

    @property
    def port(self):
        return int(self.root.rpartition(":")[2])

    def faults(self, *faults, **fault):
        """Break the next requests; see `Fault` of the program."""
        self._call("POST", "/faults", [*faults, *([fault] if fault else [])])

    def requests(self, path=""):
        """The requests, oldest first."""
        return [each for each in self.report()["requests"] if path in each["path"]]

    def report(self):
        """The counts of requests, and the requests."""
        return self._call("GET", "/requests")

    def until(self, condition, seconds=20):
        """Wait until a condition of the report holds."""
        end = time.monotonic() + seconds
        while not condition(report := self.report()):
            assert time.monotonic() < end, {**report, "requests": len(report["requests"])}
            time.sleep(0.01)
        return report

    def reset(self):
        """Forget requests and faults."""
        self._call("DELETE", "/faults")
        self._call("DELETE", "/requests")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with _opener.open(Request(self.root + path, data, method=method), timeout=30) as response:  # noqa: S310 - on this machine
            return json.load(response)


@contextmanager
def model_server(*options: str, embedder: str = "hash") -> Iterator[ModelServer]:
    """A running server; `options` are further ones of the program."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "--port", "0", "--embedder", embedder, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    with process:
        limit = threading.Timer(60, process.kill)  # it prints its URL or is ended
        limit.start()
        url = process.stdout.readline().strip()
        limit.cancel()
        assert url, "the server did not start"
        try:
            yield ModelServer(process, url)
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
