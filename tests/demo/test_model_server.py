"""The local protocol server: right answers, faults, and its end."""

import base64
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest

from tests.support.model_server import KEY, model_server
from tests.support.paths import EXAMPLES
from tests.support.processes import ENVIRONMENT

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the examples come with the repository"
)
opener = build_opener(ProxyHandler({}))


def post(server, path, timeout=30, key=None, **body):
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = Request(server.url + path, json.dumps(body).encode(), headers)  # noqa: S310 - here
    with opener.open(request, timeout=timeout) as response:
        return json.load(response)


def embeddings(server, *texts, **options):
    return post(server, "/embeddings", model="m", input=list(texts), **options)["data"]


def answer(server, prompt, system=None):
    messages = [{"role": "user", "content": prompt}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return post(server, "/chat/completions", model="m", messages=messages)["choices"][0]


def test_vectors_come_in_order_as_numbers_or_base64(server):
    plain = embeddings(server, "red sofa", "blue chair")
    packed = embeddings(server, "red sofa", "blue chair", encoding_format="base64", dimensions=64)
    assert [each["index"] for each in plain] == [0, 1]
    for numbers, text in zip(plain, packed, strict=True):
        decoded = np.frombuffer(base64.b64decode(text["embedding"]), "<f4")
        assert decoded.tolist() == numbers["embedding"]
        assert np.linalg.norm(decoded) == pytest.approx(1, abs=1e-6)
    assert embeddings(server, "red sofa")[0] == plain[0]


def test_vectors_of_related_texts_are_nearer(server):
    rows = embeddings(server, "the port is 5432", "which port is it", "bees in a garden")
    port, question, bees = (np.array(row["embedding"]) for row in rows)
    assert port @ question > bees @ question


def test_a_prompt_is_answered_with_statements_of_its_last_lines(server):
    prompt = "user: we use PostgreSQL\nassistant: noted.\nuser: which port does the database use?"
    first = answer(server, prompt, "Write 2 statements.")
    assert first == answer(server, prompt, "Write 2 statements.")
    lines = first["message"]["content"].splitlines()
    assert lines == ["Port does the database use.", "Noted."]
    assert len(answer(server, prompt)["message"]["content"].splitlines()) == 3


def test_requests_are_counted_and_forgotten(server):
    embeddings(server, "a", "b")
    answer(server, "c?")
    report = server.report()
    assert [report[name] for name in ("embeddings", "texts", "chat", "running")] == [1, 2, 1, 0]
    assert [each["path"] for each in report["requests"]] == [
        "/v1/embeddings",
        "/v1/chat/completions",
    ]
    server.reset()
    assert server.requests() == []


@pytest.mark.parametrize(
    ("fault", "indexes"),
    [
        ({"wrong_count": True}, [0, 1]),
        ({"wrong_index": True}, [0, 1, 3]),
        ({"duplicate_index": True}, [0, 1, 0]),
        ({"missing_index": True}, [None] * 3),
        ({"shuffled": True}, [2, 1, 0]),
    ],
)
def test_faults_break_the_next_response_alone(server, fault, indexes):
    server.faults(**fault)
    assert [each.get("index") for each in embeddings(server, *"abc")] == indexes
    assert [each.get("index") for each in embeddings(server, *"abc")] == [0, 1, 2]


def test_a_fault_concerns_its_path_and_its_number_of_requests(server):
    server.faults(path="chat", status=503, times=2)
    embeddings(server, "a")
    for _ in range(2):
        with pytest.raises(HTTPError, match="503") as raised:
            answer(server, "a")
        raised.value.close()
    assert answer(server, "a")["finish_reason"] == "stop"


def test_a_rate_limit_names_its_seconds(server):
    server.faults(rate_limit=7)
    with pytest.raises(HTTPError) as raised:
        embeddings(server, "a")
    with raised.value as error:
        assert (error.code, error.headers["Retry-After"]) == (429, "7")


def test_broken_bodies_and_connections(server):
    server.faults({"malformed": True}, {"drop": "before"}, {"drop": "midway"})
    for _ in range(3):
        with pytest.raises((ValueError, OSError, HTTPException)):
            embeddings(server, "a")


def test_a_client_that_leaves_ends_its_hanging_request(server):
    server.faults(hang=True)
    with pytest.raises(TimeoutError):
        post(server, "/embeddings", timeout=0.2, input=["a"])
    assert server.until(lambda report: report["abandoned"])["running"] == 0


def test_an_unknown_fault_is_refused(server):
    with pytest.raises(HTTPError) as raised:
        server.faults(unknown=True)
    with raised.value as error:
        assert "hang" in json.load(error)["error"]["message"]


def test_a_key_is_demanded_where_one_is_set():
    with model_server("--key", KEY) as server:
        assert post(server, "/embeddings", key=KEY, input=["a"])["data"]
        with pytest.raises(HTTPError, match="401") as raised:
            post(server, "/embeddings", input=["a"])
        raised.value.close()


def test_it_listens_on_the_loopback_interface_alone(server):
    with socket.socket() as outside:
        outside.settimeout(5)
        address = socket.gethostbyname(socket.gethostname())
        if not address.startswith("127."):
            with pytest.raises(OSError, match=r"refused|timed out"):
                outside.connect((address, server.port))


def test_it_ends_when_its_parent_is_killed():
    program = str(EXAMPLES / "model_server.py")
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, {program!r}, '--embedder', 'hash'], "
        "stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, env=ENVIRONMENT, text=True
    ) as process:
        child = int(process.stdout.readline())
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - a few letters
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_its_embedder_without_a_model_gives_unit_vectors_of_any_text():
    embedder = runpy.run_path(str(EXAMPLES / "model_server.py"))["HashEmbedder"](8)
    vectors = embedder.embed(["", "a", "\U0001f600 longer"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
