"""Prints results: a table where a person looks, else a line for each."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from mnemic import progress_bar
from mnemic.demo.printing import printable
from mnemic.model import MemoryEntry

_HIDDEN: Final = "<sensitive>"
_WIDE: Final = 100
"""Columns from which on ids stand beside the texts, not below them."""


def is_installed(module: str) -> bool:
    """Return whether a module of another package can be imported."""
    from importlib.util import find_spec  # noqa: PLC0415 - often not needed

    return find_spec(module) is not None


def one_line(text: str) -> str:
    """Return a text as `printable` does, with its new lines spelled out, too."""
    return printable(text).replace("\n", "\\u000a")


def note(text: str) -> None:
    """Say something beside the results, where no program reads it."""
    print(f"mnemic: {one_line(text)}", file=sys.stderr)


class Output:
    """Prints the results of one run.

    Args:
        is_json: Whether as JSON: one line for each result.
    """

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self._has_tables = sys.stdout.isatty() and not is_json and is_installed("rich")

    @property
    def progress(self) -> bool:
        """Whether long work shows a bar."""
        return sys.stderr.isatty()

    @property
    def width(self) -> int | None:
        """Number of columns of the terminal; None where results go elsewhere."""
        if not sys.stdout.isatty():
            return None
        from shutil import get_terminal_size  # noqa: PLC0415 - with its compressors, 3 ms

        return get_terminal_size().columns

    def counting(self, work: str) -> AbstractContextManager[Callable[[int, int | None], object]]:
        """Show a person how far a work is; the function given takes what is done and the total."""
        return progress_bar(work) if self.progress else nullcontext(_silent)

    def json(self, value: Any) -> None:
        """Print one line of JSON."""
        import json  # noqa: PLC0415 - often not needed

        is_ascii = not sys.stdout.encoding.lower().startswith("utf")
        print(printable(json.dumps(value, ensure_ascii=is_ascii)))  # spelled as JSON spells them

    def result(self, values: dict[str, Any], text: str) -> None:
        """Print a result: its values as JSON, or its text."""
        if self.is_json:
            self.json(values)
        else:
            self.line(text)

    def line(self, text: str = "") -> None:
        """Print lines for people."""
        print(printable(text))

    def fields(self, values: dict[str, Any]) -> None:
        """Print names and values, as JSON or one a line; empty ones are left out there."""
        if self.is_json:
            self.json(values)
            return
        for name, value in values.items():
            if value not in (None, [], {}, "", False):
                self.line(f"{name.replace('_', ' ') + ':':22}{_value(value)}")

    def entries(self, entries: Iterable[MemoryEntry], before: Sequence[str] = ()) -> None:
        """Print memories, one on a line: a column before each, its text, its day, its id.

        Args:
            entries: The memories.
            before: Texts of the first column.
        """
        if self._has_tables:
            self._table(list(entries), before)
            return
        for at, entry in enumerate(entries):
            print("\t".join([*before[at : at + 1], *_cells(entry)]))

    def _table(self, entries: Sequence[MemoryEntry], before: Sequence[str]) -> None:
        from rich.console import Console  # noqa: PLC0415 - takes 60 ms, and is not always there
        from rich.table import Table  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415 - as above

        console = Console(highlight=False, no_color=bool(os.environ.get("NO_COLOR")))
        is_wide = console.width >= _WIDE
        table = Table.grid(padding=(0, 2))
        for at, entry in enumerate(entries):
            text, day, identity = _cells(entry)
            first = [Text(before[at], "bold")] if before else []
            last = Text(f"{day} {identity}" if is_wide else identity, "dim", no_wrap=True)
            if is_wide:
                table.add_row(*first, Text(text, overflow="fold"), last)
            else:
                table.add_row(*first, Text.assemble(text, "\n", last, overflow="fold"))
        console.print(table)


def _silent(done: int, total: int | None) -> None:
    del done, total


def _cells(entry: MemoryEntry) -> tuple[str, str, str]:
    content = _HIDDEN if entry.sensitive else printable(" ".join(entry.content.split()))
    return content, f"{entry.created_at:%Y-%m-%d}", str(entry.id)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "; ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
