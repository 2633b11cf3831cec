"""Interfaces of a specification, for programs that are written against it.

New programs take `mnemic.Memory`, which these stand on: `LongTermMemory` stores and finds one
agent's memories, `RetrievalService` answers queries by weighted relevance, `MemoryRetriever`
recalls in modes, and `ContextWindow` holds items within a budget of tokens. Judges of
contradictions, expanders of queries and licenses are their parts.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
