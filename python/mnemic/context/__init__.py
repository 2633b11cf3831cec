"""The context of one language model call: items within a budget of tokens."""

from mnemic.context.items import (
    AddOutcome,
    AddResult,
    BuildContextOptions,
    BuiltContext,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
    ContextSnapshot,
    ContextWindowStats,
)
from mnemic.context.memory_context import MemoryContext
from mnemic.context.packing import Packed, Plan, pack
from mnemic.context.tokens import EstimatedTokens, TokenizerTokens
from mnemic.context.window import ContextWindow

__all__ = [
    "AddOutcome",
    "AddResult",
    "BuildContextOptions",
    "BuiltContext",
    "CompactionStrategy",
    "ContextItem",
    "ContextItemType",
    "ContextSnapshot",
    "ContextWindow",
    "ContextWindowStats",
    "EstimatedTokens",
    "MemoryContext",
    "Packed",
    "Plan",
    "TokenizerTokens",
    "pack",
]
