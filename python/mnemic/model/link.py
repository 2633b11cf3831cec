"""MemoryLink, a typed edge between two memories."""

from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias
from uuid import UUID

from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic.model import validation
from mnemic.records import NamedFields, NumberedEnum, Record

Direction: TypeAlias = Literal["both", "out", "in"]
"""Links from an entry, links to it, or both."""


class LinkType(NumberedEnum, noun="link type"):
    """Relation of one memory to another. The numbers are stored."""

    RELATED = "related", 0
    DERIVED_FROM = "derived_from", 1
    CONTRADICTS = "contradicts", 2
    SUPERSEDES = "supersedes", 3
    REINFORCES = "reinforces", 4
    REFINES = "refines", 5


class MemoryLink(Record, frozen=True, metaclass=NamedFields):
    """An edge between two memories of one agent, from the newer to the older.

    There is at most one link of each type from one memory to another. Construction checks every
    field.

    Attributes:
        from_id: Source of the edge, the memory that relates to the other.
        to_id: Target of the edge.
        type: The relation.
        strength: From 0 to 1.
        created_at: Aware and in UTC; a naive time is of the system's zone.

    Raises:
        InvalidEntryError: If a field is of the wrong type or out of range, or both ids are equal.
    """

    from_id: UUID
    to_id: UUID
    type: LinkType
    strength: float
    created_at: datetime

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        for field, check in _CHECKS:
            given = getattr(self, field)
            checked = check(given)
            if checked is not given:
                force_setattr(self, field, checked)
        if self.from_id == self.to_id:
            raise InvalidEntryError(f"a memory cannot be linked to itself: {self.from_id}")


_CHECKS = (
    ("from_id", partial(validation.uuid, "from_id")),
    ("to_id", partial(validation.uuid, "to_id")),
    ("type", LinkType.parse),
    ("strength", partial(validation.fraction, "strength")),
    ("created_at", partial(validation.time, "created_at")),
)
