"""Search results as a table of plain text, one line for each hit."""

from collections.abc import Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

from mnemic.model.hit import is_shown
from mnemic.records.lines import HIDDEN, content_of, cut, display_width

if TYPE_CHECKING:
    from mnemic.model.payload import DroppedMemory
    from mnemic.model.results import SearchHit

CONTENT_WIDTH = 48
"""Columns of a content; the rest is cut."""

WORDS_WIDTH = 32
_LEAST_WIDTH = 16


def table_of(hits: Sequence["SearchHit"], width: int | None = None) -> str:
    """Return hits as a table: place, score, its parts, the words matched, and the content.

    Lines end with a newline but the last. A column of a part stands where a hit has a share of it.
    Words of earlier turns stand in brackets. Content and words of sensitive memories are hidden.

    Args:
        hits: The hits, the first at place 1.
        width: Columns that a line takes, where the numbers leave some; else words and contents have
            columns of their own width.
    """
    if not hits:
        return "no hits"
    parts, has_words = _part_names(hits), _have_words(hits)
    head = ["#", "score", *parts, *(["words"] if has_words else []), "content"]
    rows = [
        [str(at), f"{hit.score:.3f}", *_reasons(hit, parts, words=has_words)]
        for at, hit in enumerate(hits, start=1)
    ]
    contents = CONTENT_WIDTH
    if width is not None:
        if has_words:
            for row in rows:
                row[-1] = cut(row[-1], max(width // 4, _LEAST_WIDTH))
        columns = zip(head[:-1], *rows, strict=True)
        taken = sum(2 + max(map(display_width, column)) for column in columns)
        contents = max(width - taken, _LEAST_WIDTH)
    for row, hit in zip(rows, hits, strict=True):
        row.append(content_of(hit, contents))
    return _aligned([head, *rows], numbers=2 + len(parts))


def context_table(
    hits: Sequence["SearchHit"],
    costs: Sequence[int],
    dropped: Sequence["DroppedMemory"],
    others: Sequence["SearchHit"],
) -> str:
    """Return cited and dropped memories as a table, as `table_of` does.

    Args:
        hits: The cited memories.
        costs: Tokens of each one's line; may be missing.
        dropped: The dropped memories.
        others: The hits of dropped memories, in any order; may be missing.
    """
    if not hits and not dropped:
        return "no memories"
    known = {str(hit.id): hit for hit in others}
    explained = [*hits, *known.values()]
    parts, has_words = _part_names(explained), _have_words(explained)
    head = ["#", "score", "tokens", *parts, *(["words"] if has_words else []), "content"]
    rows = [head]
    for at, (hit, cost) in enumerate(zip(hits, chain(costs, repeat(None)), strict=False), 1):
        tokens = "" if cost is None else str(cost)
        reasons = _reasons(hit, parts, words=has_words)
        rows.append([str(at), f"{hit.score:.3f}", tokens, *reasons, _content(hit)])
    blank = [""] * (len(parts) + has_words)
    for one in dropped:
        other = known.get(one.id)
        reasons = blank if other is None else _reasons(other, parts, words=has_words)
        content = f"…{one.id.rpartition('-')[2]}" if other is None else _content(other)
        rows.append(["-", f"{one.score:.3f}", "", *reasons, content, f"{one.step}: {one.reason}"])
    if dropped:
        rows = [row if len(row) > len(head) else [*row, ""] for row in rows]
        rows[0][-1] = "left out"
    return _aligned(rows, numbers=3 + len(parts))


def _aligned(rows: Sequence[list[str]], numbers: int) -> str:
    """Join rows, the numbers of the first columns aligned to the right."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths, numbers) for row in rows)


def _part_names(hits: Sequence["SearchHit"]) -> list[str]:
    """Return the names of the parts that any hit has a share of, in the order of the score."""
    names: dict[str, bool] = {}
    for hit in hits:
        for name, share in ({} if hit.why is None else hit.why.parts).items():
            names[name] = names.get(name, False) or is_shown(share)
    return [name for name, has_share in names.items() if has_share]


def _have_words(hits: Sequence["SearchHit"]) -> bool:
    return any(hit.why is not None and hit.why.words for hit in hits)


def _reasons(hit: "SearchHit", parts: list[str], *, words: bool) -> list[str]:
    """Return the shares of the score and, if wanted, the words matched."""
    shares = {} if hit.why is None else hit.why.parts
    return [*(_share(shares.get(name)) for name in parts), *([_words(hit)] if words else [])]


def _content(hit: "SearchHit") -> str:
    return content_of(hit, CONTENT_WIDTH)


def _share(share: float | None) -> str:
    return "" if share is None or not is_shown(share) else f"{share:+.3f}"


def _words(hit: "SearchHit") -> str:
    if hit.why is None or not hit.why.words:
        return ""
    if hit.entry.hides_content:
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
