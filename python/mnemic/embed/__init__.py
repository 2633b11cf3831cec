"""Embedders: texts in, unit vectors out."""

from importlib import import_module
from typing import TYPE_CHECKING

from mnemic.embed.base import AnyEmbedder, Embedder, EmbeddingBatch

if TYPE_CHECKING:
    from mnemic.embed.adapting import AdaptedEmbedder, as_embedder
    from mnemic.embed.cache import CachedEmbedder
    from mnemic.embed.http import HttpEmbedder
    from mnemic.embed.minilm import MiniLmEmbedder

__all__ = [
    "AdaptedEmbedder",
    "AnyEmbedder",
    "CachedEmbedder",
    "Embedder",
    "EmbeddingBatch",
    "HttpEmbedder",
    "MiniLmEmbedder",
    "as_embedder",
]

_LAZY = {
    "AdaptedEmbedder": "mnemic.embed.adapting",
    "CachedEmbedder": "mnemic.embed.cache",
    "HttpEmbedder": "mnemic.embed.http",
    "MiniLmEmbedder": "mnemic.embed.minilm",
    "as_embedder": "mnemic.embed.adapting",
}


def __getattr__(name: str) -> object:
    """Import the default embedder on first use; a program may bring another."""
    if name not in _LAZY:
        raise AttributeError(f"module 'mnemic.embed' has no attribute {name!r}")
    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
