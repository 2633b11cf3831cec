"""Where memories are kept."""

from mnemic.store.base import Direction, Place, Position, Store
from mnemic.store.cache import EntryCache
from mnemic.store.sqlite import SqliteStore

__all__ = ["Direction", "EntryCache", "Place", "Position", "SqliteStore", "Store"]
