"""Memories for an agent's context by hypothetical document embeddings (HyDE), once per turn."""

from mnemic.hyde.config import HydeConfig, IgnoredOptionWarning
from mnemic.hyde.ranked_memory import RankedMemory

__all__ = ["HydeConfig", "IgnoredOptionWarning", "RankedMemory"]
