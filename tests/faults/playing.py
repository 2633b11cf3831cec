"""Starts the process of `rounds` and hands it rounds."""

import json
import subprocess
import sys
from contextlib import contextmanager

from tests.support.processes import ENVIRONMENT


@contextmanager
def child(program, *arguments):
    """Run a module, with pipes to and from it."""
    options = ["-W", "error", "-X", "faulthandler", "-m", program]
    command = [sys.executable, *options, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as process:
        try:
            yield process
        finally:
            process.stdin.close()


@contextmanager
def player(program="tests.faults.rounds"):
    """Lend two functions: one begins a round, the other waits for how its process ended."""
    with child(program) as process:

        def begin(**what):
            process.stdin.write(json.dumps(what).encode() + b"\n")
            process.stdin.flush()

        yield begin, lambda: int(process.stdout.readline())
