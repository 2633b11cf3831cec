"""Records on one line: short ids, and texts cut to a width."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from mnemic.records.secrets import without_passwords

CONTENT_WIDTH = 60
"""Columns of a content in a repr; the rest is cut."""

SHOWN_ITEMS = 3
"""Items of a list in its repr."""

HIDDEN = "<hidden>"
"""In place of the content of a sensitive memory."""

READ_PER_COLUMN = 8
"""Characters that are read for each column, so that long texts cost no more than short ones."""

_WIDE = frozenset("WF")
_WITHOUT_WIDTH = frozenset({"Mn", "Me", "Cf"})


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: two for each wide character."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def cut(text: str, width: int) -> str:
    """Return a text on one line, without control characters, cut to a number of columns."""
    head = text[: width * READ_PER_COLUMN]
    flat = "".join(letter if letter.isprintable() else " " for letter in " ".join(head.split()))
    if len(head) == len(text) and display_width(flat) <= width:
        return flat
    kept, remaining = [], width - 1
    for letter in flat:
        remaining -= _width_of(letter)
        if remaining < 0:
            break
        kept.append(letter)
    return "".join(kept).rstrip() + "…"


def _width_of(letter: str) -> int:
    if unicodedata.category(letter) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def short_id(identity: UUID) -> str:
    """Return the last part of an id, which differs between ids of one moment."""
    return f"…{str(identity).rpartition('-')[2]}"


def entry_of(item: Any) -> Any:
    """Return the memory of a hit, or the memory itself."""
    return getattr(item, "entry", item)


def content_of(item: Any, width: int = CONTENT_WIDTH) -> str:
    """Return the content of a memory or of a hit, cut; that of a sensitive one is hidden."""
    entry = entry_of(item)
    if entry.hides_content:
        return HIDDEN
    head = entry.content[: 2 * width * READ_PER_COLUMN]  # a password may stand across the cut
    return cut(without_passwords(head), width)


def row_of(item: Any, at: int, width: int = CONTENT_WIDTH) -> list[str]:
    """Return number, score if there is one, content, user and type of an item."""
    entry = entry_of(item)
    score = [f"{item.score:.3f}"] if hasattr(item, "score") else []
    user = "" if entry.user_id is None else cut(entry.user_id, CONTENT_WIDTH)
    return [str(at), *score, content_of(entry, width), user, entry.type.name.lower()]


def memory_line(item: Any, *before: str) -> str:
    """Return the repr of a memory or of a hit: id, content, user, and its state if not active."""
    entry = entry_of(item)
    content = HIDDEN if entry.hides_content else repr(content_of(entry))
    identity = [f"id={short_id(entry.id)}"] if entry.names_id else []
    parts = [*before, *identity, f"content={content}"]
    if entry.user_id is not None:
        parts.append(f"user_id={cut(entry.user_id, CONTENT_WIDTH)!r}")
    parts += [f"{name}={value}" for name, value in _state(entry)]
    return without_passwords(f"{type(item).__name__}({', '.join(parts)})")


def _state(entry: Any) -> list[tuple[str, object]]:
    """Return the names and values that tell an entry from an active fact."""
    named = (
        ("type", entry.type.name.lower(), bool(entry.type)),
        ("status", entry.status.name.lower(), bool(entry.status)),
        ("is_forgotten", True, entry.is_forgotten),
        ("sensitive", True, entry.sensitive),
    )
    return [(name, repr(value)) for name, value, is_shown in named if is_shown]


def list_lines(name: str, items: Sequence[Any], title: str) -> str:
    """Return the repr of a list: its title and the first items, one a line."""
    if not items:
        return f"{name}({title})"
    lines = [_scored(item) for item in items[:SHOWN_ITEMS]]
    more = len(items) - len(lines)
    begin = " " if len(items) == 1 else "\n  "
    shown = begin + "\n  ".join([*lines, *([f"… and {more} more"] if more else [])])
    return without_passwords(f"{name}({title}:{shown})")


def list_title(
    count: int, nouns: tuple[str, str], total: int | None, marks: Iterable[tuple[str, Any]]
) -> str:
    """Return the number of items, of how many, and the marks that are neither None nor False."""
    of = "" if total is None or total == count else f" of {total}"
    shown = [f"{key}={value!r}" for key, value in marks if value is not None and value is not False]
    return ", ".join([f"{count}{of} {nouns[0] if count == 1 and not of else nouns[1]}", *shown])


def _scored(item: Any) -> str:
    content = HIDDEN if entry_of(item).hides_content else repr(content_of(item))
    score = getattr(item, "score", None)
    return content if score is None else f"{score:.3f} {content}"
