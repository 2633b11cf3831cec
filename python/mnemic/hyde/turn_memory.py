"""TurnMemory: a memory for an agent's context, with its score and its earlier versions."""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from mnemic.model.entry import MemoryEntry
from mnemic.model.hit import Hit
from mnemic.model.link import LinkType
from mnemic.records import RecordList


class TurnMemory(Hit, frozen=True, kw_only=True):
    """A memory that a search found, or that a link reached from one that it found.

    Attributes:
        entry: The memory, the latest of its versions.
        score: From 0 to 1. The cosine similarity of a found memory, or of its most similar version,
            to the nearest hypothesis; for a linked one the score of the memory before it, times
            decay and strength of the link.
        relation: Type of the link that reached it; None if the search found it.
        via: Id of the memory from which the link reached it; None if the search found it.
        versions: Earlier versions of the memory, the oldest first.
        contradicting: Other memories that replace the same earlier version.
    """

    relation: LinkType | None = None
    via: UUID | None = None
    versions: tuple[MemoryEntry, ...] = ()
    contradicting: tuple[MemoryEntry, ...] = ()

    @property
    def memory(self) -> MemoryEntry:
        """The entry, under its documented name."""
        return self.entry


def entries_of(memory: TurnMemory) -> tuple[MemoryEntry, ...]:
    """Return a memory's entry, its earlier versions, and those that contradict it."""
    return memory.entry, *memory.versions, *memory.contradicting


class TurnMemories(RecordList[TurnMemory]):
    """The memories of a turn, best first.

    Args:
        memories: The memories.

    Attributes:
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
    """

    _marks: ClassVar[tuple[str, ...]] = ("stale_since",)

    stale_since: datetime | None

    def __init__(
        self, memories: Iterable[TurnMemory] = (), *, stale_since: datetime | None = None
    ) -> None:
        super().__init__(memories)
        self.stale_since = stale_since


FILE_VERSION: Final = "memory_file_version"
"""The key of the metadata that has it."""


def file_version(entry: MemoryEntry) -> int | None:
    """Return the version of a memory's file; None for a memory that comes from no file."""
    version = entry.metadata.get(FILE_VERSION)
    return version if type(version) is int and version > 0 else None
