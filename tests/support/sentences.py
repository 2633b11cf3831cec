r"""Reads the table of sentences, `tests/samples/sentences.tsv`.

A line holds a topic, a text and a comment. The sign ¦ stands at the bound of two sentences, outside
the text; the escapes \n, \r, \t, \\ and \uXXXX stand for their characters. White space between
sentences belongs to none of them.
"""

import csv
import re
from typing import NamedTuple

from tests.support.paths import SAMPLES

TABLE = SAMPLES / "sentences.tsv"
BOUND = "¦"
ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
LETTERS = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}


class Case(NamedTuple):
    """One line of the table."""

    line: int
    topic: str
    text: str
    sentences: list[str]
    comment: str

    def __str__(self):
        return f"{self.line}: {self.topic}"


def unescaped(cell):
    """Return the text that a cell stands for."""
    return ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else LETTERS[found[2]], cell)


def case(line, topic, cell, comment):
    """Return the case of one line of the table."""
    marked = unescaped(cell)
    parts = [part.strip() for part in marked.split(BOUND)]
    return Case(line, topic, marked.replace(BOUND, ""), list(filter(None, parts)), comment)


def rows(table):
    """Return the rows of a table below its head, each with the number of its line first."""
    with table.open(encoding="utf-8", newline="") as file:
        _, *cells = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(line, *row) for line, row in enumerate(cells, start=2)]


def cases():
    """Return all cases of the table, in its order."""
    return [case(*row) for row in rows(TABLE)]


def split(text, bounds):
    """Return the slices of a text at its bounds."""
    return [text[start:end] for start, end in bounds]
