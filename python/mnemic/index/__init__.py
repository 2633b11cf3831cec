"""What finds memories: a cache of the store that can be rebuilt at any time."""

from mnemic.index.base import Index, Ranked
from mnemic.index.native import NativeIndex

__all__ = ["Index", "NativeIndex", "Ranked"]
