"""Results of writes that name the memories deleted to make space for them."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self
from uuid import UUID

import msgspec

from mnemic.model.entry import MemoryEntry
from mnemic.records import RecordList


class WrittenEntry(MemoryEntry, frozen=True, kw_only=True, eq=False):
    """A memory as a write left it, with the memories that the write deleted to make space.

    Attributes:
        evicted_ids: Ids of the memories that were deleted permanently, in the order in which they
            went. They are of the same user.
    """

    evicted_ids: tuple[UUID, ...] = ()

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown[:-1]}, evicted={len(self.evicted_ids)})" if self.evicted_ids else shown

    @property
    def evicted(self) -> tuple[UUID, ...]:
        """Ids of the memories that were deleted to make space for this one."""
        return self.evicted_ids


def written(entry: MemoryEntry, evicted: Iterable[UUID]) -> MemoryEntry:
    """Return an entry with what went for it, or the entry itself if nothing did."""
    ids = tuple(evicted)
    if not ids:
        return entry
    if isinstance(entry, WrittenEntry):  # with more of its own
        return msgspec.structs.replace(entry, evicted_ids=ids)
    fields = {name: getattr(entry, name) for name in MemoryEntry.__struct_fields__}
    return WrittenEntry(**fields, evicted_ids=ids)


class AddedMemories(RecordList[MemoryEntry]):
    """The memories of one call as they were stored: a list, with what was deleted to make space.

    Args:
        memories: The memories.
        evicted: Ids of what was deleted.

    Attributes:
        evicted: Ids of the memories that were deleted permanently, in the order in which they went.
    """

    _marks: ClassVar[tuple[str, ...]] = ("evicted",)
    _nouns: ClassVar[tuple[str, str]] = ("entry", "entries")

    evicted: tuple[UUID, ...]

    def __init__(self, memories: Iterable[MemoryEntry] = (), evicted: Iterable[UUID] = ()) -> None:
        super().__init__(memories)
        self.evicted = tuple(evicted)


class UpdateResult(int):
    """Number of memories that a call changed: an int, with what was deleted to make space.

    Args:
        count: The number.
        evicted: Ids of what was deleted.

    Attributes:
        evicted: Ids of the memories that were deleted permanently, in the order in which they went.
    """

    evicted: tuple[UUID, ...] = ()

    def __new__(cls, count: int, *, evicted: Iterable[UUID] = ()) -> Self:
        """Make a result of a count."""
        made = super().__new__(cls, count)
        made.evicted = tuple(evicted)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return count and ids."""
        return {"count": int(self), "evicted": [str(one) for one in self.evicted]}

    def __repr__(self) -> str:
        return f"UpdateResult({int(self)}, evicted={len(self.evicted)})"
