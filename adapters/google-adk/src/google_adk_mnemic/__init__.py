"""A memory service of the Agent Development Kit over mnemic."""

from google_adk_mnemic.service import MnemicMemoryService

__all__ = ["MnemicMemoryService"]
