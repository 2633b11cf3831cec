"""Blocks of Markdown as Python sees them; tests/embed/test_chunking_documents.py has more."""

import pytest

from mnemic import _core
from mnemic.errors import InvalidArgumentError


def test_blocks_begin_at_characters_and_headings_have_titles():
    text = "😀\n\n# Ü *b* `c`\n\ntext\n- x\n  - y\n- z\n\n```\n# no\n```\nÄ\n---\n"
    blocks = _core.markdown_blocks(text)
    begins = [text[start:].split("\n", maxsplit=1)[0] for start, *_ in blocks]
    assert begins == ["😀", "# Ü *b* `c`", "text", "- x", "- z", "```", "Ä"]
    headings = [(level, title) for _, level, title in blocks if level]
    assert headings == [(1, "Ü b c"), (2, "Ä")]
    assert _core.markdown_blocks("") == _core.markdown_blocks(" \n[a]: /url") == []


@pytest.mark.parametrize("given", [None, b"text", 5])
def test_only_a_text_has_blocks(given):
    with pytest.raises(TypeError):
        _core.markdown_blocks(given)


def test_a_lone_surrogate_is_no_text():
    with pytest.raises(InvalidArgumentError, match="lone surrogate"):
        _core.markdown_blocks("a\ud800")
