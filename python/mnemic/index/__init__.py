"""Indexes: caches of a store for search, which can be rebuilt at any time."""

from mnemic.index.base import (
    Index,
    LinkedRow,
    LinkSearch,
    ListRequest,
    RankedPage,
    RankedRow,
    RankInputs,
)
from mnemic.index.native import NativeIndex

__all__ = [
    "Index",
    "LinkSearch",
    "LinkedRow",
    "ListRequest",
    "NativeIndex",
    "RankInputs",
    "RankedPage",
    "RankedRow",
]
