"""Prints records for people and for programs."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mnemic.model import MemoryEntry
from mnemic.records.lines import cut, display_width

_OBEYED: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_LEAST_CONTENT: Final = 20


def printable(text: str) -> str:
    """Return a text in which what a terminal would obey is spelled out.

    Those are control characters, except new lines, and the marks that turn the direction of
    writing.
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Output:
    """Prints the results of one run.

    Args:
        is_json: Whether as JSON: one line for each result.

    Attributes:
        is_watched: Whether a person looks at a terminal.
    """

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self.is_watched = sys.stdout.isatty() and not is_json
        self._has_colours = self.is_watched and not os.environ.get("NO_COLOR")

    @property
    def progress(self) -> bool:
        """Whether long work shows a bar."""
        return sys.stderr.isatty()

    def json(self, value: Any) -> None:
        """Print one line of JSON."""
        print(json.dumps(value, ensure_ascii=False))

    def line(self, text: str = "") -> None:
        """Print lines for people."""
        print(printable(text))

    def bold(self, text: str) -> None:
        """Print a heading."""
        print(f"{_BOLD}{printable(text)}{_PLAIN}" if self._has_colours else printable(text))

    def note(self, text: str) -> None:
        """Say something beside the results, where no program reads it."""
        print(f"mnemic: {printable(text)}", file=sys.stderr)

    def entries(self, entries: Iterable[MemoryEntry], before: Sequence[str] = ()) -> None:
        """Print memories, one on a line: a column before each, its text, its day, its id.

        Args:
            entries: The memories.
            before: Texts of the first column, as wide as each other.
        """
        width = shutil.get_terminal_size().columns if self.is_watched else None
        for at, entry in enumerate(entries):
            first = f"{before[at]}  " if before else ""
            print(first + self._entry(entry, width and width - len(first)))

    def _entry(self, entry: MemoryEntry, width: int | None) -> str:
        last = f"{entry.created_at:%Y-%m-%d}  {entry.id}"
        if width is None:
            return f"{_one_line(entry.content)}\t{last}"
        left = width - len(last) - 2
        if left < _LEAST_CONTENT:  # the id goes below
            return f"{cut(entry.content, width)}\n{self._dim('    ' + last)}"
        text = cut(entry.content, left)
        return f"{text}{' ' * (left - display_width(text))}  {self._dim(last)}"

    def _dim(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self._has_colours else text


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
