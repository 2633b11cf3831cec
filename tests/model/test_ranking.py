"""The table of options in docs/explain/search.md: complete, and with the values of the presets."""

import re

import msgspec
import pytest

from mnemic.model import HYBRID, KEYWORD, AdaptiveShare
from tests.support.paths import ROOT

ROW = re.compile(r"^\| (`[a-z_.0-9]+`(?:, `[a-z_.0-9]+`)*) \| ([^|]+) \| ([^|]+) \| ", re.MULTILINE)
OF_ALL_RANKINGS = {"weights", "recency", "salience"}
"""Options of the other parts of a score, which the page describes above the table."""


def documented():
    """Return the values of each option by its dotted name, of the hybrid and the keyword preset."""
    page = (ROOT / "docs/explain/search.md").read_text(encoding="utf-8")
    table = page[page.index("| option | hybrid") :].partition("\n\n")[0]
    options = {}
    for names, *columns in ROW.findall(table):
        named = re.findall(r"[a-z_.0-9]+", names)
        pairs = zip(*(values(column, len(named)) for column in columns), strict=True)
        options.update(zip(named, pairs, strict=True))
    return options


def values(column, count):
    found = eval(column.strip(" `"), {"AdaptiveShare": AdaptiveShare})  # noqa: S307 - our own page
    return found if count > 1 else (found,)


def options_of(struct, prefix=""):
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct) and not isinstance(value, AdaptiveShare):
            yield from options_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@pytest.mark.parametrize(("preset", "column"), [(HYBRID, 0), (KEYWORD, 1)])
def test_every_option_is_documented_with_the_values_of_the_presets(preset, column):
    expected = {
        name: value
        for name, value in options_of(preset)
        if name.partition(".")[0] not in OF_ALL_RANKINGS
    }
    assert {name: pair[column] for name, pair in documented().items()} == expected
