"""Splits a document into parts that an embedder sees whole."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from mnemic import _core
from mnemic.embed.chunking import Chunker

_CHUNKER: Final = Chunker(256)  # whatever the embedder, so that another one finds the same parts
_LONGEST: Final = 2048  # characters, which no part has
_LONGEST_TITLE: Final = 60
_LONGEST_LINE: Final = 100  # so that most of a part is its text
_SEPARATOR: Final = " > "


class DocumentPart(NamedTuple):
    """A part of a document.

    Attributes:
        content: Its text, after a line of those of its headings that do not stand in it.
        headings: The headings that its end is under, the outermost first.
    """

    content: str
    headings: tuple[str, ...]


class _Heading(NamedTuple):
    level: int
    title: str


def document_parts(text: str) -> Iterator[DocumentPart]:
    """Yield the parts of a Markdown or plain text; all but its white space is in one of them.

    A part ends where a heading follows some text. One that would be longer than an embedder's input
    ends with a paragraph, an item of a list, a sentence or a word.
    """
    blocks = _core.markdown_blocks(text)
    starts = [start for start, *_ in blocks]
    headings: list[_Heading] = []
    begin = 0
    for end in _section_ends(blocks, len(text)):
        while begin < end:
            first = bisect_left(starts, begin)
            if first < len(blocks) and starts[first] == begin:
                headings = _above(headings, blocks[first][1])
            line = _line(headings)
            stop = _part_end(text, begin, end, line, starts)
            for _, level, title in blocks[first : bisect_left(starts, stop)]:
                if level:
                    headings = [*_above(headings, level), _Heading(level, _short(title))]
            content = text[begin:stop].strip("\r\n").rstrip()
            if content.strip():
                titles = tuple(heading.title for heading in headings if heading.title)
                yield DocumentPart(line + content, titles)
            begin = stop


def _section_ends(blocks: list[tuple[int, int, str]], length: int) -> Iterator[int]:
    """Yield where headings follow other blocks, and the end."""
    follows_text = False
    for start, level, _ in blocks:
        if level and follows_text:
            yield start
        follows_text = not level
    yield length


def _part_end(text: str, begin: int, end: int, line: str, starts: list[int]) -> int:
    """Return the end of the part of a section that begins here, after a line of headings."""
    ahead = line + text[begin : min(end, begin + _LONGEST)]
    full = begin + _CHUNKER.chunk_end(ahead, 0) - len(line)
    if full >= end:
        return end
    last = bisect_right(starts, full) - 1
    return starts[last] if last >= 0 and starts[last] > begin else full


def _above(headings: list[_Heading], level: int) -> list[_Heading]:
    """Return the headings that a heading of a level is under; all for another block, of level 0."""
    return [heading for heading in headings if not level or heading.level < level]


def _short(title: str) -> str:
    title = " ".join(title.split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def _line(headings: list[_Heading]) -> str:
    titles = [heading.title for heading in headings if heading.title]
    while len(line := _SEPARATOR.join(titles)) > _LONGEST_LINE:
        del titles[0]
    return f"{line}\n\n" if line else ""
