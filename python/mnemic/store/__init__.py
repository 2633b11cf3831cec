"""Durable storage of memories."""

from mnemic.store.base import Direction, LogPosition, PageCursor, Store
from mnemic.store.sqlite.store import SqliteStore

__all__ = ["Direction", "LogPosition", "PageCursor", "SqliteStore", "Store"]
