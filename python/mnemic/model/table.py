"""Search results as a table of plain text, one line for each hit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemic.records.lines import HIDDEN, content_of, cut, display_width

if TYPE_CHECKING:
    from mnemic.model.results import SearchHit

CONTENT_WIDTH = 48
"""Columns of a content; the rest is cut."""

WORDS_WIDTH = 32

MIN_SHOWN = 0.0005
"""Shares that are rounded to 0 are left out."""


def table_of(hits: Sequence["SearchHit"]) -> str:
    """Return hits as a table: place, score, its parts, the words matched, and the content.

    Lines end with a newline but the last. A column of a part stands where a hit has a share of it.
    Words of earlier turns stand in brackets. Content and words of sensitive memories are hidden.
    """
    if not hits:
        return "no hits"
    parts = _part_names(hits)
    words = any(hit.why is not None and hit.why.words for hit in hits)
    head = ["#", "score", *parts, *(["words"] if words else []), "content"]
    rows = [_cells(at, hit, parts, words=words) for at, hit in enumerate(hits, start=1)]
    widths = [max(map(display_width, column)) for column in zip(head, *rows, strict=True)]
    numbers = 2 + len(parts)
    return "\n".join(_line(row, widths, numbers) for row in [head, *rows])


def _part_names(hits: Sequence["SearchHit"]) -> list[str]:
    """Return the names of the parts that any hit has a share of, in the order of the score."""
    names: dict[str, bool] = {}
    for hit in hits:
        for name, share in ({} if hit.why is None else hit.why.parts).items():
            names[name] = names.get(name, False) or abs(share) >= MIN_SHOWN
    return [name for name, is_shown in names.items() if is_shown]


def _cells(at: int, hit: "SearchHit", parts: list[str], *, words: bool) -> list[str]:
    shares = {} if hit.why is None else hit.why.parts
    shown = [_share(shares.get(name)) for name in parts]
    matched = [_words(hit)] if words else []
    content = content_of(hit, CONTENT_WIDTH)
    return [str(at), f"{hit.score:.3f}", *shown, *matched, content]


def _share(share: float | None) -> str:
    return "" if share is None or abs(share) < MIN_SHOWN else f"{share:+.3f}"


def _words(hit: "SearchHit") -> str:
    if hit.why is None or not hit.why.words:
        return ""
    if hit.entry.sensitive:
        return HIDDEN
    shown = [f"({word.memory})" if word.turn else word.memory for word in hit.why.words]
    return cut(", ".join(dict.fromkeys(shown)), WORDS_WIDTH)


def _line(cells: list[str], widths: list[int], numbers: int) -> str:
    """Align numbers to the right, texts to the left."""
    padded = [
        _padding(cell, width) + cell if at < numbers else cell + _padding(cell, width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _padding(cell: str, width: int) -> str:
    return " " * (width - display_width(cell))
