"""Memories as a client sees them: short lines, and whole texts, all of them fenced as data."""

from collections.abc import Iterable, Sequence
from typing import Final

from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from mnemic import MemoryEntry
from mnemic.mcp.fencing import fenced
from mnemic.model import Passage
from mnemic.policy import EstimatedTokens

LINE_WIDTH: Final = 160
_HEAD: Final = 4 * LINE_WIDTH  # what is read of a memory for its line
_COUNT: Final = EstimatedTokens().count


class Line(TypedDict):
    """A memory in a list."""

    id: str
    line: str
    date: str
    type: str
    score: float | None


class Whole(TypedDict):
    """A memory with its whole text, in which line breaks are spaces."""

    id: str
    content: str
    date: str
    type: str
    tags: list[str]
    importance: float
    version: int
    tokens: int
    is_cut: bool


def lines_of(
    entries: Sequence[MemoryEntry],
    scores: Iterable[float | None],
    passages: Sequence[Passage | None] = (),
) -> list[Line]:
    """Return the lines of memories in their order.

    Args:
        entries: The memories.
        scores: A score of each.
        passages: What of a long memory a query is about, in place of its beginning.
    """
    chosen = passages or [None] * len(entries)
    heads = [
        (_about(passage) if passage else entry.content)[:_HEAD]
        for entry, passage in zip(entries, chosen, strict=True)
    ]
    return [
        Line(
            id=str(entry.id),
            line=text if len(text) <= LINE_WIDTH else f"{text[: LINE_WIDTH - 1].rstrip()}…",
            date=f"{entry.created_at:%Y-%m-%d}",
            type=entry.type.value,
            score=score if score is None else round(score, 3),
        )
        for entry, text, score in zip(entries, fenced(heads), scores, strict=True)
    ]


def _about(passage: Passage) -> str:
    """Return a passage from the sentence on that has the longest word of the query."""
    word = max(passage.words, key=len, default="")
    at = passage.text.lower().find(word.lower())
    return passage.text[passage.text.rfind(". ", 0, at) + 1 :].lstrip() if at > 0 else passage.text


def shown(lines: Iterable[Line]) -> str:
    """Return lines as text: the id first, then score, day, type and contents."""
    return "\n".join(
        " ".join([one["id"], *_score(one["score"]), one["date"], f"{one['type']}:", one["line"]])
        for one in lines
    )


def _score(score: float | None) -> list[str]:
    return [] if score is None else [f"{score:.3f}"]


def wholes_of(entries: Sequence[MemoryEntry], most_tokens: int) -> list[Whole]:
    """Return memories with their whole texts, as many of the first ones as the tokens allow.

    The first of them is cut where it alone is longer.

    Args:
        entries: The memories.
        most_tokens: Tokens of all texts, estimated.
    """
    kept: list[Whole] = []
    left = most_tokens
    for entry, text in zip(entries, fenced(one.content for one in entries), strict=True):
        is_cut = not kept and _COUNT(text) > left
        content = _cut(text, left) if is_cut else text
        tokens = _COUNT(content)
        left -= tokens
        if left < 0:
            break
        kept.append(_whole(entry, content, tokens, is_cut=is_cut))
    return kept


def _cut(text: str, most_tokens: int) -> str:
    """Return the longest beginning of a text that has at most so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _COUNT(text[:middle]) <= most_tokens else (low, middle - 1)
    return text[:low]


def _whole(entry: MemoryEntry, content: str, tokens: int, *, is_cut: bool) -> Whole:
    return Whole(
        id=str(entry.id),
        content=content,
        date=f"{entry.created_at:%Y-%m-%d}",
        type=entry.type.value,
        tags=fenced(entry.tags),
        importance=entry.importance,
        version=entry.version,
        tokens=tokens,
        is_cut=is_cut,
    )
