"""Indexes: caches of a store for search, which can be rebuilt at any time."""

from mnemic.index.base import (
    Index,
    LinkedRow,
    LinkSearch,
    ListRequest,
    NeighbourRow,
    NeighbourSearch,
    RankedPage,
    RankedRow,
    RankInputs,
)
from mnemic.index.candidates import (
    Beginning,
    CandidateSource,
    HeldSource,
    RowSet,
    Selected,
    SourceFactory,
)
from mnemic.index.exact_source import ExactSource
from mnemic.index.native import NativeIndex, Snapshot

__all__ = [
    "Beginning",
    "CandidateSource",
    "ExactSource",
    "HeldSource",
    "Index",
    "LinkSearch",
    "LinkedRow",
    "ListRequest",
    "NativeIndex",
    "NeighbourRow",
    "NeighbourSearch",
    "RankInputs",
    "RankedPage",
    "RankedRow",
    "RowSet",
    "Selected",
    "Snapshot",
    "SourceFactory",
]
