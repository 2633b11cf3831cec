"""Operations of a store: what is read or written, as records that each store carries out.

Each has the promises of `Store`, and those that it states itself.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar
from uuid import UUID

from msgspec import Struct

from mnemic.arrays import Float32Array
from mnemic.model import (
    Expression,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryLink,
    MemorySortOrder,
    Scope,
    UserUsage,
)
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.link import Direction
from mnemic.model.results import PageCursor
from mnemic.store.values import (
    AccessedRows,
    EntryRow,
    EntryVectors,
    LinkEnd,
    LogPosition,
    OwnedId,
    StoredAgent,
    StoredEntry,
    StoredLink,
)

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


class EntryPage(ScopeRead[list[MemoryEntry]], frozen=True):
    """The entries of a scope that match a filter, ordered and cut.

    A store may narrow to a superset of the matches; the core decides the rest. Archived and
    superseded entries are omitted unless the filter tests the status. Ties of the order: newest
    first, then smallest id, then user by name, no user before all others. Entries come without
    their embeddings.

    Attributes:
        expression: Parsed filter, from `mnemic.model.parse_filter`.
        now: Entries expired by now count as deleted.
        limit: Maximum number of entries.
        order: The order.
        offset: Number of first entries, of those after the cursor, to skip.
        after: Only entries after this one, in the order of the newest first; None is all.
        include_deleted: Also deleted and expired entries.
    """

    expression: Expression
    now: datetime
    limit: int
    order: MemorySortOrder = MemorySortOrder.CREATED_DESCENDING
    offset: int = 0
    after: PageCursor | None = None
    include_deleted: bool = False


class EntryCount(ScopeRead[int], frozen=True):
    """The number of entries on an `EntryPage` without a limit.

    Attributes:
        now: Entries expired by now are not counted.
        expression: Parsed filter; None is any entry that a search can find.
    """

    now: datetime
    expression: Expression | None = None


class DistinctValues(ScopeRead[list[DistinctValue]], frozen=True):
    """The distinct values of a field in the entries on an `EntryPage` without a limit.

    Each has the number of its entries. Missing values are left out; an entry counts once for each
    of its tags. Values ascend: booleans, numbers, texts by code points, lists, dicts.
    """

    expression: Expression
    query: DistinctQuery
    now: datetime


class LinksOf(ScopeRead[list[MemoryLink]], frozen=True):
    """The links of an entry; both ends are in the scope, neither deleted nor expired.

    Order: time, then ids, then type.
    """

    entry_id: UUID
    direction: Direction
    kinds: Collection[LinkType] | None
    now: datetime


class LinkEnds(ScopeRead[list[LinkEnd]], frozen=True):
    """The other ends of the links of a row's entry, in the order of `LinksOf`."""

    row: int
    direction: Direction
    kinds: Collection[LinkType] | None
    now: datetime


class LinksWithin(ScopeRead[list[StoredLink]], frozen=True):
    """The links between entries of one user that `StoredEntries` returns.

    Order: as `LinksOf`, then by user.
    """

    now: datetime
    include_deleted: bool


class UsedBytes(ScopeRead[int], frozen=True):
    """The bytes of the contents of a user or, for all users, of the agent.

    Those of deleted entries count; project and session are ignored.
    """


class StoredCount(ScopeRead[int], frozen=True):
    """The number of entries in any state; deleted ones count until purged."""


class Users(AgentRead[list[UserUsage]], frozen=True):
    """The users who have entries in any state, no user first, then by code points.

    Attributes:
        now: Entries expired by now are not active.
        limit: Maximum number of users.
        offset: Number of first users to skip.
        prefix: Only users whose ids begin with it; None is all.
    """

    now: datetime
    limit: int
    offset: int = 0
    prefix: str | None = None


class ScopeStatistics(ScopeRead[LongTermMemoryStats], frozen=True):
    """Statistics of a scope as of one moment, without quota and embedder figures."""

    now: datetime


class AgentFacts(AgentRead[StoredAgent], frozen=True):
    """What is stored of an agent beside its entries."""


class PositionAndRevision(ScopeRead[tuple[LogPosition, int]], frozen=True):
    """The agent's position and the revision of the scope's user, read at one moment.

    A revision is a number that rises with every change within a user, and with no other change. A
    scope without a user has that of the entries without a user; project and session are ignored.
    For all users it is the number of the agent's last change. Accesses and expiry are not changes.
    The number never falls, and is 0 before the first change.
    """


class ChangedRows(AgentRead[list[int] | None], frozen=True):
    """The rows changed after a change, or None if the log has dropped some.

    Attributes:
        seq: Number of the change.
    """

    seq: int


class AccessesSince(AgentRead[AccessedRows], frozen=True):
    """The accesses written after a number of access writes.

    Accesses that are not written yet are missing. Entries that cannot be found may be included. All
    accesses since schema version 4 are returned for 0 and for a number that was not reached yet.

    Attributes:
        accesses: From an earlier `LogPosition`.
    """

    accesses: int
