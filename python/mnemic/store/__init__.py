"""Where memories are kept."""

from mnemic.store.base import Store
from mnemic.store.sqlite import SqliteStore

__all__ = ["SqliteStore", "Store"]
