"""Memories as one text for a prompt: numbered, without duplicates, within a budget of tokens."""

import functools
from collections.abc import Sequence
from typing import Any, Self

from mnemic._core import fingerprint_digests
from mnemic.context.tokens import EstimatedTokens, counted
from mnemic.model import MemoryEntry, validation
from mnemic.protocols import TokenCounter


class MemoryContext(str):
    """A text made of memories.

    Attributes:
        memories: The cited memories, in the order of their numbers.
        tokens: Number of tokens of the text.
        degraded: Whether the embedder failed, so that the memories were found by keywords.
        partial: Whether the timeout passed, so that better memories may be missing.
        approximate: Whether an approximate index chose the memories that were ranked: better ones
            may be missing.
        hint: A sentence about the cause of an empty text, if one is likely; else None.
    """

    __slots__ = ("approximate", "degraded", "hint", "memories", "partial", "tokens")

    memories: tuple[MemoryEntry, ...]
    tokens: int
    degraded: bool
    partial: bool
    approximate: bool
    hint: str | None

    def __new__(
        cls,
        text: str = "",
        memories: Sequence[MemoryEntry] = (),
        tokens: int = 0,
        *,
        degraded: bool = False,
        partial: bool = False,
        approximate: bool = False,
        hint: str | None = None,
    ) -> Self:
        """Return a text with its memories."""
        made = super().__new__(cls, text)
        made.memories = tuple(memories)
        made.tokens = tokens
        made.degraded = degraded
        made.partial = partial
        made.approximate = approximate
        made.hint = hint
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return text, memories and marks as plain JSON types."""
        marks = {name: getattr(self, name) for name in ("degraded", "partial", "approximate")}
        memories = [entry.to_dict() for entry in self.memories]
        return {
            "text": str(self),
            "memories": memories,
            "tokens": self.tokens,
            **marks,
            "hint": self.hint,
        }

    def __getnewargs_ex__(
        self,
    ) -> tuple[tuple[str, tuple[MemoryEntry, ...], int], dict[str, bool | str | None]]:
        """Preserve the attributes in pickles."""
        names = ("degraded", "partial", "approximate", "hint")
        marks = {name: getattr(self, name) for name in names}
        return (str(self), self.memories, self.tokens), marks


def packed(
    entries: Sequence[MemoryEntry],
    max_tokens: int,
    counter: TokenCounter | None = None,
    *,
    degraded: bool = False,
    partial: bool = False,
    approximate: bool = False,
    hint: str | None = None,
) -> MemoryContext:
    """Return as many of these memories, the first ones first, as fit into a number of tokens.

    A memory is one line: its number, its date, its speaker, and its text, both with white space and
    line breaks as single spaces, so that neither can begin a line of its own. A memory that does
    not fit is skipped, and a later one that fits takes its room.

    Args:
        entries: Best first; of those with the same text the first is used.
        max_tokens: Maximum number of tokens of the whole text.
        counter: Token counter; an estimate by script unless given.
        degraded: See `MemoryContext`.
        partial: See `MemoryContext`.
        approximate: See `MemoryContext`.
        hint: See `MemoryContext`.

    Raises:
        InvalidArgumentError: If the counter's result is not an int, or is negative.
    """
    made = functools.partial(
        MemoryContext, degraded=degraded, partial=partial, approximate=approximate, hint=hint
    )
    used = EstimatedTokens() if counter is None else validation.capable("counter", counter, "count")
    kept: list[MemoryEntry] = []
    lines: list[str] = []
    room = max_tokens
    for entry in _distinct([entry for entry in entries if entry.content]):
        line = _line(len(lines) + 1, entry)
        tokens = counted(used, f"{line}\n")
        if tokens <= room:
            kept.append(entry)
            lines.append(line)
            room -= tokens
    while lines:
        text = "\n".join(lines)
        tokens = counted(used, text)
        if tokens <= max_tokens:
            return made(text, kept, tokens)
        kept.pop()  # whole texts may take more than their lines, by some counters
        lines.pop()
    return made()


def _distinct(entries: Sequence[MemoryEntry]) -> list[MemoryEntry]:
    digests = fingerprint_digests([entry.content for entry in entries])
    firsts = dict(zip(reversed(digests), reversed(entries), strict=True))
    return [firsts[digest] for digest in dict.fromkeys(digests)]


def _line(number: int, entry: MemoryEntry) -> str:
    text = " ".join(entry.content.split())
    date = entry.created_at.date().isoformat()
    speaker = " ".join((entry.speaker or entry.role or "").split())
    label = f"{speaker}: " if speaker else ""
    prefix = "" if text.casefold().startswith(label.casefold()) else label
    return f"[{number}] {date} {prefix}{text}"
