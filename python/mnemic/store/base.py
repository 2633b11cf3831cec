"""The contract of every store."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.licensing import Quota
from mnemic.model import (
    Expression,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    RowBatch,
    Scope,
)


class Store(Protocol):
    """Keeps memories for good. The store is the truth; an index is a cache of it.

    Every method checks the scope it is given: an entry outside it is like one that does not exist.
    Forgotten, archived and superseded entries are not found. A write has happened, all of it and
    durably, when its call returns, and not at all if the call raises. Every write adds to the
    agent's numbered changes in the same transaction.

    Methods that `mnemic.waiting.drive` runs, with no event loop, wait in the caller's thread.

    Raises:
        StoreClosedError: By every method after `close`.
        StoreError: By any method; its children say what is wrong with the file or the disk.
    """

    async def add(
        self, agent_id: str, entries: Sequence[MemoryEntry], quota: Quota | None = None
    ) -> RowBatch:
        """Store entries of this agent, all or none, with the embeddings they carry.

        The quota is checked in the transaction that writes, so that writers together never pass
        it (C082).

        Returns:
            The change as an index takes it in.

        Raises:
            DuplicateEntryError: If an id is already stored for this agent, forgotten or not.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would pass the quota.
        """
        ...

    async def add_embeddings(
        self, agent_id: str, model: str, rows: Sequence[int], vectors: NDArray[np.float32]
    ) -> None:
        """Give rows the vectors they lack; rows that are gone or have one are passed over."""
        ...

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, include_forgotten: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries of these ids that the scope has, without their embeddings.

        Args:
            scope: Where to look.
            ids: Unknown ones are left out of the answer.
            include_forgotten: Return forgotten, archived and superseded entries too.
        """
        ...

    async def get_rows(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the entries of these rows that the scope has, without their embeddings."""
        ...

    async def matching(
        self, scope: Scope, expression: Expression, page: MemoryFilter
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true.

        Args:
            scope: Where to look.
            expression: From `mnemic.model.parse_filter`.
            page: Its order, limit, offset and `include_forgotten` are honoured. Archived and
                superseded entries are left out unless the filter asks for a status.

        Returns:
            Entries without their embeddings, in a total order: ties go to the newest, then to the
            smallest id.
        """
        ...

    async def forget(self, scope: Scope, entry_id: UUID, now: datetime) -> bool:
        """Mark an entry as forgotten; return False if the scope has none of that id."""
        ...

    async def restore(self, scope: Scope, entry_id: UUID, oldest: datetime) -> bool:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        ...

    async def delete(self, scope: Scope, entry_id: UUID) -> bool:
        """Delete an entry for good, forgotten or not, with its vectors and links.

        Returns:
            False if the scope has none of that id.
        """
        ...

    async def forget_all(self, scope: Scope, now: datetime) -> int:
        """Mark all entries of a scope as forgotten that are not; return how many."""
        ...

    async def delete_all(self, scope: Scope) -> int:
        """Delete all entries of a scope for good, forgotten or not; return how many."""
        ...

    async def purge(self, agent_id: str, oldest: datetime) -> int:
        """Delete for good what was forgotten before `oldest`; return how many entries."""
        ...

    async def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        quota: Quota | None = None,
    ) -> MemoryEntry | None:
        """Change a living entry.

        Args:
            scope: Where it is.
            entry_id: Which it is.
            change: Makes the new state from the one that is stored at the moment of the write;
                its content, importance, type, tags, metadata and `updated_at` are kept.
            embedded: Model and vector of the new content, if it changes.
            quota: Checked as in `add` if the content grows.

        Returns:
            The entry as it is then, or None if the scope has none of that id.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would pass the quota.
        """
        ...

    async def used_bytes(self, agent_id: str) -> int:
        """Return how many bytes the agent's contents take, forgotten ones included (C085)."""
        ...

    async def stats(self, agent_id: str) -> LongTermMemoryStats:
        """Return what the agent has, all its users together, as of one moment."""
        ...

    async def count(self, scope: Scope) -> int:
        """Return how many entries the scope has."""
        ...

    async def embedding_model(self, agent_id: str) -> tuple[str, int] | None:
        """Return name and dimension of the model of the agent's vectors, or None before any."""
        ...

    async def contents(self, agent_id: str, rows: Sequence[int]) -> dict[int, str]:
        """Return the texts of those of these rows that are living."""
        ...

    async def seq(self, agent_id: str) -> int:
        """Return the number of the agent's last change, 0 before any."""
        ...

    async def rows_since(self, agent_id: str, model: str, dim: int, seq: int | None) -> RowBatch:
        """Return what an index needs to step from change `seq` to now.

        Everything is returned for None, or if the changes since `seq` are no longer kept.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
        """
        ...

    async def close(self) -> None:
        """Finish the writes that were handed in, then let go of the file. Harmless if repeated."""
        ...
