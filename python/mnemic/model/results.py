"""What a search returns."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, overload
from uuid import UUID

import msgspec

from mnemic.model.entry import MemoryEntry, MemoryType


class SearchHit(msgspec.Struct, frozen=True):
    """One memory found, and why.

    Attributes:
        entry: The memory, without its embedding.
        score: What it was ranked by; higher is better.
        components: The named parts of the score, each from 0 to 1.
    """

    entry: MemoryEntry
    score: float
    components: dict[str, float]

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.entry.id

    @property
    def content(self) -> str:
        """The memory's text."""
        return self.entry.content

    @property
    def user_id(self) -> str | None:
        """Whom the memory is about."""
        return self.entry.user_id

    @property
    def session_id(self) -> str | None:
        """The session it comes from."""
        return self.entry.session_id

    @property
    def type(self) -> MemoryType:
        """What sort of thing it states."""
        return self.entry.type

    @property
    def created_at(self) -> datetime:
        """When the memory came to be."""
        return self.entry.created_at

    @property
    def tags(self) -> tuple[str, ...]:
        """The memory's tags."""
        return self.entry.tags

    @property
    def metadata(self) -> dict[str, Any]:
        """The memory's metadata."""
        return self.entry.metadata


class SearchResults(Sequence[SearchHit]):
    """The hits of one search, best first: score, then newest, then smallest id (C164).

    Args:
        hits: In that order.
    """

    __slots__ = ("_hits",)

    def __init__(self, hits: Sequence[SearchHit]) -> None:
        self._hits = tuple(hits)

    @overload
    def __getitem__(self, at: int) -> SearchHit: ...
    @overload
    def __getitem__(self, at: slice) -> "SearchResults": ...
    def __getitem__(self, at: int | slice) -> "SearchHit | SearchResults":
        return SearchResults(self._hits[at]) if isinstance(at, slice) else self._hits[at]

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self._hits)

    def __len__(self) -> int:
        return len(self._hits)

    def __eq__(self, other: object) -> bool:
        return self._hits == other._hits if isinstance(other, SearchResults) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(hit.id for hit in self._hits))

    def __repr__(self) -> str:
        return f"SearchResults({list(self._hits)!r})"
