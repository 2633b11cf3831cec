"""The records every part shares, and the rules for their fields."""

from mnemic.model.entry import MemoryEntry, MemoryStatus, MemoryType
from mnemic.model.ids import UuidFactory
from mnemic.model.results import SearchHit, SearchResults
from mnemic.model.rows import RowBatch, RowFacts
from mnemic.model.scope import Scope

__all__ = [
    "MemoryEntry",
    "MemoryStatus",
    "MemoryType",
    "RowBatch",
    "RowFacts",
    "Scope",
    "SearchHit",
    "SearchResults",
    "UuidFactory",
]
