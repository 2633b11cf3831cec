"""Hit: a memory with its score, the common part of all results that find memories."""

from datetime import datetime
from typing import Any
from uuid import UUID

from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.model.redacted import Redacted


class Hit(Redacted, frozen=True):
    """A memory with its score. Each kind of search has its own kind of hit, with more fields.

    Attributes:
        entry: The memory, without its embedding.
        score: From 0 to 1, higher is better; its meaning is that of the search.
    """

    entry: MemoryEntry
    score: float

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
        """The user whom the memory is about."""
        return self.entry.user_id

    @property
    def session_id(self) -> str | None:
        """The memory's session."""
        return self.entry.session_id

    @property
    def type(self) -> MemoryType:
        """The memory's type."""
        return self.entry.type

    @property
    def created_at(self) -> datetime:
        """The memory's time of creation."""
        return self.entry.created_at

    @property
    def tags(self) -> tuple[str, ...]:
        """The memory's tags."""
        return self.entry.tags

    @property
    def metadata(self) -> dict[str, Any]:
        """The memory's metadata."""
        return self.entry.metadata
