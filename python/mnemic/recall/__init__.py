"""Recall of memories in modes, by time, by type and by links."""

from mnemic.recall.engine import RecallEngine
from mnemic.recall.service import MemoryRetriever, SyncMemoryRetriever, checked_options

__all__ = ["MemoryRetriever", "RecallEngine", "SyncMemoryRetriever", "checked_options"]
