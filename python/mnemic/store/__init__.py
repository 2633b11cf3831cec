"""Durable storage of memories."""

from mnemic.store.base import Direction, LogPosition, PageCursor, Store
from mnemic.store.opening import open_store

__all__ = ["Direction", "LogPosition", "PageCursor", "Store", "open_store"]
