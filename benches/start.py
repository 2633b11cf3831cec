"""How long the command takes to its first answer: `python -m benches.start`.

Each runs in fresh processes, in turn with the others, from the start of the interpreter to its end;
that of `mnemic mcp` to its answer to the first message, and to its first recall. Medians of elapsed
time, and of the processor's where the process ends by itself. Byte code is cached, as in an
installed package. The file has 10,000 memories of one user, sentences of Python's own library;
others are the questions.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benches.support.sentences import sentences
from mnemic import Memory

MEMORIES = 10_000
RECALLS = 200
ROUNDS = 11
USER = "ana"
OPENING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benches", "version": "1"},
}
SCRIPT = Path(sys.executable).with_name("mnemic")
PROGRAM = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "mnemic.cli"]
PROMPT = {"prompt": "How is a time zone taken from a file?", "session_id": "s", "cwd": "/"}
COMMANDS = {
    "mnemic --version, goal 60": (["--version"], None),
    "search by keywords, goal 150": (["search", "time zone", "--keyword"], None),
    "search by meaning, goal 250": (["search", "what is the offset of a clock?"], None),
    "hook session-start, goal 200": (["hook", "session-start"], PROMPT),
    "hook prompt, goal 200": (["hook", "prompt"], PROMPT),
}


def environment(path):
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"MNEMIC_DB": str(path), "MNEMIC_USER": USER}


def command(arguments):
    return [*PROGRAM, *arguments]


def fill(path, texts):
    with Memory(path) as memory:
        memory.add_many(texts, user_id=USER)


def milliseconds(arguments, given, path):
    """Return the elapsed time and the processor time of a command."""
    start, before = time.perf_counter(), sum(getrusage(RUSAGE_CHILDREN)[:2])
    text = None if given is None else json.dumps(given)
    made = subprocess.run(  # noqa: S603
        command(arguments),
        check=True,
        env=environment(path),
        input=text,
        capture_output=True,
        text=True,
    )
    elapsed = time.perf_counter() - start
    assert made.stdout, arguments
    return 1000 * elapsed, 1000 * (sum(getrusage(RUSAGE_CHILDREN)[:2]) - before)


def ask(server, number, method, params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    return json.loads(server.stdout.readline())["result"]


@contextlib.contextmanager
def served(path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command(["mcp"]), env=environment(path), **pipes) as server:  # noqa: S603
        yield server
        server.stdin.close()


def first_answers(path):
    """Return the time to the first answer of a server, and to that of its first recall."""
    start = time.perf_counter()
    with served(path) as server:
        ask(server, 1, "initialize", OPENING)
        answered = time.perf_counter() - start
        recall = {"name": "recall", "arguments": {"query": PROMPT["prompt"]}}
        assert ask(server, 2, "tools/call", recall)["structuredContent"]["memories"]
        return 1000 * answered, 1000 * (time.perf_counter() - start)


def recall_times(path, questions):
    """Return the round trips of recalls by one client of a server, the first left out."""
    times = []
    with served(path) as server:
        ask(server, 0, "initialize", OPENING)
        for number, question in enumerate(questions, 1):
            recall = {"name": "recall", "arguments": {"query": question}}
            start = time.perf_counter()
            ask(server, number, "tools/call", recall)
            times.append(1000 * (time.perf_counter() - start))
    return sorted(times[1:])


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        texts = sentences()
        fill(path, texts[:MEMORIES])
        times = {name: [] for name in COMMANDS}
        servers = []
        for _ in range(ROUNDS):
            for name, (arguments, given) in COMMANDS.items():
                times[name].append(milliseconds(arguments, given, path))
            servers.append(first_answers(path))
        for name, of_rounds in times.items():
            elapsed, used = map(statistics.median, zip(*of_rounds, strict=True))
            print(f"{name:32} {elapsed:7.1f} ms in all, {used:6.1f} ms of the processor")
        answer, recall = map(statistics.median, zip(*servers, strict=True))
        print(f"{'mcp, first answer, goal 2000':32} {answer:7.1f} ms")
        print(f"{'mcp, first recall':32} {recall:7.1f} ms")
        recalls = recall_times(path, texts[MEMORIES : MEMORIES + RECALLS])
        middle, late = recalls[len(recalls) // 2], recalls[len(recalls) * 95 // 100]
        print(f"{'mcp, recall, goal 10 at p95':32} {middle:7.1f} ms p50, {late:.1f} ms p95")


if __name__ == "__main__":
    main()
