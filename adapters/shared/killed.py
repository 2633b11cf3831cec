"""Writers that are killed."""

import itertools
import signal
import subprocess
import sys


def lines_of(program: str, *arguments: object, least: int) -> list[str]:
    """Start a program, kill it once it has printed so many lines, and return all whole ones."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        printed = list(itertools.islice(writer.stdout, least))
        writer.send_signal(signal.SIGKILL)
        printed += writer.stdout
    whole = [line.rstrip("\n") for line in printed if line.endswith("\n")]
    assert len(whole) >= least, "the writer ended too early"
    return whole
