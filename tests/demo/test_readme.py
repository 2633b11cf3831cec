"""The first screen of the README."""

import re

from tests.support.pages import text_of

ROW = re.compile(r"^\| ([^|]+?) \|(.*)\|$", re.MULTILINE)


def rows(text):
    """Return the cells of tables by their first cell, without marks of emphasis."""
    plain = text.replace("*", "").replace(" (default)", "")
    found = {}
    for name, cells in ROW.findall(plain):
        found.setdefault(name, []).append([cell.strip() for cell in cells.split("|")])
    return found


def test_the_figures_beside_peers_are_those_that_the_lab_notes_record():
    screen = text_of("README.md").split("\n## ")[0]
    notes = text_of("docs/lab/performance.md").split("\n## Beside other memories")[1]
    shown, recorded = rows(screen), rows(notes)
    systems = [name for name in shown if name in recorded]
    assert len(systems) >= 7
    for name in systems:
        ((times, conversations, own_set, returned),) = shown[name]
        quality, speed = recorded[name]
        assert times == speed[0]
        assert [conversations, own_set] == [quality[1], quality[4]]
        assert returned == speed[2].split(",")[0]


def test_the_first_screen_is_short_and_has_an_example_with_its_output():
    screen = text_of("README.md").split("\n## ")[0]
    assert len(screen.splitlines()) <= 60
    assert re.search(r"```python\n.*?```\n\n```text\n", screen, re.DOTALL)
    assert "make demo" in screen
    assert "make test" in screen
    assert "What it is not" in screen
