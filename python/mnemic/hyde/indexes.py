"""The indexes that an engine searches: the memory's own, and one by another embedding model."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.own_index import OwnIndex
from mnemic.hyde.search import Candidate, Searched, best_first, found_by_hypotheses
from mnemic.model import Expression, Scope
from mnemic.model.deadline import check_deadline
from mnemic.repository import Repository


class TurnIndex(Protocol):
    """An index of a scope's memories, and the embedder of its hypotheses."""

    @property
    def embedder(self) -> ValidatedEmbedder:
        """Embeds hypotheses as the memories are embedded."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether only a build takes the latest changes in."""
        ...

    def build(self, cancelled: Callable[[], bool]) -> None:
        """Take all changes in, and embed what lacks a vector."""
        ...

    def has_vectors(self, deadline: float) -> bool:
        """Return whether any memory of the scope can be found."""
        ...

    def search(self, vectors: NDArray[np.float32], deadline: float) -> Searched:
        """Return the memories nearest to any hypothesis, best first."""
        ...


class MemoryIndex:
    """The memory's own index, which every search brings up to date.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        embedder: Of the model of the memories.
        config: The configuration.
        filters: Only memories that match.

    Attributes:
        embedder: As above.
        is_behind: False.
    """

    is_behind = False

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        embedder: ValidatedEmbedder,
        config: HydeConfig,
        filters: Expression | None,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._config = config
        self._filters = filters
        self.embedder = embedder

    def build(self, cancelled: Callable[[], bool]) -> None:
        """Apply all changes, and embed the memories that lack a vector."""
        del cancelled  # the memory ends its own embedding
        self._repository.readiness.build()

    def has_vectors(self, deadline: float) -> bool:
        """Return whether the scope has active memories, and the agent any vectors."""
        return self._repository.readiness.has_vectors(self._scope, deadline)

    def search(self, vectors: NDArray[np.float32], deadline: float) -> Searched:
        """Return the memories nearest to any hypothesis, best first."""
        return found_by_hypotheses(
            self._repository,
            self._scope,
            vectors,
            self._config,
            model=self.embedder.model,
            filters=self._filters,
            deadline=deadline,
        )


class CompanionIndex:
    """An index by another model than the memory's own; a build takes changes in.

    Args:
        repository: As above.
        scope: As above.
        embedder: Of the other model.
        config: As above.
        filters: As above.

    Attributes:
        embedder: As above.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        embedder: ValidatedEmbedder,
        config: HydeConfig,
        filters: Expression | None,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._config = config
        self._filters = filters
        self._own = OwnIndex(repository, scope, embedder)
        self._built_seq = -1
        self.embedder = embedder

    @property
    def is_behind(self) -> bool:
        """Whether the memories changed since the last build began, or the vectors' length did."""
        if self._own.is_outdated:
            return True
        return self._repository.finder.position().seq != self._built_seq

    def build(self, cancelled: Callable[[], bool]) -> None:
        """Read and embed what changed since the last build."""
        seq = self._repository.finder.position().seq
        if not self._own.build(cancelled).is_cancelled:
            self._built_seq = seq

    def has_vectors(self, deadline: float) -> bool:
        """Return whether any memory of the scope is indexed."""
        return len(self._own) > 0 and self._repository.finder.has_memories(self._scope, deadline)

    def search(self, vectors: NDArray[np.float32], deadline: float) -> Searched:
        """Return the memories nearest to any hypothesis, best first."""
        finder = self._repository.finder
        seq = finder.position().seq
        limit, alone = self._config.retrieval_top_k, self._config.candidates_per_hypothesis
        if alone is not None and alone < limit and len(vectors) > 1:
            scores = self._united([self._nearest(one, alone, deadline) for one in vectors])
        else:
            scores = self._united([self._nearest(vectors, limit, deadline)])
        check_deadline(deadline)
        entries = self._repository.companions.entries(self._scope, list(scores))
        self._repository.note_returned(entries)
        found = [Candidate(row, scores[row], entry) for row, entry in entries.items()]
        best = best_first(found, self._config)
        return Searched(best, seq, stale_since=finder.stale_since)

    def _nearest(
        self, vectors: NDArray[np.float32], limit: int, deadline: float
    ) -> list[tuple[int, float]]:
        return self._own.search(
            vectors,
            limit,
            min_similarity=self._config.min_similarity,
            filters=self._filters,
            deadline=deadline,
        )

    @staticmethod
    def _united(lists: Sequence[list[tuple[int, float]]]) -> dict[int, float]:
        best: dict[int, float] = {}
        for row, score in (pair for found in lists for pair in found):
            best[row] = max(score, best.get(row, score))
        return best
