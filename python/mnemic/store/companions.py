"""The part of the contract of stores that keeps the vectors of further models."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnemic.model import MemoryEntry


class CompanionReads(Protocol):
    """Vectors of other models than the agent's own, beside the entries they belong to.

    They are a cache: nothing depends on them, they are no changes of their entries, count in no
    quota and go into no export. They share the entry's transactions: those of an old content are
    gone once the new one is stored, and all are with a permanently deleted entry. A model may be
    both a companion and, before or later, the agent's own; the vectors of both are kept apart.
    """

    def companions(
        self,
        agent_id: str,
        model: str,
        rows: Sequence[int] | None = None,
        *,
        dimensions: int | None = None,
        deadline: float | None = None,
    ) -> dict[int, NDArray[np.float32]]:
        """Return the companion vectors of a model, shape (chunks, dimensions), by row.

        Damaged ones are missing, as if they were not stored.

        Args:
            agent_id: The agent.
            model: Name of the model.
            rows: Only these rows; None is all of the agent, in any state.
            dimensions: Only vectors of this length; None is that of the first row that has some.
            deadline: See `Store`.
        """
        ...

    def companion_models(self, agent_id: str) -> dict[str, int]:
        """Return the number of the agent's entries with companion vectors, by model."""
        ...

    def add_companions(
        self,
        agent_id: str,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, NDArray[np.float32]],
        *,
        with_sensitive: bool = False,
    ) -> Future[int]:
        """Store companion vectors of rows, in place of earlier ones of the model.

        Args:
            agent_id: The agent.
            model: Name of the model.
            entries: The entries by row; those whose content is stored no more, and sensitive ones,
                are passed over.
            vectors: Shape (chunks, dimensions), for each of these rows; finite.
            with_sensitive: Store those of sensitive entries too, which are to become their own.

        Returns:
            Number of rows whose vectors were stored.
        """
        ...

    def drop_companions(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the companion vectors of a model, or of all; return of how many entries.

        An entry with vectors of two models counts twice.

        The agent's own vectors stay, whatever their model.
        """
        ...
