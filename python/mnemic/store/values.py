"""Values that a store takes and gives: positions in its logs, pages, stored entries, links."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, MemoryLink, MemoryType, Scope
from mnemic.model.filter import Criteria
from mnemic.model.rows import Access, Link, Record, RowBatch
from mnemic.protocols import UserLimit

Model: TypeAlias = tuple[str, int]
"""Name and dimension of an embedding model."""

AccessCount: TypeAlias = tuple[int, int]
"""Number of accesses, and time of the last one in microseconds since 1970 in UTC."""


class LogPosition(NamedTuple):
    """Position in an agent's change log and access log.

    Attributes:
        seq: Number of the last change.
        accesses: Number of times that accesses were written. Accesses are not changes.
    """

    seq: int
    accesses: int


class StoredKey(NamedTuple):
    """What is stored of a key of an agent.

    Attributes:
        key_id: Id of the master key, 8 bytes.
        name: Its name.
        salt: The agent's salt.
        check_value: By it the key is recognised; see `Sealer.check_value`.
    """

    key_id: bytes
    name: str
    salt: bytes
    check_value: bytes


class AccessedRows(NamedTuple):
    """Accesses since a position, as of one moment.

    Attributes:
        position: Position of the agent at that moment.
        rows: Row, last access in microseconds since 1970 in UTC, and access count of each entry,
            unordered.
    """

    position: LogPosition
    rows: list[Access]


class UpdatedEntry(NamedTuple):
    """An entry that a write has updated."""

    id: UUID
    type: MemoryType


class UpdatedEntries(list[UpdatedEntry]):
    """The entries that a write has updated, and those that it deleted to make space.

    Attributes:
        last: The new state of the last one, of what may be many; None of none.
        evicted: Ids of the deleted ones, in the order in which they went.
    """

    def __init__(
        self,
        updated: Iterable[UpdatedEntry] = (),
        last: MemoryEntry | None = None,
        evicted: Iterable[UUID] = (),
    ) -> None:
        super().__init__(updated)
        self.last = last
        self.evicted = list(evicted)


class MarkedIds(list[UUID]):
    """The ids of entries that a write has marked as deleted.

    Attributes:
        before: Of those that it names by their ids, the ids of those marked before.
    """

    def __init__(self, marked: Iterable[UUID] = (), before: Iterable[UUID] = ()) -> None:
        super().__init__(marked)
        self.before = list(before)


class EntryRow(NamedTuple):
    """An entry and its row."""

    row: int
    entry: MemoryEntry


class StoredEntry(NamedTuple):
    """An entry with its idempotency key and the vectors of its further chunks; see `NewEntry`."""

    row: int
    entry: MemoryEntry
    key: str | None
    more: tuple[Float32Array, ...] = ()


class StoredAgent(NamedTuple):
    """What is stored of an agent beside its entries.

    Attributes:
        model: Its embedding model, None without any vector. Vectors of entries in any state count.
            An agent without any takes vectors of another model.
        time_zone: Name of the time zone that came with its first entries; None before.
    """

    model: Model | None
    time_zone: str | None


OwnedId: TypeAlias = tuple[str | None, UUID]
"""User and id of an entry of one agent."""


class EntryVectors(NamedTuple):
    """The vectors of an entry, and the state of the entry that they belong to.

    Attributes:
        version: Version of the entry.
        updated_at: Time of its last change, in microseconds since 1970 in UTC.
        vectors: Shape (chunks, dimensions); None without any.
    """

    version: int
    updated_at: int
    vectors: Float32Array | None


class StoredLink(NamedTuple):
    """A link between two entries of one user, and the user."""

    link: MemoryLink
    user_id: str | None


class LinkedRows(NamedTuple):
    """A link with the rows of its ends and the user of its source."""

    from_row: int
    to_row: int
    user_id: str | None
    link: MemoryLink

    @property
    def place(self) -> tuple[object, ...]:
        """The key of the order of links: time, then ids, then type, then user."""
        link = self.link
        return link.created_at, link.from_id, link.to_id, link.type, self.user_id or ""

    def other_end(self, row: int) -> int:
        """Return the row at the other end."""
        return self.to_row if self.from_row == row else self.from_row


class ReplacedEntry(NamedTuple):
    """An entry that was stored over the one with its id.

    Attributes:
        entry: The entry as it is stored, with the vectors that came with it.
        content_changed: Whether its content is another than the old one's.
        is_sealed_now: Whether it is sealed, and the old one was not.
    """

    entry: MemoryEntry
    content_changed: bool
    is_sealed_now: bool = False


class Selection(NamedTuple):
    """Entries of a scope.

    Attributes:
        scope: The scope.
        criteria: Which of its entries.
    """

    scope: Scope
    criteria: Criteria


class WriteResult(NamedTuple):
    """Result of one `add`, in the order of its entries.

    Attributes:
        ids: Id of each entry, or of the existing entry that it repeats.
        rows: Row of each entry.
        is_new: Whether each entry was stored.
        changed: Other existing rows that changed: merged into, superseded, or superseding no more.
        batch: The change for an index; None if the index must read it from the store.
        replaced: By position, the entries that were stored over others.
        evicted: Ids of the entries that were deleted permanently to make space.
        removed: Ids of those that were deleted permanently because others took their place.
    """

    ids: list[UUID]
    rows: list[int]
    is_new: list[bool]
    changed: list[int]
    batch: RowBatch | None
    replaced: Mapping[int, ReplacedEntry]
    evicted: Sequence[UUID] = ()
    removed: Sequence[UUID] = ()


class BatchSink(Protocol):
    """Receives a full load in batches: all records, then the vectors."""

    def restart(self) -> None:
        """Forget what came before: the store reads all rows anew, in a later state."""
        ...

    def add_records(self, records: list[Record]) -> None:
        """Add records of rows."""
        ...

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors, shape (n, dim), of rows, shape (n,), whose records were added before.

        All chunks of one row arrive in one call, next to each other.
        """
        ...


class CollectedBatch:
    """A sink that collects everything."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what came before."""
        self.records: list[Record] = []
        self.rows: list[Int64Array] = []
        self.vectors: list[Float32Array] = []

    def add_records(self, records: list[Record]) -> None:
        """Add records of rows."""
        self.records += records

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors of rows."""
        self.rows.append(rows)
        self.vectors.append(vectors)


def full_batch(sink: BatchSink, links: list[Link]) -> RowBatch:
    """Return the change to all rows, with those that a sink has collected.

    Args:
        sink: Has got the rows; the batch has none of another than a `CollectedBatch`.
        links: Their links.
    """
    collected = sink if isinstance(sink, CollectedBatch) else CollectedBatch()
    return RowBatch(
        since=None,
        seq=0,
        records=collected.records,
        embedded=[row for rows in collected.rows for row in rows.tolist()],
        vectors=np.concatenate(collected.vectors) if collected.vectors else None,
        removed=[],
        links=links,
    )


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


class ReembeddingProgress(NamedTuple):
    """How far another model's vectors are filled.

    Attributes:
        missing: Number of entries that still lack their vectors.
        wanted: Number of entries that need them.
    """

    missing: int
    wanted: int


class EntryLimits(NamedTuple):
    """Budgets of entries, and what becomes of a write that exceeds a quota or a budget.

    Attributes:
        entries: Maximum number of entries of the agent, in any state; None is no limit.
        user_entries: Maximum number of entries of each user, and of the entries without a user.
        evicts: Whether entries are deleted permanently for it, the least important first; see
            `Eviction`. Otherwise it is refused.
    """

    entries: int | None = None
    user_entries: UserLimit | None = None
    evicts: bool = False


NO_ENTRY_LIMITS: Final = EntryLimits()
"""No budgets, and nothing is deleted."""


class Quotas(NamedTuple):
    """The quotas of a write.

    Attributes:
        agent: Maximum bytes of content of the agent; None is no limit.
        user: Maximum bytes of content of each user, and of the entries without a user.
        entry_limits: Budgets of entries, and whether a write may delete others.
    """

    agent: Quota | None = None
    user: UserLimit | None = None
    entry_limits: EntryLimits = NO_ENTRY_LIMITS


NO_QUOTAS: Final = Quotas()


def limit_of(limit: UserLimit | None, user_id: str | None) -> int | None:
    """Return the limit of a user; None is no limit."""
    return limit(user_id) if callable(limit) else limit


def check_quota(quota: Quota | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents do not fit; less always fits.

    Args:
        quota: The limit; None is none.
        used: Bytes used before.
        size: Bytes to be added.
    """
    if quota is not None and size > 0 and used + size > quota.limit:
        raise StorageQuotaExceededError(used, quota.limit, quota.tier, added=size)


def check_entries(limit: int, scope: Scope, stored: int, number: int) -> None:
    """Raise StorageQuotaExceededError if further entries do not fit.

    Args:
        limit: Maximum number of entries.
        scope: Whose: the agent's or a user's.
        stored: Number of entries before.
        number: Number of entries to be added.
    """
    if stored + number > limit:
        quota: Literal["agent", "user"] = "agent" if scope.all_users else "user"
        raise StorageQuotaExceededError(
            stored, limit, None, quota, scope.user_id, added=number, unit="entries"
        )


def check_user_quota(quota: UserLimit | None, user_id: str | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents of a user do not fit.

    Args:
        quota: Maximum bytes; None is no limit.
        user_id: The user; None is the entries without a user.
        used: Bytes that the user's contents took before.
        size: Bytes to be added.
    """
    limit = limit_of(quota, user_id) if size > 0 else None
    if limit is not None and used + size > limit:
        raise StorageQuotaExceededError(used, limit, quota="user", user_id=user_id, added=size)
