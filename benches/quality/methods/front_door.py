"""Our own row: `mnemic.Memory` with its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mnemic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class FrontDoor:
    """One in-memory store for the indexed memories, searched as a caller would."""

    name = "mnemic"

    def __init__(self) -> None:
        self._memory: mnemic.Memory | None = None

    def index(self, memories: Sequence[Memory]) -> None:
        self.close()
        self._memory = mnemic.Memory(":memory:")
        self._memory.add_many([entry_fields(memory) for memory in memories])

    def search(self, question: str, limit: int) -> list[str]:
        hits = self._memory.search(question, limit=limit)
        return [hit.entry.metadata["benchmark_id"] for hit in hits]

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None


def entry_fields(memory: Memory) -> dict[str, object]:
    """Fields of an entry for `add_many`; those that the data does not have are left out."""
    fields = {
        "content": memory.content,
        "created_at": memory.created_at,
        "session_id": memory.session_id,
        "position": memory.position,
        "speaker": memory.speaker,
        "type": memory.type,
        "tags": list(memory.tags) or None,
        "metadata": {"benchmark_id": memory.id},
    }
    return {name: value for name, value in fields.items() if value is not None}
