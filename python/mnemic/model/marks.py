"""Marks: what holds of an answer as a whole, carried from the search to its result."""

from datetime import datetime
from typing import Any, Literal, NamedTuple, Self

import msgspec


class Marks(NamedTuple):
    """What holds of an answer as a whole.

    Results have these as fields of their own, as far as they apply, and by the same names.

    Attributes:
        degraded: Whether the embedder failed, so that a hybrid search was answered by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the deadline passed, so that better memories may be missing.
        approximate: Whether an approximate index chose the memories that were ranked.
        stale_since: Since when changes may be missing, because the store cannot be read; else None.
        hint: A sentence about the cause of an empty answer, if one is likely; else None.
        by_another: Whether the query names one speaker, and the best memory is by another.
        searched_in: Whether the index of all memories was ranked, or what the database selected.
    """

    degraded: bool = False
    degraded_reason: str | None = None
    partial: bool = False
    approximate: bool = False
    stale_since: datetime | None = None
    hint: str | None = None
    by_another: bool = False
    searched_in: Literal["memory", "database"] = "memory"

    @classmethod
    def read(cls, result: msgspec.Struct) -> Self:
        """Return the marks of a result."""
        names = (name for name in cls._fields if name in result.__struct_fields__)
        return cls(**{name: getattr(result, name) for name in names})

    @property
    def is_lasting(self) -> bool:
        """Whether the same search would find the same later, until a memory changes."""
        return not (self.degraded or self.partial) and self.stale_since is None

    def united(self, others: "Marks") -> "Marks":
        """Return the marks of an answer that others are a part of: its own, where it has them."""
        return Marks._make(own or other for own, other in zip(self, others, strict=True))

    def of(self, kind: type[msgspec.Struct]) -> dict[str, Any]:
        """Return those that results of a kind have, by their names."""
        if self is UNMARKED:  # most are
            return {}
        names = kind.__struct_fields__
        return {name: mark for name, mark in self._asdict().items() if name in names}


UNMARKED = Marks()

SHOWN = Marks._fields[:-1]
"""The names of those that the repr of a result shows."""
