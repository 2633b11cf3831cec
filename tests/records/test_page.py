"""Tables of HTML for notebooks: whatever the memories hold, they are text."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import MemoryEntry, MemoryPage, SearchHit, SearchResults
from mnemic.model import ScoredMemory
from mnemic.records.display import MAX_ROWS
from tests.support.clock import NOON
from tests.support.entries import entry

TAGS = {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}

HOSTILE = [
    "<script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' style='position:fixed",
    "<!-- <![CDATA[ &lt;b&gt; &#60;i&#62;",
    "<style>*{display:none}</style><iframe srcdoc='x'>",
    "$$\\href{javascript:alert(1)}{x}$$",
    "\x1b]8;;http://evil\x07link \u202egnp.exe\u2066 \ufeff",
]


class Reader(HTMLParser):
    """Takes the tags, the attributes and the texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []
        self.cells, self.others = [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= set(attrs)
        self.open.append(tag)
        if tag in ("td", "th", "p"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells[-1] += data

    def handle_comment(self, data):
        self.others.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def pages_of(one):
    hit = SearchHit(one, 0.5, {})
    records = (one, hit, SearchResults([hit]), MemoryPage((one,), None), ScoredMemory(one, 1.0, ""))
    return [record._repr_html_() for record in records]


def check(page):
    read = Reader(page)
    assert read.tags <= TAGS
    assert read.attributes <= {("style", "text-align: left")}
    assert read.others == []
    assert all(text.isprintable() for text in read.cells)
    return read


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_contents_are_text(text):
    one = entry(
        f"tea {text}",
        user_id=text.replace("\x1b", "").replace("\x07", "")[:40],
        speaker="<b>",
        category="<b>",
        metadata={text: text},
        tags=["<b>"],
    )
    for page in pages_of(one):
        cells = " ".join(check(page).cells)
        assert "tea" in cells
        assert "<script" not in page


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_content_is_text(text):
    for page in pages_of(entry(f"tea {text}", metadata={"key": text})):
        check(page)


def test_sensitive_memories_are_hidden():
    secret = dict.fromkeys(("speaker", "role", "category", "source"), "zqsecret")
    one = entry("zqsecret", sensitive=True, tags=["zqsecret"], metadata={"zqsecret": 1}, **secret)
    for page in pages_of(one):
        assert "zqsecret" not in page
        assert "<hidden>" in check(page).cells


def test_a_table_has_a_line_for_each_memory():
    one = MemoryEntry(
        id="00000000-0000-0000-0000-000000000007",
        agent_id="a",
        content="Likes tea",
        user_id="alice",
        type="preference",
        created_at=NOON,
    )
    cells = Reader(SearchResults([SearchHit(one, 0.5, {})])._repr_html_()).cells
    assert cells == [
        "SearchResults: 1 hit",
        *("#", "score", "content", "user", "type", "created", "id"),
        *("1", "0.500", "Likes tea", "alice", "preference", "2026-05-01 12:00:00+00:00"),
        "00000000-0000-0000-0000-000000000007",
    ]
    fields = Reader(one._repr_html_()).cells
    assert fields[0] == "MemoryEntry"
    assert dict(zip(fields[1::2], fields[2::2], strict=True)) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "agent_id": "a",
        "content": "Likes tea",
        "created_at": "2026-05-01T12:00:00Z",
        "user_id": "alice",
        "type": "preference",
    }


def test_long_lists_and_contents_are_cut():
    many = MemoryPage(tuple(entry("tea " * 1_000) for _ in range(MAX_ROWS + 7)), None)
    read = Reader(many._repr_html_())
    assert read.cells[-1] == "and 7 more"
    assert len([cell for cell in read.cells if cell.startswith("tea")]) == MAX_ROWS
    assert len(many._repr_html_()) < MAX_ROWS * 500
    assert Reader(SearchResults([])._repr_html_()).cells[0] == "SearchResults: 0 hits"
