"""Show how tests died: ``python tools/fatal.py FILE ...``, the files of `MNEMIC_FATAL_LOG`.

A log that keeps its end alone has to show the test and the frames that were running, so of each
thread the innermost frames are written, the thread that died last.
"""

from __future__ import annotations

import sys
from pathlib import Path

FRAMES = 12
"""Innermost frames of a thread."""


def report(text: str) -> str:
    """Return what the file of a run that died tells; empty if it was no fatal error."""
    test, _, dump = text.partition("\n")
    head, *threads = dump.split("\n\n")
    if not head.strip():
        return ""
    threads.sort(key=lambda each: each.startswith("Current thread"))
    shortened = ["\n".join(each.splitlines()[: FRAMES + 1]) for each in threads if "File " in each]
    return "\n\n".join([*shortened, f"{head.strip()}\nThe tests died in {test}"]) + "\n"


def main(paths: list[str]) -> None:
    """Write the reports."""
    for file in map(Path, paths):
        if file.exists():
            sys.stdout.write(report(file.read_text(errors="replace")))


if __name__ == "__main__":
    main(sys.argv[1:])
