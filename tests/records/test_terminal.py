"""Results and memories in the package rich, which mnemic never imports by itself."""

import io
import subprocess
import sys

import pytest

from mnemic import MemoryPage, SearchHit, SearchResults
from tests.support.entries import entry

CODE = """
import sys
from mnemic import Memory
with Memory(":memory:", embedder=None) as memory:
    memory.add("Likes tea")
    found = memory.search("tea")
    repr(found), str(found), found._repr_html_(), found.to_dict(), found[0].__rich_repr__()
    lazy = {"rich", "pandas"}
    print(lazy & set(sys.modules))
"""

LAZY = """
import sys
from mnemic import Memory
with Memory(":memory:", embedder=None) as memory:
    memory.add("Likes tea")
    memory.search("tea")
print({"html", "mnemic.records.plain", "mnemic.records.display"} & set(sys.modules))
"""


@pytest.mark.parametrize("code", [CODE, LAZY])
def test_what_is_not_used_is_not_imported(code):
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "set()"


def printed(record, width=150):
    console = pytest.importorskip("rich.console").Console(
        file=io.StringIO(), width=width, color_system=None
    )
    console.print(record)
    return console.file.getvalue()


def test_results_and_pages_are_tables():
    one, other = entry("Likes tea", user_id="alice"), entry("Likes bread", type="event")
    shown = printed(SearchResults([SearchHit(one, 0.75, {}), SearchHit(other, 0.5, {})]))
    assert shown.splitlines()[0].strip() == "SearchResults: 2 hits"
    for cell in ("0.750", "Likes tea", "alice", "0.500", "Likes bread", "event", one.id.hex[-12:]):
        assert cell in shown
    shown = printed(MemoryPage((one, other), "next"))
    assert shown.splitlines()[0].strip() == "MemoryPage: 2 entries, has_more=True"
    assert "score" not in shown


def test_contents_are_neither_markup_nor_control_codes():
    text = "[bold red]tea[/] [/x] [link=http://evil]a[/link] :smile: \x1b[31m\u202e"
    shown = printed(SearchResults([SearchHit(entry(text), 0.5, {})]), 200)
    assert "[bold red]tea[/] [/x] [link=http://evil]a[/link] :smile:" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_sensitive_contents_are_hidden():
    one = entry("zqsecret", sensitive=True, tags=["zqsecret"], metadata={"zqsecret": 1})
    hit = SearchHit(one, 0.5, {})
    for record in (one, hit, [one, hit], SearchResults([hit]), MemoryPage((one,), None)):
        shown = printed(record)
        assert "zqsecret" not in shown
        assert "<hidden>" in shown


def test_a_memory_has_all_its_fields_in_rich():
    shown = printed(entry("Likes tea", tags=["drink"], metadata={"cups": 2}, source="notes.md"))
    for text in ("MemoryEntry(", "content='Likes tea'", "('drink',)", "{'cups': 2}", "notes.md"):
        assert text in shown
