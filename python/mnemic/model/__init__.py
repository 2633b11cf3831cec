"""The records every part shares, and the rules for their fields."""

from mnemic.model.entry import MemoryEntry, MemoryStatus, MemoryType
from mnemic.model.filter import (
    All,
    AnyOf,
    Expression,
    Field,
    MemoryFilter,
    MemorySortOrder,
    Not,
    Op,
    Test,
    parse_filter,
)
from mnemic.model.ids import UuidFactory
from mnemic.model.link import LinkType, MemoryLink
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
    "All",
    "AnyOf",
    "Expression",
    "Field",
    "LinkType",
    "LongTermMemoryStats",
    "MemoryEntry",
    "MemoryEntryUpdate",
    "MemoryFilter",
    "MemoryLink",
    "MemorySearchResult",
    "MemorySortOrder",
    "MemoryStatus",
    "MemoryType",
    "Not",
    "Op",
    "RowBatch",
    "RowFacts",
    "Scope",
    "SearchHit",
    "SearchResults",
    "TagUsage",
    "Test",
    "UuidFactory",
    "parse_filter",
]
