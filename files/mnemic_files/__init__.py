"""Memories as Markdown files with front matter, read into a memory and written from one."""

import logging

from mnemic_files.directory import MemoryDirectory
from mnemic_files.errors import (
    MemoryFileExistsError,
    MemoryFileFormatError,
    MemoryFileNotFoundError,
    VersionChainError,
)
from mnemic_files.export import ExportResult
from mnemic_files.file_format import parse_memory_file, serialise_memory_file
from mnemic_files.folder import FileProblem
from mnemic_files.ids import new_memory_id
from mnemic_files.memory_file import (
    CATEGORIES,
    RELATIONSHIPS,
    FileScope,
    MemoryFile,
    RelatedFile,
)
from mnemic_files.memory_files import AnyMemory, MemoryFiles
from mnemic_files.synchronise import SyncResult
from mnemic_files.versions import FileOrder, Files

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

# Without it Python prints warnings of a program that has not set up logging to its stderr.
logging.getLogger("mnemic_files").addHandler(logging.NullHandler())
