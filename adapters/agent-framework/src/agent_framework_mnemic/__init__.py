"""Memory and history of the Microsoft Agent Framework over mnemic."""

from agent_framework_mnemic.context import MnemicContextProvider
from agent_framework_mnemic.history import MnemicHistoryProvider

__all__ = ["MnemicContextProvider", "MnemicHistoryProvider"]
