"""Memories of prompt blocks for tests."""

from mnemic.model.payload import PayloadMemory
from tests.support.clock import NOON

__all__ = ["NOON", "memory"]


def memory(name, content="Lives in Oslo.", **fields):
    """Return a memory of an id and a content, made at noon."""
    return PayloadMemory(**{"id": name, "content": content, "timestamp": NOON, **fields})
