"""Tables of English words, read from `data/`, and the words by their part in a sentence."""

import pkgutil
from collections.abc import Iterator


def lines(table: str) -> Iterator[str]:
    """Yield the lines of a table without its comments; an indented line goes on with the last."""
    text = (pkgutil.get_data("mnemic.contradictions", f"data/{table}.txt") or b"").decode()
    for line in text.replace("\n    ", " ").splitlines():
        if line and not line.startswith("#"):
            yield line


def items(text: str) -> list[str]:
    """Return the words and phrases of a list with commas."""
    return text.split(", ")


def entries(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of a table with their words and phrases."""
    for line in lines(table):
        name, _, listed_items = line.partition(": ")
        yield name, items(listed_items)


def listed(text: str) -> list[str]:
    """Return the words of a text in order."""
    return text.split()


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(listed(text))


_PARTS = {name: frozenset(members) for name, members in entries("words")}
STOP_WORDS = _PARTS["stop words"]
FIRST_PERSON = _PARTS["first person"]
PREPOSITIONS = _PARTS["prepositions"]
CONJUNCTIONS = _PARTS["conjunctions"]
"""Words at which a clause ends, and with it what a negation says."""
NEGATORS = _PARTS["negators"]
VERBS = _PARTS["verbs"]
PERSON_VERBS = _PARTS["person verbs"]
"""Verbs whose subject is a person."""
LIGHT_VERBS = _PARTS["light verbs"]
"""Verbs that only lead to what is denied."""
MANY_VALUED = _PARTS["many-valued"]
"""Verbs whose object may be many things at once: two different ones do not disagree."""
FUNCTIONAL = _PARTS["functional"]
"""Verbs and nouns whose object is one thing: two different ones disagree."""
MEASURE_NOUNS = _PARTS["measure nouns"]
"""Nouns that say what a measure measures."""
PEOPLE = _PARTS["people"]
"""Counted people: forty guests and thirty people may be the same ones."""
