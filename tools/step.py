"""Run one step of a set-up under a line of progress: ``python tools/step.py LABEL TIME COMMAND…``.

The line has the label and the expected time at once, later the seconds passed and the last line
that the command wrote. A terminal keeps one line; elsewhere, as in the log of a build server, a
line follows every ten seconds. Of a command that fails everything it wrote is printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = {True: 0.5, False: 10.0}
"""Between two reports, at a terminal and elsewhere."""

_DRAWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[[=> ]*\]")  # escape sequences, cargo's bar
# cargo counts its crates where it takes its output for a terminal, or is made to.
_ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    "CARGO_TERM_PROGRESS_WHEN": "always",
    "CARGO_TERM_PROGRESS_WIDTH": "100",
}


class Output:
    """The lines that a command writes, read in a thread as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:  # the stream also ends lines at a carriage return
            plain = " ".join(_DRAWN.sub("", line).split())
            if plain:
                self.lines.append(plain)

    @property
    def last(self) -> str:
        """Return the last line that is not empty."""
        return self.lines[-1] if self.lines else ""

    def finish(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join()


class Report:
    """Progress on a stream: one line that changes at a terminal, else a line at a time."""

    def __init__(self, label: str, expected: str, stream: IO[str]) -> None:
        self._label, self._stream = label, stream
        self._is_terminal = stream.isatty()
        self.seconds = SECONDS[self._is_terminal]
        self._write(f"{label} ({expected})", ends=not self._is_terminal)

    def running(self, seconds: float, line: str) -> None:
        """Show that the command still runs, and the last line of its output."""
        head = f"{self._label}: {seconds:.0f} s" if self._is_terminal else f"  {seconds:4.0f} s"
        self._write(f"{head}  {line}".rstrip(), ends=not self._is_terminal)

    def ended(self, seconds: float, status: int) -> None:
        """Show how long the command took, or that it failed."""
        head = f"{self._label}: " if self._is_terminal else "  "
        end = f"failed with status {status}" if status else "done"
        self._write(f"{head}{end} after {seconds:.0f} s", ends=True)

    def _write(self, text: str, *, ends: bool) -> None:
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
        else:
            self._stream.write(text[:160])
        self._stream.write("\n" if ends else "")
        self._stream.flush()


def run(
    label: str,
    expected: str,
    command: Sequence[str],
    stream: IO[str] = sys.stdout,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Run a command, report on the stream, and return the command's status."""
    report, begin = Report(label, expected, stream), time.monotonic()
    with subprocess.Popen(  # noqa: S603 - the Makefile's own commands
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**environment, **_ENVIRONMENT},
    ) as process:
        output = Output(process.stdout)  # type: ignore[arg-type] # it is a pipe
        status = _watch(process, output, report, begin)
        output.finish()
    report.ended(time.monotonic() - begin, status)
    if status:
        stream.write("".join(f"{line}\n" for line in output.lines))
    return status


def _watch(process: subprocess.Popen[str], output: Output, report: Report, begin: float) -> int:
    while True:
        try:
            return process.wait(report.seconds)
        except subprocess.TimeoutExpired:
            report.running(time.monotonic() - begin, output.last)
        except KeyboardInterrupt:  # the command got the signal too, and ends by itself
            process.wait()
            return 130


def main(arguments: Sequence[str]) -> int:
    """Run the step that the arguments name."""
    label, expected, *command = arguments
    return run(label, expected, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
