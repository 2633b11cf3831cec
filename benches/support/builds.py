"""Processes that measure this build or another one, whose package lies in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = ROOT / "python"


def options_of(module, folder, *arguments):
    """Return command and options of a process that runs a module with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # its threads turn idly
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return command, {"text": True, "env": environment, "cwd": ROOT}


def run(module, folder, *arguments):
    """Run a module to its end; return the numbers it prints."""
    command, options = options_of(module, folder, *arguments)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, **options)  # noqa: S603 - this very program
    return [float(number) for number in done.stdout.split()]


class Build:
    """A process that answers each line with numbers; `first` are those of its start."""

    def __init__(self, module, folder, *arguments):
        command, options = options_of(module, folder, *arguments)
        pipe = subprocess.PIPE
        self.folder = folder
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, **options)  # noqa: S603 - this very program
        self.first = self._numbers()

    def ask(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._numbers()

    def _numbers(self):
        return [float(number) for number in self._process.stdout.readline().split()]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def serve(first, answer):
    """Print the first numbers, then those that answer each line."""
    print(*first, flush=True)
    for line in sys.stdin:
        print(*answer(line.strip()), flush=True)
