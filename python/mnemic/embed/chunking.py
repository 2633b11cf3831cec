"""Splits texts for embedders: long ones into overlapping chunks, documents into parts."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from mnemic import _core
from mnemic.reporting.logs import logger

MAX_CHUNKS = 32
"""Maximum number of chunks, so that a text of 10 MB takes the default embedder at most a second;
longer texts are sampled."""

Span: TypeAlias = tuple[int, int]
"""Begin and end of a chunk in its text."""

_OVERLAP = 0.15  # of a chunk, so that the text at its end is embedded with the text after it
_MARKS = 2  # tokens that models put around each text
_LATIN_IN_A_TOKEN = 3  # English has 4 to 5 in most vocabularies, code and names fewer
_LAST_LATIN = "\u024f"
_CHARACTERS_IN_A_TOKEN = 8  # more than nearly all texts have

_SENTENCE_END = re.compile(r"[.!?\u2026][\"')\]\u00bb\u201d\u2019]*\s+|[\u3002\uff01\uff1f]|\n+")
_WORD_END = re.compile(r"\s+")

_logger = logger(__name__)


class Chunker:
    """Splits texts so that an embedder sees each chunk whole.

    Args:
        max_tokens: Maximum number of tokens of a text in its vector; None is no maximum.
        seen: Returns the number of characters at the beginning of a text that are in its vector; by
            default an estimate of three Latin letters or one other character in a token.
    """

    def __init__(self, max_tokens: int | None, seen: Callable[[str], int] | None = None) -> None:
        self._max_text_tokens = None if max_tokens is None else max(1, max_tokens - _MARKS)
        self._seen = self._estimated if seen is None else seen

    def chunks(self, text: str) -> list[str]:
        """Return the chunks of a text in order; the text itself if it fits.

        Blank chunks are omitted, unless all are blank.
        """
        if self.is_short(text):
            return [text]
        return [text[begin:end] for begin, end in self._embedded_spans(text)]

    def span(self, text: str, number: int) -> Span | None:
        """Return the span of one of several chunks, by its place in `chunks`; else None."""
        spans = [] if self.is_short(text) else self._embedded_spans(text)
        return spans[number] if number < len(spans) > 1 else None

    def _embedded_spans(self, text: str) -> list[Span]:
        spans = self.spans(text)
        return [span for span in spans if not text[slice(*span)].isspace()] or spans[:1]

    def all_fit(self, texts: list[str]) -> bool:
        """Return whether texts are certainly one chunk each."""
        return all(map(self.is_short, texts))

    def spans(self, text: str) -> list[Span]:
        """Return the spans of the chunks of a text.

        A chunk ends with a sentence, or else with a word, or else where it is full, and the next
        begins about 15 % of its length before. If that takes more than `MAX_CHUNKS`, so many begin
        at equal distances, the first with the text, and the last ends with it: the longer the text,
        the less they overlap, and from some length on there is text between them.
        """
        spans: list[Span] = []
        begin = 0
        while len(spans) < MAX_CHUNKS:
            end = self.chunk_end(text, begin)
            spans.append((begin, end))
            if end == len(text):
                return spans
            begin = _next_begin(text, begin, end)
        return self._spread(text, max(end - begin for begin, end in spans))

    def is_short(self, text: str) -> bool:
        """Return whether a text certainly fits: no token has less than a byte."""
        if self._max_text_tokens is None:
            return True
        if len(text) > self._max_text_tokens:
            return False
        return text.isascii() or len(text.encode()) <= self._max_text_tokens

    def chunk_end(self, text: str, begin: int) -> int:
        """Return the end of a chunk that begins here, with a sentence, a word or full."""
        full = self._seen_end(text, begin)
        if full == len(text):
            return full
        size = full - begin
        end = (
            _last_match_end(_SENTENCE_END, text, full - size // 4, full)
            or _last_match_end(_WORD_END, text, full - size // 2, full)
            or full
        )
        # Half of a word may have more tokens alone than as part of the whole word.
        while end - begin > (seen := max(1, self._seen(text[begin:end]))):
            end = begin + seen
        return end

    def _seen_end(self, text: str, begin: int) -> int:
        """Return the end of the text that a vector beginning here covers."""
        capacity = len(text) if self._max_text_tokens is None else self._max_text_tokens
        size = _CHARACTERS_IN_A_TOKEN * capacity
        while True:
            seen = self._seen(text[begin : begin + size])
            if seen < size or begin + size >= len(text):
                return min(begin + max(1, seen), len(text))
            size *= 2

    def _spread(self, text: str, longest: int) -> list[Span]:
        near = longest // 8
        last = _word_begin(text, len(text) - longest, near)
        while (unseen := len(text) - self._seen_end(text, last)) > 0:
            last += unseen
        begins = [last * number // (MAX_CHUNKS - 1) for number in range(MAX_CHUNKS)]
        begins[1:-1] = [_word_begin(text, begin, near) for begin in begins[1:-1]]
        spans = [(begin, self.chunk_end(text, begin)) for begin in begins]
        between = sum(max(0, after[0] - before[1]) for before, after in pairwise(spans))
        if between:
            _logger.info(
                "a text of %d characters is longer than %d chunks: %d characters between them are "
                "not in its vectors",
                len(text),
                MAX_CHUNKS,
                between,
            )
        return spans

    def _estimated(self, text: str) -> int:
        capacity = (
            len(text)
            if self._max_text_tokens is None
            else _LATIN_IN_A_TOKEN * self._max_text_tokens
        )
        if text.isascii():
            return min(len(text), capacity)
        for seen, character in enumerate(text):
            capacity -= 1 if character <= _LAST_LATIN else _LATIN_IN_A_TOKEN
            if capacity < 0:
                return seen
        return len(text)


def _next_begin(text: str, begin: int, end: int) -> int:
    """Return the begin of the next chunk: at a sentence or else a word, near this one's end."""
    overlap = max(1, round(_OVERLAP * (end - begin)))
    earliest, usual, latest = end - overlap * 3 // 2, end - overlap, end - overlap // 2
    sentence = _SENTENCE_END.search(text, earliest, latest)
    word = _WORD_END.search(text, usual, latest)
    found = sentence or word
    wanted = found.end() if found and found.end() < end else usual
    return max(begin + 1, wanted)


def _word_begin(text: str, begin: int, near: int) -> int:
    """Return the begin of the next word, or the given position if none is near."""
    found = _WORD_END.search(text, begin, begin + near)
    return found.end() if found and found.end() < len(text) else begin


def _last_match_end(pattern: re.Pattern[str], text: str, earliest: int, latest: int) -> int | None:
    """Return the end of the last match between two positions, None if there is none."""
    ends = [found.end() for found in pattern.finditer(text, earliest, latest)]
    return ends[-1] if ends else None


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
