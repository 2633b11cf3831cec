"""Search, links and earlier versions of a turn, in one piece of work in a thread."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import DeadlineExceededError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.ranked_memory import RankedMemory
from mnemic.hyde.telemetry import HydeTelemetry, Stage
from mnemic.licensing import SEARCHING_BY_MEANING
from mnemic.model import IS_NOT_SENSITIVE, SEMANTIC, MemoryEntry, Scope, Search
from mnemic.repository import Repository

MIN_NORM = 1e-10
"""A vector shorter than this has no direction."""


@dataclass
class Progress:
    """How far the work of a turn has come; read while it goes on.

    Attributes:
        memories: What is complete; None before the search is.
        seq: Number of the store's last change before the search.
        failed_stage: The stage after the search that failed.
    """

    memories: list[RankedMemory] | None = None
    seq: int = -1
    failed_stage: Stage | None = field(default=None)


class Pipeline:
    """Finds the memories of a turn by the vectors of its hypotheses.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        config: The configuration.
        telemetry: Counts failures.
        include_sensitive: Whether sensitive memories are found.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        config: HydeConfig,
        telemetry: HydeTelemetry,
        *,
        include_sensitive: bool,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._config = config
        self._telemetry = telemetry
        self._filters = None if include_sensitive else IS_NOT_SENSITIVE

    def run(self, vectors: NDArray[np.float32], deadline: float, progress: Progress) -> None:
        """Search, then follow links, then read earlier versions.

        A failure after the search leaves what was found.

        Args:
            vectors: float32, shape (m, d), those of the hypotheses.
            deadline: In seconds of `time.monotonic()`.
            progress: Gets the result of each stage.
        """
        progress.seq = self._repository.finder.position().seq
        begun = time.perf_counter()
        progress.memories = self._found(vectors, deadline)
        self._telemetry.took("search", time.perf_counter() - begun)

    def present(self, memories: Sequence[RankedMemory], now: datetime) -> tuple[RankedMemory, ...]:
        """Return memories in their present state, without those deleted, expired or now sensitive.

        Args:
            memories: As they were found.
            now: The time.
        """
        entries = [entry for each in memories for entry in entries_of(each)]
        found = self._repository.readiness.present(self._scope, entries, now)
        if self._filters is not None:
            found = {key: entry for key, entry in found.items() if not entry.sensitive}

        def fresh(entries: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
            keys = [(entry.user_id, entry.id) for entry in entries]
            return tuple(found[key] for key in keys if key in found)

        return tuple(
            msgspec.structs.replace(
                each,
                memory=found[each.memory.user_id, each.id],
                versions=fresh(each.versions),
                contradicting=fresh(each.contradicting),
            )
            for each in memories
            if (each.memory.user_id, each.id) in found
        )

    def _found(self, vectors: NDArray[np.float32], deadline: float) -> list[RankedMemory]:
        search = Search(
            text=None,
            vectors=vectors,
            limit=self._config.retrieval_top_k,
            ranking=SEMANTIC,
            filters=self._filters,
            min_similarity=self._config.min_similarity,
            deadline=deadline,
            takes_partial=True,
        )
        found = self._repository.find(self._scope, search, SEARCHING_BY_MEANING)
        if found.partial and not found.hits:
            raise DeadlineExceededError
        return [
            RankedMemory(memory=found.entries[hit.row], score=max(0.0, min(1.0, hit.score)))
            for hit in found.hits
        ]


def directed(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows that have a direction."""
    rows: NDArray[np.float32] = vectors[np.linalg.norm(vectors, axis=1) >= MIN_NORM]
    return rows


def entries_of(memory: RankedMemory) -> tuple[MemoryEntry, ...]:
    """Return a memory's entry, its earlier versions, and those that contradict it."""
    return memory.memory, *memory.versions, *memory.contradicting
