"""Our own rows: `mnemic.Memory` with its defaults, by meaning alone, and by words alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mnemic
from benches.quality.vectors import minilm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class FrontDoor:
    """One in-memory store for the indexed memories, searched as a caller would.

    `search_options` go to every search; `embedder=None` opens the store without one, by default
    the vectors are stored for the next run.
    """

    def __init__(
        self, name: str, *, memory_options: dict[str, Any], search_options: dict[str, Any]
    ) -> None:
        self.name = name
        self._memory_options = memory_options
        self._search_options = search_options
        self._memory: mnemic.Memory | None = None

    def index(self, memories: Sequence[Memory]) -> None:
        self.close()
        # No answer may depend on the questions before it.
        options = self._memory_options
        if "embedder" not in options:
            options = options | {"embedder": minilm()}
        self._memory = mnemic.Memory(":memory:", track_access=False, **options)
        self._memory.add_many([entry_fields(memory) for memory in memories])

    def search(self, question: str, limit: int, **options: Any) -> list[str]:
        """Return the best ids; with `options`, they alone are used."""
        hits = self._memory.search(question, limit=limit, **options or self._search_options)
        return [hit.entry.metadata["benchmark_id"] for hit in hits]

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None


def defaults() -> FrontDoor:
    """`search` with its defaults."""
    return FrontDoor("mnemic", memory_options={}, search_options={})


def multilingual() -> FrontDoor:
    """`search` with its defaults and the multilingual model."""
    return FrontDoor(
        "mnemic, multilingual", memory_options={"embedder": "multilingual"}, search_options={}
    )


def multilingual_semantic() -> FrontDoor:
    """Exact cosine of the multilingual model."""
    return FrontDoor(
        "mnemic, multilingual, semantic",
        memory_options={"embedder": "multilingual"},
        search_options={"search_type": "semantic"},
    )


def semantic() -> FrontDoor:
    """Exact cosine; must equal the dense row."""
    return FrontDoor(
        "mnemic, semantic", memory_options={}, search_options={"search_type": "semantic"}
    )


def keyword() -> FrontDoor:
    """Words alone, without an embedder."""
    return FrontDoor(
        "mnemic, keyword",
        memory_options={"embedder": None},
        search_options={"search_type": "keyword"},
    )


def entry_fields(memory: Memory) -> dict[str, object]:
    """Fields of an entry for `add_many`; those that the data does not have are left out."""
    fields = {
        "content": memory.content,
        "created_at": memory.created_at,
        "session_id": memory.session_id,
        "position": memory.position,
        "speaker": memory.speaker,
        "role": memory.role,
        "type": memory.type,
        "tags": list(memory.tags) or None,
        "metadata": {"benchmark_id": memory.id},
    }
    return {name: value for name, value in fields.items() if value is not None}
