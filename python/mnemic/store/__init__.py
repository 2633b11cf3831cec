"""Where memories are kept."""

from mnemic.store.base import Direction, Place, Position, Store
from mnemic.store.sqlite.store import SqliteStore

__all__ = ["Direction", "Place", "Position", "SqliteStore", "Store"]
