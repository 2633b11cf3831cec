r"""Reads the table of redactions, `tests/samples/redactions.tsv`.

A line holds a topic, the name of a pattern or of a group of them, a text, and what is left of it
with the replacement #; the sign = is the text itself. Escapes are those of the table of sentences.
The sign ¦ stands in made-up keys, which would be taken for real ones, and outside the text.
"""

from typing import NamedTuple

from mnemic.context.redaction import DEFAULT_PATTERNS
from tests.support.paths import SAMPLES
from tests.support.sentences import BOUND, rows, unescaped

GROUPS = {"default": DEFAULT_PATTERNS, "all": (*DEFAULT_PATTERNS, "phone", "iban", "api_key")}


class Case(NamedTuple):
    """One line of the table."""

    line: int
    topic: str
    name: str
    text: str
    left: str

    def __str__(self):
        return f"{self.line}: {self.topic}, {self.name}"

    @property
    def patterns(self):
        return GROUPS.get(self.name, (self.name,))


def cases():
    """Return all cases of the table, in its order."""
    found = []
    for line, topic, name, *cells in rows(SAMPLES / "redactions.tsv"):
        text, left = (unescaped(cell.replace(BOUND, "")) for cell in cells)
        found.append(Case(line, topic, name, text, text if left == "=" else left))
    return found


FOUND = [case.text for case in cases() if case.topic == "found"]
EMAILS = [case.text for case in cases() if (case.topic, case.name) == ("found", "email")]
