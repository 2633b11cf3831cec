"""The vectors of further models: the rows that need them, and their place in the store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemic.index import ListRequest, RankInputs, Selected
from mnemic.model import MOST_IMPORTANT, All, Expression, MemoryEntry, Scope, Search
from mnemic.model.timestamps import to_microseconds
from mnemic.model.validation import optional_name
from mnemic.protocols import Clock
from mnemic.repository.index_set import IndexSet
from mnemic.repository.limits import Limits
from mnemic.store import Store
from mnemic.sync_bridge import run_blocking

_ALL_ROWS = 2**62


class Changed(NamedTuple):
    """The rows that changed since an earlier change number.

    Attributes:
        seq: Change number that they lead to.
        rows: Their numbers, of any scope and state; None if every row may have changed.
    """

    seq: int
    rows: list[int] | None


class CompanionVectors:
    """Serves an index of one agent's memories by another model than the memory's own.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        indexes: That of active memories selects.
        clock: Gives the time.
        limits: Check the license.
        can_write: Whether vectors may be stored.

    Attributes:
        can_write: Whether vectors may be stored.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        indexes: IndexSet,
        clock: Clock,
        *,
        limits: Limits,
        can_write: bool,
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self._active = indexes.active
        self._now = clock
        self._limits = limits
        self.can_write = can_write

    def refresh(self, deadline: float | None = None) -> None:
        """Apply new changes to the memory's own index."""
        self._active.catch_up(deadline=deadline)

    def changed_since(self, seq: int | None) -> Changed:
        """Apply new changes to the memory's own index; return the rows that changed.

        Args:
            seq: From an earlier call; None for the first.
        """
        stands = self._active.catch_up().seq
        if seq == stands:
            return Changed(stands, [])
        rows = None if seq is None else self._store.changed_rows_since(self._agent_id, seq)
        return Changed(stands, rows)

    def rows(self, scope: Scope) -> NDArray[np.int64]:
        """Return the active rows of a scope that have not expired, int64, ascending."""
        now = to_microseconds(self._now())
        wanted = ListRequest(scope=scope, now=now, filters=All(()), limit=_ALL_ROWS)
        listed = self._active.index.listed(wanted)
        return np.sort(np.array([row for row, *_ in listed], np.int64))

    def selected(
        self, scope: Scope, filters: Expression | None = None, deadline: float | None = None
    ) -> Selected | None:
        """Return the active rows of a scope that match a filter; None if there are none."""
        search = Search(
            text=None, limit=0, ranking=MOST_IMPORTANT, filters=filters, deadline=deadline
        )
        inputs = RankInputs(scope, to_microseconds(self._now()))
        return self._active.index.selected(search, inputs, 0)

    def known(self, rows: Sequence[int]) -> list[bool]:
        """Return for each row whether the memory's own index has it."""
        return [found is not None for found in self._active.index.accesses(rows)]

    def entries(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the active entries of these rows in a scope."""
        return self._store.get_rows(scope, rows, now=self._now())

    def stored(
        self,
        model: str,
        rows: Sequence[int] | None,
        dimensions: int | None,
    ) -> dict[int, NDArray[np.float32]]:
        """Return the stored vectors of a model, shape (chunks, dimensions), by row.

        Args:
            model: Name of the model.
            rows: Only these rows; None for all of the agent.
            dimensions: Only vectors of this length; None is that of the first one.
        """
        return self._store.companions(self._agent_id, model, rows, dimensions=dimensions)

    def store(
        self,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, NDArray[np.float32]],
    ) -> None:
        """Store vectors of a model beside their entries, as far as these are unchanged.

        Args:
            model: Name of the model.
            entries: The entries by row; sensitive ones are passed over.
            vectors: Shape (chunks, dimensions), for each of these rows.
        """
        plain = {row: entry for row, entry in entries.items() if not entry.hides_content}
        if plain and self.can_write:
            self._store.add_companions(self._agent_id, model, plain, vectors).result()

    def models(self) -> dict[str, int]:
        """Return the number of memories with stored vectors, by further model."""
        return self._store.companion_models(self._agent_id)

    async def drop(self, model: str | None) -> int:
        """Delete the stored vectors of a further model, or of all; return of how many memories.

        The vectors by which the memory itself searches stay, whatever their model.
        """
        self._limits.require_storing()
        name = optional_name("model", model)
        return await run_blocking(
            lambda: self._store.drop_companions(self._agent_id, name).result(), self._store
        )
