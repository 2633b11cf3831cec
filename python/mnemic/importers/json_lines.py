"""Reads JSON lines: an object, or a text, on each."""

from collections.abc import Iterator
from pathlib import Path

from mnemic.errors import SourceError
from mnemic.importers.cleaning import records_of
from mnemic.importers.record import Chosen, Lost, Record
from mnemic.importers.text_files import json_of, lines_of, text_of


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each line that is not blank."""
    with text_of(path) as file:
        for number, line in enumerate(lines_of(file, path), 1):
            if not line.strip():
                continue
            place = f"line {number}"
            value = json_of(line, f"{path}, {place}")
            values = {"content": value} if isinstance(value, str) else value
            if not isinstance(values, dict):
                raise SourceError(f"{path}, {place}: it is neither an object nor a text")
            if values.get("format") == "mnemic" and number == 1:
                raise SourceError(f"{path}: it is an export of mnemic; leave --from out")
            yield from records_of(values, chosen, lost, place)
