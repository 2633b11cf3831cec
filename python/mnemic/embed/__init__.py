"""Embedders: texts in, unit vectors out."""

from typing import TYPE_CHECKING

from mnemic.embed.base import Embedder, EmbeddingBatch

if TYPE_CHECKING:
    from mnemic.embed.minilm import MiniLmEmbedder

__all__ = ["Embedder", "EmbeddingBatch", "MiniLmEmbedder"]


def __getattr__(name: str) -> object:
    """Import the default embedder on first use; a program may bring another."""
    if name != "MiniLmEmbedder":
        raise AttributeError(f"module 'mnemic.embed' has no attribute {name!r}")
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - a tenth of the import budget

    globals()[name] = MiniLmEmbedder
    return MiniLmEmbedder
