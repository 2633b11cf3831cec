"""The contract of every index."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mnemic._core import VectorMap
from mnemic.index.loading import Loader
from mnemic.model import RowBatch, Scope


class Ranked(NamedTuple):
    """One row of an answer.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        score: Cosine of query and row, in float64; what the order is by.
    """

    row: int
    id: bytes
    score: float


class Index(Protocol):
    """Ranks one agent's rows. Safe to search from many threads while one applies changes."""

    @property
    def seq(self) -> int | None:
        """The change number it stands at; None before it was loaded."""
        ...

    def loader(self) -> Loader:
        """Return what takes the vectors of a whole batch while they are read."""
        ...

    def apply(self, batch: RowBatch, loaded: VectorMap | None = None) -> bool:
        """Take in a batch of changes; return False if it does not follow where the index stands.

        Args:
            batch: The changes.
            loaded: The vectors of a whole batch, if its `loader` took them.
        """
        ...

    def is_ahead_of(self, now: int) -> bool:
        """Return whether rows were dropped as expired that have not: the clock went back.

        Then it must be loaded anew.
        """
        ...

    def search(
        self, query: NDArray[np.float32], scope: Scope, limit: int, now: int
    ) -> list[Ranked]:
        """Return the best rows of a scope that have not expired.

        Order: score, then newest, then smallest UUID (C164). The answer of a smaller limit is
        always the head of the answer of a larger one (C193).

        Args:
            query: Shape (dim,).
            scope: Agent and user are walls, project and session filters.
            limit: At least 1.
            now: Microseconds since 1970 in UTC. What expired in an earlier call is dropped for
                good; see `is_ahead_of`.

        Returns:
            min(limit, rows in scope) rows, best first.
        """
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...
