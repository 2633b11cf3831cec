"""The first screen of the README."""

import re

from tests.support.pages import text_of

ROW = re.compile(r"^\| ([^|]+?) \|(.*)\|$", re.MULTILINE)
SAID = {
    "mnemic hybrid": "Finds {} of 100 facts",
    "LanceDB hybrid": "LanceDB hybrid {}",
    "BM25 (SQLite FTS5)": "BM25 {}",
    "grep": "grep {}",
    "mem0 semantic": "Chroma, LangGraph and mem0 without a model {}",
}
"""What the first screen tells of the table, by its rows."""


def rows(title, page):
    """Return the cells of a section's tables by their first cell, without marks of emphasis."""
    section = text_of(page).split(f"\n## {title}\n")[1].split("\n## ")[0]
    plain = section.replace("*", "").replace(" (default)", "")
    found = {}
    for name, cells in ROW.findall(plain):
        found.setdefault(name, []).append([cell.strip() for cell in cells.split("|")])
    return found


def test_the_figures_beside_peers_are_those_of_the_page_of_results():
    screen = text_of("README.md").split("\n## ")[0]
    shown = rows("Beside other memories", "README.md")
    recorded = rows("Figures", "docs/explain/beside-others.md")
    systems = [name for name in shown if name in recorded and name not in {"system", "---"}]
    assert set(SAID) <= set(systems)
    for name in systems:
        ((conversations, own_set, times),) = shown[name]
        (quality,) = recorded[name]
        assert [conversations, own_set, times] == [quality[0], quality[2], quality[3]]
        assert SAID.get(name, "").format(round(100 * float(conversations))) in screen
    assert f"in {shown['mnemic hybrid'][0][2].split()[0]} ms among 20,000 memories" in screen


def test_the_first_screen_is_short_and_has_an_example_with_its_output():
    screen = text_of("README.md").split("\n## ")[0]
    assert len(screen.splitlines()) <= 70
    assert re.search(r"```python\n.*?```\n\n```text\n", screen, re.DOTALL)
    assert "pip install" in screen
    assert "Not for you (yet)" in screen
    assert len(rows("Ten calls", "README.md")) == 1 + 10
