"""Starts the process of `rounds.py` and hands it rounds."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def child(program, *arguments):
    """Run a program of this folder, with pipes to and from it."""
    paths = [HERE, HERE.parent, *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-W", "error", "-X", "faulthandler", HERE / program, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as process:
        try:
            yield process
        finally:
            process.stdin.close()


@contextmanager
def player():
    """Lend two functions: one begins a round, the other waits for how its process ended."""
    with child("rounds.py") as process:

        def begin(**what):
            process.stdin.write(json.dumps(what).encode() + b"\n")
            process.stdin.flush()

        yield begin, lambda: int(process.stdout.readline())
