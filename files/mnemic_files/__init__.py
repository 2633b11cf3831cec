"""Memories as Markdown files with front matter; see docs/how-to/memory-files.md."""

from mnemic_files.directory import FileOrder, Files, MemoryDirectory
from mnemic_files.errors import (
    MemoryFileExistsError,
    MemoryFileFormatError,
    MemoryFileNotFoundError,
    VersionChainError,
)
from mnemic_files.export import ExportResult
from mnemic_files.ids import new_memory_id
from mnemic_files.memory_file import (
    CATEGORIES,
    RELATIONSHIPS,
    FileScope,
    MemoryFile,
    RelatedFile,
)
from mnemic_files.memory_files import AnyMemory, MemoryFiles
from mnemic_files.parse import parse_memory_file
from mnemic_files.problems import FileProblem
from mnemic_files.serialise import serialise_memory_file
from mnemic_files.sync_result import SyncResult

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
    "MemoryFileExistsError",
    "MemoryFileFormatError",
    "MemoryFileNotFoundError",
    "MemoryFiles",
    "RelatedFile",
    "SyncResult",
    "VersionChainError",
    "new_memory_id",
    "parse_memory_file",
    "serialise_memory_file",
]
