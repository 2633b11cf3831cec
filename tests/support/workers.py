"""Processes with a memory of their own, which call its methods when they are told."""

import json
import select
import subprocess
import sys
from collections.abc import Sequence

from mnemic import Memory
from mnemic.errors import MnemicError
from mnemic.model import Hit, MemoryEntry
from mnemic.store.postgres import connections
from tests.support.embedders import WordEmbedder
from tests.support.processes import ENVIRONMENT

PATIENCE = 60
"""Seconds that a call may take."""


class Worker:
    """A process that has a memory open; a context, which ends it.

    Args:
        place: Path or URL of the memory.
        before: The beginning of the command line, such as `nsenter --net=FILE`.
        patience: Seconds that a call waits for a server of PostgreSQL.
        options: Options of `Memory`.
    """

    def __init__(self, place, before=(), *, patience=10.0, **options):
        given = str(place), str(patience), json.dumps(options)
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", __name__, *given],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, method, *arguments, **options):
        """Have a method called."""
        self._process.stdin.write(json.dumps([method, arguments, options]) + "\n")
        self._process.stdin.flush()

    def answer(self):
        """Wait for the call; return its result, or the name of its error's type."""
        answers = self._process.stdout
        assert select.select([answers], [], [], PATIENCE)[0], "no answer"
        return json.loads(answers.readline())

    def call(self, method, *arguments, **options):
        """Have a method called; return its result, or the name of its error's type."""
        self.begin(method, *arguments, **options)
        return self.answer()

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def together(workers, method, *arguments, **options):
    """Have all call a method at the same time; return their answers."""
    for worker in workers:
        worker.begin(method, *arguments, **options)
    return [worker.answer() for worker in workers]


def _plain(result):
    if isinstance(result, MemoryEntry | Hit):
        return {"id": str(result.id), "content": result.content}
    if isinstance(result, Sequence):
        return [_plain(each) for each in result]
    return result if isinstance(result, int | None) else None


def _work(place, patience, **options):
    connections.PATIENCE = float(patience)
    with Memory(place, **{"embedder": WordEmbedder(), **options}) as memory:
        for line in sys.stdin:
            method, arguments, named = json.loads(line)
            try:
                answer = _plain(getattr(memory, method)(*arguments, **named))
            except MnemicError as error:
                answer = type(error).__name__
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _work(*sys.argv[1:3], **json.loads(sys.argv[3]))
