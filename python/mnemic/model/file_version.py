"""The version of a memory that comes from a memory file."""

from typing import Final

from mnemic.model.entry import MemoryEntry

FILE_VERSION: Final = "memory_file_version"
"""The key of the metadata that has it."""


def file_version(entry: MemoryEntry) -> int | None:
    """Return the version of a memory's file; None for a memory that comes from no file."""
    version = entry.metadata.get(FILE_VERSION)
    return version if type(version) is int and version > 0 else None
