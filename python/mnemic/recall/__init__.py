"""Recall of memories in modes, by time, by type and by links."""

from mnemic.recall.engine import RecallEngine
from mnemic.recall.service import AsyncMemoryRetriever, MemoryRetriever, checked_options

__all__ = ["AsyncMemoryRetriever", "MemoryRetriever", "RecallEngine", "checked_options"]
