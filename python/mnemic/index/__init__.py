"""What finds memories: a cache of the store that can be rebuilt at any time."""

from mnemic.index.base import Answer, Index, Ranked, Reached, Wanted, WantedLinks
from mnemic.index.native import NativeIndex

__all__ = ["Answer", "Index", "NativeIndex", "Ranked", "Reached", "Wanted", "WantedLinks"]
