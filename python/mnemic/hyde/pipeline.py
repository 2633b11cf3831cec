"""Vectors, search, links and earlier versions of a turn, in one piece of work in a thread."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import DeadlineExceededError, EmbeddingError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.search import TurnSearch, TurnSearchOutcome, ranked, together
from mnemic.hyde.telemetry import HydeTelemetry, Stage
from mnemic.hyde.turn_memory import TurnMemory
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import IS_NOT_SENSITIVE
from mnemic.model.marks import UNMARKED
from mnemic.repository import Repository

Result = TypeVar("Result")

READ_SECONDS, READ_SHARE = 0.01, 0.1
"""A search ends so long before the deadline, or by this share of the turn's time."""

MIN_NORM = 1e-10
"""A vector shorter than this has no direction."""


class Progress:
    """How far the work of a turn has come; read while it goes on.

    Attributes:
        memories: The result of the last complete stage; None before the search is complete.
        seq: Number of the store's last change before the search.
        marks: What holds of the search.
        stage: The stage that is under way; None after the last one.
        failed_stage: The first stage after the search that failed.
        is_left: Whether the turn was not waited for any longer.
    """

    def __init__(self) -> None:
        self.memories: Sequence[TurnMemory] | None = None
        self.seq = -1
        self.marks = UNMARKED
        self.stage: Stage | None = None
        self.failed_stage: Stage | None = None
        self.is_left = False


class Pipeline:
    """Finds the memories of a turn by its hypotheses.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        embedder: Embeds hypotheses; of the model of the memories.
        config: The configuration.
        telemetry: Counts failures.
        include_sensitive: Whether sensitive memories are found, and shown as earlier versions.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        embedder: ValidatedEmbedder,
        config: HydeConfig,
        telemetry: HydeTelemetry,
        *,
        include_sensitive: bool,
    ) -> None:
        self.repository = repository
        self._scope = scope
        self._embedder = embedder
        self.config = config
        self.telemetry = telemetry
        self._include_sensitive = include_sensitive
        filters = None if include_sensitive else IS_NOT_SENSITIVE
        self._search = TurnSearch(repository, scope, config, model=embedder.model, filters=filters)

    def has_vectors(self, deadline: float) -> bool:
        """Return whether any memory of the scope can be found.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        return self.repository.readiness.has_vectors(self._scope, deadline)

    def run(self, hypotheses: list[str], deadline: float, progress: Progress) -> None:
        """Embed hypotheses, search, then follow links, then read earlier versions.

        A failure after the search leaves the result of the stage before.

        Args:
            hypotheses: Embedded by one call.
            deadline: In seconds of `time.monotonic()`.
            progress: Gets the result of each stage.
        """
        vectors = self._timed("embedding", lambda: self._embedded(hypotheses), progress)
        if progress.is_left:
            return
        searched = self._timed("search", lambda: self._searched(vectors, deadline), progress)
        progress.seq, progress.marks = searched.seq, searched.marks
        progress.memories = ranked(searched.candidates)
        if not searched.candidates:
            return
        self._stage("expansion", lambda: self._expanded(searched, deadline), progress)
        if self.config.max_versions:
            self._stage("lineages", lambda: self._with_versions(progress, deadline), progress)
        progress.stage = None

    def present(self, memories: Sequence[TurnMemory], now: datetime) -> tuple[TurnMemory, ...]:
        """Return memories in their present state, without those deleted, expired or now sensitive.

        Args:
            memories: As they were found.
            now: The time.
        """
        entries = [entry for each in memories for entry in entries_of(each)]
        found = self.repository.readiness.present(self._scope, entries, now)
        shown = {key: entry for key, entry in found.items() if self._keeps(entry)}

        def fresh(entries: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
            keys = [(entry.user_id, entry.id) for entry in entries]
            return tuple(shown[key] for key in keys if key in shown)

        return tuple(
            msgspec.structs.replace(
                each,
                entry=shown[each.entry.user_id, each.id],
                versions=fresh(each.versions),
                contradicting=fresh(each.contradicting),
            )
            for each in memories
            if (each.entry.user_id, each.id) in shown
        )

    def _stage(
        self, stage: Stage, work: Callable[[], Sequence[TurnMemory]], progress: Progress
    ) -> None:
        """Run a stage that only adds to the search."""
        if progress.is_left:
            return
        try:
            progress.memories = self._timed(stage, work, progress)
        except Exception as error:
            if progress.is_left:
                raise
            progress.failed_stage = progress.failed_stage or stage
            is_late = isinstance(error, DeadlineExceededError)
            self.telemetry.failed(stage, None if is_late else error)

    def _timed(self, stage: Stage, work: Callable[[], Result], progress: Progress) -> Result:
        progress.stage, started = stage, time.perf_counter()
        try:
            return work()
        finally:
            self.telemetry.took(stage, time.perf_counter() - started)

    def _embedded(self, hypotheses: list[str]) -> NDArray[np.float32]:
        """Return the vectors of all hypotheses, float32, shape (m, d)."""
        vectors = _directed(np.concatenate(self._embedder.embed_chunked(hypotheses)))
        if not len(vectors):
            raise EmbeddingError("no hypothesis has a vector with a direction")
        return vectors

    def _searched(self, vectors: NDArray[np.float32], deadline: float) -> TurnSearchOutcome:
        """Search by vectors; its deadline leaves time for reading what it found."""
        read_for = min(READ_SECONDS, READ_SHARE * self.config.timeout)
        return self._search.found(vectors, deadline - read_for)

    def _expanded(self, searched: TurnSearchOutcome, deadline: float) -> list[TurnMemory]:
        config, found = self.config, searched.candidates
        if searched.error is not None:
            raise searched.error
        if searched.neighbours is not None:
            return together(found, searched.neighbours)
        if not (config.retrieval_hop_depth and config.max_neighbours):
            return ranked(found)
        return self._search.expanded(found, deadline)

    def _with_versions(self, progress: Progress, deadline: float) -> list[TurnMemory]:
        memories = self._search.with_versions(progress.memories or (), deadline)
        return [self._shown(each) for each in memories]

    def _shown(self, memory: TurnMemory) -> TurnMemory:
        """Return a memory without the versions that are not to be shown."""
        if not (memory.versions or memory.contradicting):
            return memory
        return msgspec.structs.replace(
            memory,
            versions=tuple(filter(self._keeps, memory.versions)),
            contradicting=tuple(filter(self._keeps, memory.contradicting)),
        )

    def _keeps(self, entry: MemoryEntry) -> bool:
        return self._include_sensitive or not entry.sensitive


def _directed(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows that have a direction."""
    rows: NDArray[np.float32] = vectors[np.linalg.norm(vectors, axis=1) >= MIN_NORM]
    return rows


def entries_of(memory: TurnMemory) -> tuple[MemoryEntry, ...]:
    """Return a memory's entry, its earlier versions, and those that contradict it."""
    return memory.entry, *memory.versions, *memory.contradicting
