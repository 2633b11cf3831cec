"""MemoryEntryUpdate, a change of a memory."""

import copy
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic.model import validation
from mnemic.model.entry import MemoryEntry, MemoryStatus, MemoryType
from mnemic.model.redacted import Redacted


class MemoryEntryUpdate(Redacted, frozen=True, kw_only=True):
    """A change of a memory; fields that are None stay unchanged.

    Attributes:
        content: The new text; it is embedded again.
        importance: From 0 to 1.
        add_tags: Appended, unless present.
        remove_tags: Removed before tags are added.
        type: Sort of statement.
        metadata: Merged: its keys replace keys of the same name.
        status: ARCHIVED hides the memory from searches until it is ACTIVE again; SUPERSEDED is set
            only by storing the memory that supersedes it.

    Raises:
        InvalidEntryError: If a value is of the wrong type or out of range.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset(
        {"content", "add_tags", "remove_tags", "metadata"}
    )

    content: str | None = None
    importance: float | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    type: MemoryType | None = None
    metadata: dict[str, Any] | None = None
    status: MemoryStatus | None = None

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        for field, check in _CHECKS:
            given = getattr(self, field)
            force_setattr(self, field, _KEEPING[field] if given is None else check(given))

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing, whatever the memory."""
        return self == _NOTHING

    def applied_to(self, entry: MemoryEntry, now: datetime) -> MemoryEntry:
        """Return the entry after the change, without its embedding."""
        kept = [tag for tag in entry.tags if tag not in self.remove_tags]
        added = [tag for tag in dict.fromkeys(self.add_tags) if tag not in kept]
        changed = copy.copy(entry)
        values = {
            "content": entry.content if self.content is None else self.content,
            "importance": entry.importance if self.importance is None else self.importance,
            "type": entry.type if self.type is None else self.type,
            "tags": (*kept, *added),
            "metadata": {**entry.metadata, **(self.metadata or {})},
            "status": entry.status if self.status is None else self.status,
            "updated_at": max(now, entry.created_at),
            "embedding": None,
            "embedding_model": None,
        }
        for field, value in values.items():
            force_setattr(changed, field, value)
        return changed


def _status(given: object) -> MemoryStatus:
    status = MemoryStatus.parse(given)
    if status is MemoryStatus.SUPERSEDED:
        raise InvalidEntryError(
            "status cannot be set to superseded; store the new memory with supersedes= this one's "
            "id"
        )
    return status


_CHECKS = (
    ("content", validation.content),
    ("importance", partial(validation.fraction, "importance")),
    ("add_tags", validation.tags),
    ("remove_tags", validation.tags),
    ("type", MemoryType.parse),
    ("metadata", validation.metadata),
    ("status", _status),
)
_KEEPING = {field.name: field.default for field in msgspec.structs.fields(MemoryEntryUpdate)}
_NOTHING = MemoryEntryUpdate()
