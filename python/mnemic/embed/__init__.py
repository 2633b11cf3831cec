"""Embedders: texts in, unit vectors out."""

from mnemic.embed.base import Embedder, EmbeddingBatch
from mnemic.embed.minilm import MiniLmEmbedder

__all__ = ["Embedder", "EmbeddingBatch", "MiniLmEmbedder"]
