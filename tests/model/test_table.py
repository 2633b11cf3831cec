"""Results with their reasons as a table of plain text."""

import pytest

from mnemic.model.table import cut, display_width
from tests.support.clock import NOON
from tests.support.doors import opened

TEXTS = [
    f"{color} {thing}" for color in ("red", "blue", "green") for thing in ("tea", "boat", "cup")
]


def stocked(texts=TEXTS, **options):
    memory = opened(clock=lambda: NOON, **options)
    memory.add_many(list(texts))
    return memory


def test_explained_results_print_as_a_table():
    with stocked(["red tea", "the boat"], embedder=None) as memory:
        memory.add("红茶 and more red words\nthan fit " + "into the line " * 9)
        found = memory.search("red tea", explain=True)
        lines = str(found).splitlines()
        assert lines == found.table().splitlines()
        assert len(lines) == 1 + len(found) == 3
        assert lines[0].split() == ["#", "score", "keyword", "words", "content"]
        assert lines[1].split()[-2:] == ["red", "tea"]
        assert lines[2].endswith("…")
        starts = {display_width(line[: line.index(text)]) for line, text in
                  [(lines[0], "content"), (lines[2], "红茶 and")]}  # fmt: skip
        assert len(starts) == 1


def test_results_without_reasons_have_a_table_and_print_as_before():
    with stocked(["red tea"]) as memory:
        found = memory.search("red tea")
        assert str(found) == repr(found)
        assert found.table().splitlines()[0].split() == ["#", "score", "content"]
        assert memory.search("red", user_id="u").table() == "no hits"


@pytest.mark.parametrize(
    ("text", "width", "wanted"),
    [("red", 3, "red"), ("red tea", 5, "red…"), ("红茶红茶", 5, "红茶…"), ("a\nb\x1b", 9, "a b")],
)
def test_texts_are_cut_to_columns(text, width, wanted):
    assert cut(text, width).rstrip() == wanted
    assert display_width(cut(text, width)) <= width
