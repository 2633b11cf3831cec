"""Operations of a store: what is read or written, as records that each store carries out.

Each has the promises of `Store`, and those that it states itself.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar
from uuid import UUID

from msgspec import Struct

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.store.values import EntryRow, EntryVectors, OwnedId, StoredEntry

Result = TypeVar("Result")

BEFORE_EXPIRY: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time at which no entry has expired."""


class Read(Struct, Generic[Result], frozen=True):
    """A read; the type of its result stands in the brackets of its base."""

    @property
    def agent_id(self) -> str:
        """The agent whose entries are read."""
        raise NotImplementedError


class ScopeRead(Read[Result], frozen=True):
    """A read within a scope: what lies outside does not exist for it."""

    scope: Scope

    @property
    def agent_id(self) -> str:
        """The agent of the scope."""
        return self.scope.agent_id


class AgentRead(Read[Result], frozen=True):
    """A read of an agent's entries, whoever's they are."""

    agent_id: str  # pyright: ignore[reportIncompatibleMethodOverride] - a field serves as well


class EntriesById(ScopeRead[dict[UUID, EntryRow]], frozen=True):
    """The active entries with these ids, and their rows; without their embeddings.

    Unknown ids are missing. A sealed entry that cannot be opened raises SealBrokenError.

    Attributes:
        ids: The ids.
        now: Entries expired by now count as deleted.
        include_deleted: Also those that are not active: deleted, expired, archived, superseded.
    """

    ids: Sequence[UUID]
    now: datetime
    include_deleted: bool = False


class EntriesByRow(ScopeRead[dict[int, MemoryEntry]], frozen=True):
    """The active entries of these rows, in ascending order; otherwise like `EntriesById`.

    Sealed entries that cannot be opened are missing, and logged.
    """

    rows: Sequence[int]
    now: datetime
    include_deleted: bool = False


class Successors(ScopeRead[dict[int, MemoryEntry]], frozen=True):
    """The entries that supersede one of these rows, by their own rows.

    They have any status, and are neither deleted nor expired by now.
    """

    rows: Sequence[int]
    now: datetime


class StoredEntries(ScopeRead[list[StoredEntry]], frozen=True):
    """Entries with any status, in the order they were stored.

    Attributes:
        after: Row of the last entry of the previous page; 0 begins.
        limit: Maximum number of entries.
        now: Entries expired by now count as deleted.
        include_deleted: Whether to return deleted and expired entries too.
        model: Attach the vectors of this model to entries that have some.
    """

    after: int
    limit: int
    now: datetime
    include_deleted: bool
    model: str | None


class VectorsOfRow(AgentRead[Float32Array], frozen=True):
    """The vectors of a row's chunks, shape (chunks, dimensions); (0, 0) for none."""

    row: int
    model: str


class VectorsById(AgentRead[dict[OwnedId, EntryVectors]], frozen=True):
    """The vectors of entries, in any state, by user and id.

    Unknown ids are missing. Entries without vectors of the model have None.
    """

    entries: Collection[OwnedId]
    model: str
