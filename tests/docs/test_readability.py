"""The sentences of the pages are short."""

import pytest

readability = pytest.importorskip("tools.readability", reason="tools/ comes with the repository")

PAGE = """# A title. Of two parts

Two words. It has [five words](page.md#part), not `six or more`. E.g. this
one (of seven words) ends late!

<!-- Not read. -->
```python
print("Not read.")
```

- An item without an end
- Another one: 3.5 is
  no end

| Cell. Of two | Other |
|---|---|
| `a \\| b` | Last |
"""


def test_sentences_are_those_of_paragraphs_and_items():
    assert [(readability.words_in(one), one) for one in readability.sentences_of(PAGE)] == [
        (2, "Two words."),
        (6, "It has five words, not Code."),
        (8, "E.g. this one (of seven words) ends late!"),
        (5, "An item without an end"),
        (6, "Another one: 3.5 is no end"),
    ]


def test_cells_are_read_where_they_count():
    added = readability.sentences_of(PAGE, with_cells=True)[5:]
    assert added == ["Cell.", "Of two", "Other", "Code", "Last"]


@pytest.mark.parametrize(
    ("name", "text", "is_too_hard"),
    [
        ("page.md", "word " * 16, False),
        ("page.md", "word " * 17, True),
        ("page.md", "One. Two. " + "word " * 46, True),
        ("decisions.md", "word " * 45, False),
        ("decisions.md", f"| {'word ' * 46} |", True),
        ("lab/page.md", "word " * 46, False),
    ],
)
def test_long_sentences_and_a_high_median_are_told(  # noqa: PLR0917 - three of them are fixtures
    name, text, is_too_hard, tmp_path, capsys, monkeypatch
):
    page = tmp_path / name
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
    monkeypatch.setattr(readability, "ROOT", tmp_path)
    assert readability.main([str(page)]) is is_too_hard
    assert name in capsys.readouterr().out


def test_the_pages_are_plain():
    assert not readability.main([])
