"""Reads tables of comma-separated values, or of semicolons or tabs, with a header."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mnemic.errors import SourceError
from mnemic.importers.cleaning import records_of
from mnemic.importers.record import Chosen, Lost, Record
from mnemic.importers.text_files import MAX_LINE, lines_of, text_of


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each row with a text."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))  # of the process; 128 KB before
    with text_of(path) as file:
        header = file.readline(MAX_LINE)
        file.seek(0)
        delimiter = max(",;\t", key=header.count)
        rows = csv.DictReader(lines_of(file, path), delimiter=delimiter, strict=True)
        try:
            names = Counter(name.strip() for name in rows.fieldnames or ())
            twice = next((name for name, count in names.items() if name and count > 1), None)
            if twice is not None:
                raise SourceError(f"{path}: two columns are called {twice!r:.80}; rename one")
            for row in rows:
                place = f"line {rows.line_num}"
                if None in row or None in row.values():
                    raise SourceError(
                        f"{path}, {place}: the row has more or fewer cells than the header"
                    )
                values = {name.strip(): cell for name, cell in row.items()}
                yield from records_of(values, chosen, lost, place)
        except csv.Error as error:
            raise SourceError(f"{path}, line {rows.reader.line_num}: {error}; correct it") from None
