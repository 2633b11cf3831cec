"""Memories as Markdown files with front matter; see docs/how-to/memory-files.md."""

from mnemic.memory_files.directory import FileOrder, Files, MemoryDirectory
from mnemic.memory_files.export import ExportResult
from mnemic.memory_files.ids import new_memory_id
from mnemic.memory_files.memory_file import (
    CATEGORIES,
    RELATIONSHIPS,
    FileScope,
    MemoryFile,
    RelatedFile,
)
from mnemic.memory_files.memory_files import AnyMemory, MemoryFiles
from mnemic.memory_files.parse import parse_memory_file
from mnemic.memory_files.problems import FileProblem
from mnemic.memory_files.serialise import serialise_memory_file
from mnemic.memory_files.sync_result import SyncResult

__all__ = [
    "CATEGORIES",
    "RELATIONSHIPS",
    "AnyMemory",
    "ExportResult",
    "FileOrder",
    "FileProblem",
    "FileScope",
    "Files",
    "MemoryDirectory",
    "MemoryFile",
    "MemoryFiles",
    "RelatedFile",
    "SyncResult",
    "new_memory_id",
    "parse_memory_file",
    "serialise_memory_file",
]
