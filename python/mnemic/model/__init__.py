"""The records every part shares, and the rules for their fields."""

from mnemic.model.entry import MemoryEntry, MemoryStatus, MemoryType
from mnemic.model.ids import UuidFactory
from mnemic.model.results import (
    LongTermMemoryStats,
    MemorySearchResult,
    SearchHit,
    SearchResults,
    TagUsage,
)
from mnemic.model.rows import RowBatch, RowFacts
from mnemic.model.scope import Scope
from mnemic.model.update import MemoryEntryUpdate

__all__ = [
    "LongTermMemoryStats",
    "MemoryEntry",
    "MemoryEntryUpdate",
    "MemorySearchResult",
    "MemoryStatus",
    "MemoryType",
    "RowBatch",
    "RowFacts",
    "Scope",
    "SearchHit",
    "SearchResults",
    "TagUsage",
    "UuidFactory",
]
