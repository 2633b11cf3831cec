"""The contract of every store."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.licensing import Quota
from mnemic.model import (
    Access,
    Expression,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryLink,
    NewEntry,
    OnDuplicate,
    Record,
    RowBatch,
    Scope,
    State,
    VerifyReport,
)
from mnemic.protocols import Progress

Direction: TypeAlias = Literal["both", "out", "in"]
"""Links from an entry, links to it, or both."""


Model: TypeAlias = tuple[str, int]
"""Name and dimension of an embedding model."""


class BatchSink(Protocol):
    """Receives a full load in batches: all records, then the vectors."""

    def add_records(self, records: list[Record]) -> None:
        """Add records of rows."""
        ...

    def add_vectors(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, shape (n, dim), of rows, shape (n,), whose records were added before.

        All chunks of one row arrive in one call, next to each other.
        """
        ...


class LogPosition(NamedTuple):
    """Position in an agent's change log and access log.

    Attributes:
        seq: Number of the last change.
        accesses: Number of times that accesses were written. Accesses are not changes.
    """

    seq: int
    accesses: int


class AccessedRows(NamedTuple):
    """Accesses since a position, as of one moment.

    Attributes:
        position: Position of the agent at that moment.
        rows: Row, last access in microseconds since 1970 in UTC, and access count of each entry,
            unordered.
    """

    position: LogPosition
    rows: list[Access]


class PageCursor(NamedTuple):
    """Sort key of the last entry of a page, newest first; the next page begins after it."""

    created_at: datetime
    id: UUID
    user_id: str | None = None


class Located(NamedTuple):
    """An entry and its row."""

    row: int
    entry: MemoryEntry


class StoredEntry(NamedTuple):
    """An entry with its idempotency key and the vectors of its further chunks; see `NewEntry`."""

    row: int
    entry: MemoryEntry
    key: str | None
    more: tuple[NDArray[np.float32], ...] = ()


class StoredLink(NamedTuple):
    """A link between two entries of one user, and the user."""

    link: MemoryLink
    user_id: str | None


class LinkEnd(NamedTuple):
    """The other end of a link.

    Attributes:
        row: Row of the entry at the other end.
        type: Type of the link.
        strength: Strength of the link.
    """

    row: int
    type: LinkType
    strength: float


class Stored(NamedTuple):
    """Result of one `add`, in the order of its entries.

    Attributes:
        ids: Id of each entry, or of the existing entry that it repeats.
        rows: Row of each entry.
        is_new: Whether each entry was stored.
        changed: Existing rows that were merged into or superseded.
        batch: The change for an index; None if the index must read it from the store.
    """

    ids: list[UUID]
    rows: list[int]
    is_new: list[bool]
    changed: list[int]
    batch: RowBatch | None


class Store(Protocol):
    """Durable storage of memories. The store is the source of truth; an index is a cache of it.

    Every method applies its scope: an entry outside the scope does not exist for the call. Deleted,
    expired, archived and superseded entries are not found unless a method says otherwise. A write
    is complete and durable when its call returns, and has no effect if the call raises. Every write
    appends to the agent's numbered changes in the same transaction.

    Ids are unique within agent and user. A lookup by id with a scope of all users raises
    AmbiguousIdError if several users have the id.

    Under `mnemic.sync_bridge.run_sync`, without an event loop, methods wait in the caller's thread.

    Raises:
        StoreClosedError: By every method after `close`.
        ReadOnlyError: By methods that write, if the store was opened read-only.
        StoreError: By any method; its subclasses name the problem with the file or the disk.
    """

    @property
    def path(self) -> str:
        """The place of the store, for messages and metrics."""
        ...

    async def add(
        self,
        agent_id: str,
        entries: Sequence[NewEntry],
        *,
        now: datetime,
        quota: Quota | None = None,
        on_duplicate: OnDuplicate = "keep",
        is_import: bool = False,
    ) -> Stored:
        """Store entries of an agent, all or none, with their embeddings.

        An entry whose idempotency key was used before, in an earlier call or in this one, is not
        stored again. A superseded entry gets its status and a link in the same transaction. The
        quota is checked inside the transaction, so that concurrent writers never exceed it.

        Args:
            agent_id: The agent.
            entries: Any number of entries.
            now: Entries expired by now are not duplicates; merged entries are updated now.
            quota: Maximum bytes of content of the agent.
            on_duplicate: Treatment of an entry whose text the user already has.
            is_import: Allow a superseded entry to be missing.

        Raises:
            DuplicateEntryError: If an id is already stored for this agent and user, deleted or not,
                or if a key was used for another content.
            EntryNotFoundError: If a superseded entry does not exist.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would exceed the quota.
        """
        ...

    async def add_embeddings(
        self,
        agent_id: str,
        model: str,
        contents: Mapping[int, str],
        vectors: Sequence[NDArray[np.float32]],
    ) -> None:
        """Store the vectors of the contents of rows.

        Rows that no longer exist, already have a vector, or have another content by now are
        skipped.

        Args:
            agent_id: The agent.
            model: Model of the vectors.
            contents: Embedded content of each row.
            vectors: For each content the vectors of its chunks, shape (chunks, dim).
        """
        ...

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, now: datetime, include_deleted: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries with these ids in the scope, without their embeddings.

        Args:
            scope: The scope.
            ids: Ids; unknown ids are omitted from the result.
            now: Entries expired by now are omitted.
            include_deleted: Also return deleted, expired, archived and superseded entries.
        """
        ...

    async def located(
        self, scope: Scope, ids: Sequence[UUID], *, now: datetime, include_deleted: bool = False
    ) -> dict[UUID, Located]:
        """Return the entries of `get` with their rows."""
        ...

    async def get_rows(
        self, scope: Scope, rows: Sequence[int], *, now: datetime, include_deleted: bool = False
    ) -> dict[int, MemoryEntry]:
        """Return the entries of these rows in the scope; otherwise like `get`."""
        ...

    async def matching(
        self, scope: Scope, expression: Expression, page: MemoryFilter, *, now: datetime
    ) -> list[MemoryEntry]:
        """Return the entries of a scope that match a filter.

        Args:
            scope: The scope.
            expression: Parsed filter, from `mnemic.model.parse_filter`.
            page: Gives order, limit, offset and `include_forgotten`; expired entries count as
                deleted. Archived and superseded entries are omitted unless the filter tests the
                status.
            now: The time.

        Returns:
            Entries without their embeddings, in a total order. Ties: newest first, then smallest
            id, then user by name, no user before all others.
        """
        ...

    async def page(
        self,
        scope: Scope,
        expression: Expression,
        after: PageCursor | None,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool = False,
    ) -> list[MemoryEntry]:
        """Return the entries after a cursor in the list of all that `matching` would return.

        Returns:
            At most `limit` entries, newest first, then smallest id, then user; from the beginning
            if the cursor is None.
        """
        ...

    async def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> bool | None:
        """Mark an entry as deleted; it can be restored.

        Returns:
            True if the entry was marked now, False if it was marked before and nothing changed,
            None if the scope has no entry with this id.
        """
        ...

    async def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> bool:
        """Restore a deleted entry that has not expired.

        Returns:
            False if there is no entry that was deleted at `oldest` or later.
        """
        ...

    async def delete(self, scope: Scope, entry_id: UUID) -> list[UUID]:
        """Delete an entry permanently, marked as deleted or not, with its vectors and links.

        Returns:
            Its id, or an empty list if the scope has no entry with this id.
        """
        ...

    async def soft_delete_all(self, scope: Scope, now: datetime) -> list[UUID]:
        """Mark all entries of a scope as deleted; return the ids of those marked now."""
        ...

    async def delete_all(self, scope: Scope) -> list[UUID]:
        """Delete all entries of a scope permanently, marked as deleted or not; return their ids."""
        ...

    async def purge(self, scope: Scope, oldest: datetime) -> list[UUID]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        ...

    async def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        include_archived: bool = False,
    ) -> MemoryEntry | None:
        """Change an entry that is neither deleted nor expired.

        Args:
            scope: Scope of the entry.
            entry_id: Id of the entry.
            change: Computes the new state from the state stored at the time of the write. Its
                content, importance, type, tags, metadata, status and `updated_at` are stored.
            embedded: Model and vectors of the chunks of the new content, shape (chunks, dim), if
                the content changes.
            now: Entries expired by now do not exist.
            quota: Checked as in `add` if the content grows.
            include_archived: Also change an archived entry.

        Returns:
            The entry after the change, or None if the scope has no entry with this id.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would exceed the quota.
        """
        ...

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows. They are written later, and are not changes."""
        ...

    def has_pending_accesses(self, agent_id: str, rows: Sequence[int]) -> bool:
        """Return whether accesses of any of these rows may not be written yet."""
        ...

    async def write_accesses(self) -> None:
        """Write the accesses recorded so far."""
        ...

    async def link(self, scope: Scope, wanted: MemoryLink, *, now: datetime) -> MemoryLink:
        """Write a link between two entries of a scope that are neither deleted nor expired.

        Returns:
            The link. An existing link of the same type gets the new strength and keeps its time.

        Raises:
            EntryNotFoundError: If one of the entries does not exist.
        """
        ...

    async def unlink(self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None) -> int:
        """Delete the links of one type, or of all types but SUPERSEDES, from one entry to another.

        Returns:
            Number of deleted links.
        """
        ...

    async def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[MemoryLink]:
        """Return the links of an entry; both ends are in the scope, neither deleted nor expired.

        Order: time, then ids, then type.
        """
        ...

    async def link_ends(
        self,
        scope: Scope,
        row: int,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[LinkEnd]:
        """Return the other ends of the links of a row's entry, in the order of `links`."""
        ...

    async def stored_after(
        self,
        scope: Scope,
        row: int,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool,
        model: str | None,
    ) -> list[StoredEntry]:
        """Return entries of a scope with any status, in the order they were stored.

        Args:
            scope: The scope.
            row: Row of the last entry of the previous call; 0 for the first call.
            limit: Maximum number of entries.
            now: Entries expired by now count as deleted.
            include_deleted: Whether to return deleted and expired entries too.
            model: Attach the vectors of this model to entries that have some.
        """
        ...

    async def links_within(
        self, scope: Scope, *, now: datetime, include_deleted: bool
    ) -> list[StoredLink]:
        """Return the links between entries of one user that `stored_after` returns.

        Order: as `links`, then by user.
        """
        ...

    async def add_links(self, scope: Scope, new: Sequence[StoredLink]) -> int:
        """Write links of any type between entries of a scope; return the number of new links.

        A link of type SUPERSEDES must agree with the entry's field `supersedes`. Existing links are
        skipped, and so are links with an end outside the scope or of another user.
        """
        ...

    async def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored; see `mnemic.model.agent_id.stored_spelling`."""
        ...

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Read the whole file, with the memories of all agents, and compare it with its checksums.

        Args:
            repair: Add checksums to memories of earlier versions without them, and rewrite each
                agent's number and sum of memories. Damaged data is left unchanged and reported.
            progress: Called periodically with the number of memories read so far.
        """
        ...

    async def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, including deleted entries."""
        ...

    async def stats(self, scope: Scope, *, now: datetime) -> LongTermMemoryStats:
        """Return statistics of a scope as of one moment, without quota and embedder figures."""
        ...

    async def count(self, scope: Scope, *, now: datetime) -> int:
        """Return the number of entries of the scope that a search can find."""
        ...

    async def embedding_model(self, agent_id: str) -> tuple[str, int] | None:
        """Return name and dimension of the agent's embedding model, None before any vector."""
        ...

    async def contents(self, agent_id: str, rows: Sequence[int]) -> dict[int, str]:
        """Return the contents of those of these rows that are active."""
        ...

    async def vectors(self, agent_id: str, row: int, model: str) -> NDArray[np.float32]:
        """Return the vectors of a row's chunks, shape (chunks, dimensions); (0, 0) for none."""
        ...

    async def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of an active entry, or None if the scope has no such entry."""
        ...

    async def position(self, agent_id: str) -> LogPosition:
        """Return the agent's position in its change log and access log."""
        ...

    async def position_and_revision(self, scope: Scope) -> tuple[LogPosition, int]:
        """Return the agent's position and the revision of the scope's user, read at one moment."""
        ...

    async def revision(self, scope: Scope) -> int:
        """Return a number that rises with every change within a user, and with no other change.

        A scope without a user has the revision of the entries without a user; project and session
        are ignored. For all users it is the number of the agent's last change. Accesses and expiry
        are not changes. The number never falls, and is 0 before the first change.
        """
        ...

    async def changed_rows_since(self, agent_id: str, seq: int) -> list[int] | None:
        """Return the rows changed after a change, or None if the log has dropped some."""
        ...

    async def accesses_since(self, agent_id: str, accesses: int) -> AccessedRows:
        """Return the accesses written after a number of access writes.

        Accesses that are not written yet are missing. Entries that cannot be found may be included.
        All accesses since schema version 4 are returned for 0 and for a number that was not reached
        yet.

        Args:
            agent_id: The agent.
            accesses: From an earlier `LogPosition`.
        """
        ...

    async def rows_since(
        self,
        agent_id: str,
        model: Model | None,
        seq: int | None,
        sink: BatchSink | None = None,
        *,
        state: State = State.ACTIVE,
    ) -> RowBatch:
        """Return the changes that bring an index from change `seq` to the present.

        All rows are returned if `seq` is None, or if the log no longer reaches back to `seq`.
        Expired rows are included.

        Args:
            agent_id: The agent.
            model: Model of the wanted vectors; None for no vectors.
            seq: Change number of the index.
            sink: Receives all rows in batches if all are returned; the returned batch is empty
                then.
            state: State of the rows.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
        """
        ...

    async def erase(self) -> bool:
        """Remove deleted data from the store's files; return whether nothing is left of it.

        If something is left, removal is repeated later, at the latest when the last process closes
        the file.
        """
        ...

    async def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy everything, as of one moment, to a new place; writers may continue meanwhile.

        Raises:
            StoreFileError: If the target exists or cannot be written.
        """
        ...

    async def close(self) -> None:
        """Finish submitted writes, then release the file. Repeated calls have no effect."""
        ...
