"""MemoryLink, a typed edge from one memory to another."""

from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import Self
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic.model import validation


class LinkType(IntEnum):
    """What one memory is to another. The numbers are stored."""

    RELATED = 0
    DERIVED_FROM = 1
    CONTRADICTS = 2
    SUPERSEDES = 3
    REINFORCES = 4
    REFINES = 5

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the link type that `value` is, numbers or names; case does not matter."""
        return validation.member("link type", cls, value)


class MemoryLink(msgspec.Struct, frozen=True):
    """An edge between two memories of one agent, from the newer to the older (C147).

    There is at most one link of each type from one memory to another. Every field is checked when
    a link is made.

    Attributes:
        from_id: The memory that says something of the other.
        to_id: The other memory.
        type: What it says.
        strength: From 0 to 1.
        created_at: Aware and in UTC; a naive time is taken to be UTC.

    Raises:
        InvalidEntryError: If a field is of the wrong type or out of range, or both ids are equal.
    """

    from_id: UUID
    to_id: UUID
    type: LinkType
    strength: float
    created_at: datetime

    def __post_init__(self) -> None:
        """Check every field and put it in its stored form (C178)."""
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
