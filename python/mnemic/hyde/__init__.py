"""Memories for an agent's context by hypothetical document embeddings (HyDE), once per turn."""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
