"""Hit: a memory with its score, the common part of all results that find memories."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.model.redacted import Redacted
from mnemic.records.lines import memory_line
from mnemic.reporting import habits
from mnemic.reporting.habits import AnswersHabits

_OF_THE_ENTRY = {name: f"write hit.entry.{name}" for name in MemoryEntry.__struct_fields__}


class Hit(Redacted, AnswersHabits, frozen=True):
    """A memory with its score. Each kind of search has its own kind of hit, with more fields.

    Hits are hashable, by memory and score; `repr` is one line, `to_dict` and rich have all fields.

    Attributes:
        entry: The memory, without its embedding.
        score: From 0 to 1, higher is better; its meaning is that of the search.
    """

    _habits: ClassVar[Mapping[str, str]] = _OF_THE_ENTRY | habits.HIT

    entry: MemoryEntry
    score: float

    def __hash__(self) -> int:
        return hash((self.entry, self.score))

    if not TYPE_CHECKING:  # which would let items through

        def __getitem__(self, key: object) -> object:
            raise habits.item_of_record(self, key, "hit", self._habits)

    def __repr__(self) -> str:
        return memory_line(self, f"score={self.score:.3f}")

    def _repr_html_(self) -> str:
        """Return a table of the memory's fields for notebooks; as in `repr`, some are hidden."""
        from mnemic.records.page import entry_html  # noqa: PLC0415 - loaded where it is used

        return entry_html(f"{type(self).__name__}: score {self.score:.3f}", self.entry)

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
    def role(self) -> str | None:
        """Role of the memory's speaker, such as "user" or "assistant"."""
        return self.entry.role

    @property
    def speaker(self) -> str | None:
        """Name of the memory's speaker."""
        return self.entry.speaker

    @property
    def importance(self) -> float:
        """The memory's importance, from 0 to 1."""
        return self.entry.importance

    @property
    def source(self) -> str | None:
        """Where the memory came from, such as a file's name or a URL."""
        return self.entry.source

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
