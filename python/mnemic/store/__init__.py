"""Durable storage of memories."""

from mnemic.store.base import Store
from mnemic.store.opening import MAX_STALE, open_store
from mnemic.store.values import Direction, LogPosition, PageCursor

__all__ = ["MAX_STALE", "Direction", "LogPosition", "PageCursor", "Store", "open_store"]
