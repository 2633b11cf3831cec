"""Long-term memory for AI agents, inside their own process."""

import logging
from typing import TYPE_CHECKING

from mnemic._core import (
    Hits,
    Prior,
    Selection,
    VectorMap,
    __version__,
    fingerprint,
    fingerprint_digests,
    simd_kernel,
)

if TYPE_CHECKING:
    from mnemic.async_memory import AsyncMemory
    from mnemic.context import (
        BuildContextOptions,
        CompactionStrategy,
        ContextItem,
        ContextItemType,
        ContextWindow,
    )
    from mnemic.embed import as_embedder
    from mnemic.licensing import DocumentedLicenses, LicenseTier
    from mnemic.long_term import LongTermMemory
    from mnemic.memory import Memory
    from mnemic.model import (
        HYBRID,
        KEYWORD,
        SEMANTIC,
        AdaptiveShare,
        CheckedEntry,
        DistinctValue,
        EmbeddingModel,
        ExpandedQuery,
        Hit,
        KeywordFields,
        LinkType,
        MemoryEntry,
        MemoryEntryUpdate,
        MemoryFilter,
        MemoryKind,
        MemoryLink,
        MemoryQuery,
        MemoryRecallResult,
        MemoryRetrievalResult,
        MemoryRetrieverOptions,
        MemorySortOrder,
        MemoryType,
        RankedMemory,
        Ranking,
        RecallMode,
        RecallOptions,
        Recency,
        RecencyCurve,
        ReinforcementReason,
        RelevanceScores,
        RetrievalStats,
        Salience,
        SalienceBreakdown,
        SalienceOptions,
        SalienceWeights,
        ScoredMemory,
        SearchHit,
        SearchResults,
        SessionTerms,
        Suggestions,
        UserUsage,
        Weights,
        Why,
        WordMatch,
    )
    from mnemic.recall import MemoryRetriever
    from mnemic.retrieval import RetrievalService

__all__ = [
    "HYBRID",
    "KEYWORD",
    "SEMANTIC",
    "AdaptiveShare",
    "AsyncMemory",
    "BuildContextOptions",
    "CheckedEntry",
    "CompactionStrategy",
    "ContextItem",
    "ContextItemType",
    "ContextWindow",
    "DistinctValue",
    "DocumentedLicenses",
    "EmbeddingModel",
    "ExpandedQuery",
    "Hit",
    "Hits",
    "KeywordFields",
    "LicenseTier",
    "LinkType",
    "LongTermMemory",
    "Memory",
    "MemoryEntry",
    "MemoryEntryUpdate",
    "MemoryFilter",
    "MemoryKind",
    "MemoryLink",
    "MemoryQuery",
    "MemoryRecallResult",
    "MemoryRetrievalResult",
    "MemoryRetriever",
    "MemoryRetrieverOptions",
    "MemorySortOrder",
    "MemoryType",
    "Prior",
    "RankedMemory",
    "Ranking",
    "RecallMode",
    "RecallOptions",
    "Recency",
    "RecencyCurve",
    "ReinforcementReason",
    "RelevanceScores",
    "RetrievalService",
    "RetrievalStats",
    "Salience",
    "SalienceBreakdown",
    "SalienceOptions",
    "SalienceWeights",
    "ScoredMemory",
    "SearchHit",
    "SearchResults",
    "Selection",
    "SessionTerms",
    "Suggestions",
    "UserUsage",
    "VectorMap",
    "Weights",
    "Why",
    "WordMatch",
    "__version__",
    "as_embedder",
    "fingerprint",
    "fingerprint_digests",
    "simd_kernel",
]

_LAZY = {
    "HYBRID": "mnemic.model",
    "KEYWORD": "mnemic.model",
    "SEMANTIC": "mnemic.model",
    "AdaptiveShare": "mnemic.model",
    "AsyncMemory": "mnemic.async_memory",
    "BuildContextOptions": "mnemic.context",
    "CheckedEntry": "mnemic.model",
    "CompactionStrategy": "mnemic.context",
    "ContextItem": "mnemic.context",
    "ContextItemType": "mnemic.context",
    "ContextWindow": "mnemic.context",
    "DistinctValue": "mnemic.model",
    "DocumentedLicenses": "mnemic.licensing",
    "EmbeddingModel": "mnemic.model",
    "ExpandedQuery": "mnemic.model",
    "Hit": "mnemic.model",
    "KeywordFields": "mnemic.model",
    "LicenseTier": "mnemic.licensing",
    "LinkType": "mnemic.model",
    "LongTermMemory": "mnemic.long_term",
    "Memory": "mnemic.memory",
    "MemoryEntry": "mnemic.model",
    "MemoryEntryUpdate": "mnemic.model",
    "MemoryFilter": "mnemic.model",
    "MemoryKind": "mnemic.model",
    "MemoryLink": "mnemic.model",
    "MemoryQuery": "mnemic.model",
    "MemoryRecallResult": "mnemic.model",
    "MemoryRetrievalResult": "mnemic.model",
    "MemoryRetriever": "mnemic.recall",
    "MemoryRetrieverOptions": "mnemic.model",
    "MemorySortOrder": "mnemic.model",
    "MemoryType": "mnemic.model",
    "RankedMemory": "mnemic.model",
    "Ranking": "mnemic.model",
    "RecallMode": "mnemic.model",
    "RecallOptions": "mnemic.model",
    "Recency": "mnemic.model",
    "RecencyCurve": "mnemic.model",
    "ReinforcementReason": "mnemic.model",
    "RelevanceScores": "mnemic.model",
    "RetrievalService": "mnemic.retrieval",
    "RetrievalStats": "mnemic.model",
    "Salience": "mnemic.model",
    "SalienceBreakdown": "mnemic.model",
    "SalienceOptions": "mnemic.model",
    "SalienceWeights": "mnemic.model",
    "ScoredMemory": "mnemic.model",
    "SearchHit": "mnemic.model",
    "SearchResults": "mnemic.model",
    "SessionTerms": "mnemic.model",
    "Suggestions": "mnemic.model",
    "UserUsage": "mnemic.model",
    "Weights": "mnemic.model",
    "Why": "mnemic.model",
    "WordMatch": "mnemic.model",
    "as_embedder": "mnemic.embed",
}


# Without it Python prints warnings of a program that has not set up logging to its stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """Import the parts that need msgspec, apsw or an embedder on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'mnemic' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - keeps `import mnemic` light

    # From deeper down the first import of numpy takes half as long again in CPython 3.11: one of
    # its modules then calls at the edge of a chunk of the stack, and each call maps a new chunk.
    import_module("numpy")
    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
