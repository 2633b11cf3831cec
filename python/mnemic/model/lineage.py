"""Lineage, a memory with its earlier versions."""

from typing import NamedTuple

from mnemic.model.entry import MemoryEntry


class Lineage(NamedTuple):
    """A memory, the versions that it supersedes, and its rivals.

    Attributes:
        head: The memory.
        versions: Memories that it supersedes, directly or through others, oldest first.
        contradicting: Other active memories that supersede one of them: last changed first, then
            smallest id.
    """

    head: MemoryEntry
    versions: tuple[MemoryEntry, ...] = ()
    contradicting: tuple[MemoryEntry, ...] = ()
