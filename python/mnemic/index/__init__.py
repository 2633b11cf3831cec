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
from mnemic.index.candidates import CandidateSource, RowSet, Selected, SourceFactory
from mnemic.index.exact_source import ExactSource
from mnemic.index.native import NativeIndex

__all__ = [
    "CandidateSource",
    "ExactSource",
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
    "SourceFactory",
]
