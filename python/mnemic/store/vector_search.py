"""The part of the contract of stores that select memories for a search themselves."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from mnemic.arrays import Float32Array
from mnemic.model import Expression, MemoryEntry, Scope
from mnemic.model.rows import RowBatch
from mnemic.store.values import Model


class NearestRequest(NamedTuple):
    """A request for the active memories of a scope that are most similar to a query.

    Attributes:
        scope: Only its memories.
        filters: Only memories that match; None is all.
        vectors: float32, shape (m, dim): the best match of any of them counts.
        model: Model of the memories' vectors.
        limit: Number of memories, at least 1.
        now: Microseconds since 1970 in UTC; memories that expired before are left out.
        is_exact: Whether every memory is compared; else an approximate index may choose some.
    """

    scope: Scope
    filters: Expression | None
    vectors: Float32Array
    model: Model
    limit: int
    now: int
    is_exact: bool = True


class SelectedRows(NamedTuple):
    """Rows that a store selected for a search, as of one moment.

    Attributes:
        batch: The rows with their vectors.
        entries: Returns the active memories of some of these rows that a scope has, at a time.
        approximate: Whether an approximate index chose them.
    """

    batch: RowBatch
    entries: Callable[[Scope, Sequence[int], datetime], dict[int, MemoryEntry]]
    approximate: bool = False


class VectorSearch(Protocol):
    """Selects memories for a search of an agent whose index is not in memory.

    The store selects, and the core ranks: scores and ties are those of an index of all memories.
    """

    searches_vectors: bool
    """Whether it does; otherwise every search loads the index of its agent."""

    def nearest(
        self, wanted: NearestRequest, *, deadline: float | None = None
    ) -> SelectedRows | None:
        """Return memories among which the most similar ones are, and all that tie with the last.

        None if the store does not know them: it has no such search or the filter is beyond it, a
        memory of the scope has no vector, or too many are not similar at all.

        Args:
            wanted: The request.
            deadline: See `Store`.
        """
        ...

    def active_rows(
        self, scope: Scope, model: Model | None, *, deadline: float | None = None
    ) -> SelectedRows | None:
        """Return all active rows of a scope, expired ones included, with vectors and links.

        None if the store does not select.
        """
        ...

    def rows_without_vectors(
        self,
        agent_id: str,
        model: Model,
        among: Sequence[int] | None = None,
        *,
        deadline: float | None = None,
    ) -> list[int]:
        """Return the active rows of an agent, or those of some rows, without a vector of a model.

        None of a store that does not select.
        """
        ...

    def create_vector_index(self, agent_id: str) -> bool:
        """Build the approximate index of an agent's vectors, and wait for it.

        Returns:
            Whether there is one now; False if the store has no such indexes, or none for vectors
            as long as these.
        """
        ...


class NoVectorSearch:
    """The same of a store that leaves every search to the index of its agent."""

    searches_vectors = False

    def nearest(self, wanted: NearestRequest, *, deadline: float | None = None) -> None:
        """Return None."""
        del wanted, deadline

    def active_rows(
        self, scope: Scope, model: Model | None, *, deadline: float | None = None
    ) -> None:
        """Return None."""
        del scope, model, deadline

    def rows_without_vectors(
        self,
        agent_id: str,
        model: Model,
        among: Sequence[int] | None = None,
        *,
        deadline: float | None = None,
    ) -> list[int]:
        """Return none: no search asks for them."""
        del agent_id, model, among, deadline
        return []

    def create_vector_index(self, agent_id: str) -> bool:
        """Return False."""
        del agent_id
        return False
