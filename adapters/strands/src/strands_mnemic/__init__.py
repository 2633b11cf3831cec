"""A memory store of Strands Agents over mnemic."""

from strands_mnemic.store import MnemicMemoryStore

__all__ = ["MnemicMemoryStore"]
