"""LangGraph's long-term store over mnemic."""

from langgraph.store.mnemic.store import AsyncMnemicStore, MnemicStore

__all__ = ["AsyncMnemicStore", "MnemicStore"]
