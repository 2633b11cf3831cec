"""The memory of Pydantic AI's harness over memories of mnemic."""

from pydantic_ai_mnemic.store import MnemicMemoryStore as MnemicMemoryStore

__all__ = ["MnemicMemoryStore"]
