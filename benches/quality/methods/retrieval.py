"""The retrieval service with its documented defaults, plain and with its queries expanded."""

from __future__ import annotations

from typing import Any

from benches.quality.methods.front_door import FrontDoor
from mnemic.model import MemoryQuery


class Retrieval(FrontDoor):
    """Like `Memory.search`, but by a `MemoryQuery`."""

    def search(self, question: str, limit: int) -> list[str]:
        query = MemoryQuery(query=question, limit=limit, **self._search_options)
        found = self._memory.retrieve(query)
        return [ranked.entry.metadata["benchmark_id"] for ranked in found]


def _row(name: str, **options: Any) -> Retrieval:
    return Retrieval(f"retrieve, {name}", memory_options={}, search_options=options)


def plain() -> Retrieval:
    return _row("semantic")


def expanded() -> Retrieval:
    return _row("semantic, expanded", expand_query=True)


def hybrid() -> Retrieval:
    return _row("hybrid", search_type="hybrid")


def hybrid_expanded() -> Retrieval:
    return _row("hybrid, expanded", search_type="hybrid", expand_query=True)
