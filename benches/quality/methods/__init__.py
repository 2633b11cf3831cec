"""The methods that are compared: each indexes memories and ranks their ids for a question.

A method's module is imported only when the method is used, so that one row can be measured
without the libraries of another.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory

METHODS = {
    "bm25": ("bm25", "usual"),
    "bm25-flat": ("bm25", "flat"),
    "dense": ("dense", "Dense"),
    "rrf": ("fusion", "Fusion"),
    "lancedb": ("lance", "Lance"),
    "mnemic": ("front_door", "defaults"),
    "mnemic-semantic": ("front_door", "semantic"),
    "mnemic-keyword": ("front_door", "keyword"),
    "multilingual": ("front_door", "multilingual"),
    "multilingual-semantic": ("front_door", "multilingual_semantic"),
    "retrieve": ("retrieval", "plain"),
    "retrieve-expanded": ("retrieval", "expanded"),
    "retrieve-hybrid": ("retrieval", "hybrid"),
    "retrieve-hybrid-expanded": ("retrieval", "hybrid_expanded"),
}
"""Module and factory by the short name that the command line takes."""

NAMED_ONLY = ("lancedb", "multilingual", "multilingual-semantic")
"""They need some hundred megabytes that `--group bench` does not install."""


class Method(Protocol):
    """A way to find memories."""

    name: str

    def index(self, memories: Sequence[Memory]) -> None:
        """Drop the memories indexed before and index `memories`."""

    def search(self, question: str, limit: int) -> list[str]:
        """Return the ids of the `limit` best memories, best first."""

    def close(self) -> None:
        """Release what the method holds."""


def build(name: str) -> Method:
    """Make the method of that short name."""
    module, factory = METHODS[name]
    return getattr(import_module(f"{__name__}.{module}"), factory)()
