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
"""Links from an entry, to it, or either."""


Model: TypeAlias = tuple[str, int]
"""Name and dimension of an embedding model."""


class BatchSink(Protocol):
    """Takes everything an agent has in parts, while the next are read: first all its records."""

    def add_records(self, records: list[Record]) -> None:
        """Take living rows."""
        ...

    def add_vectors(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Take vectors, shape (n, dim), of rows, shape (n,), whose records were taken.

        Those of a row's parts come all in one call, one after the other (C165).
        """
        ...


class LogPosition(NamedTuple):
    """How far an agent's memory has come.

    Attributes:
        seq: The number of its last change.
        accesses: How often accesses were written down; they are no changes (C158).
    """

    seq: int
    accesses: int


class AccessedRows(NamedTuple):
    """What was accessed, as of one moment.

    Attributes:
        position: Where the agent's memory stood then.
        rows: Row, last access in microseconds since 1970 in UTC, and number of accesses of each
            entry, in no order.
    """

    position: LogPosition
    rows: list[Access]


class PageCursor(NamedTuple):
    """A place in the list of the newest first: that of the entry after which a page begins."""

    created_at: datetime
    id: UUID
    user_id: str | None = None


class Located(NamedTuple):
    """An entry, and the row it is stored in."""

    row: int
    entry: MemoryEntry


class StoredEntry(NamedTuple):
    """An entry with what its record does not say; see `NewEntry`."""

    row: int
    entry: MemoryEntry
    key: str | None
    more: tuple[NDArray[np.float32], ...] = ()


class StoredLink(NamedTuple):
    """A link between two entries of one user, with that user."""

    link: MemoryLink
    user_id: str | None


class LinkEnd(NamedTuple):
    """What a link of an entry leads to.

    Attributes:
        row: That of the entry at the other end.
        type: The link's.
        strength: The link's.
    """

    row: int
    type: LinkType
    strength: float


class Stored(NamedTuple):
    """What became of the entries of one call, in their order.

    Attributes:
        ids: Theirs, or that of the entry that was there already.
        rows: Their rows.
        is_new: Whether each was stored.
        changed: Rows that were there before and were merged into or superseded.
        batch: The change as an index takes it in; None if it is to be read from the store.
    """

    ids: list[UUID]
    rows: list[int]
    is_new: list[bool]
    changed: list[int]
    batch: RowBatch | None


class Store(Protocol):
    """Keeps memories for good. The store is the truth; an index is a cache of it.

    Every method checks the scope it is given: an entry outside it is like one that does not exist.
    Forgotten, expired, archived and superseded entries are not found. A write has happened, all of
    it and durably, when its call returns, and not at all if the call raises. Every write adds to
    the agent's numbered changes in the same transaction.

    Ids are unique within agent and user. A method that is asked for an id by a scope of all users
    raises AmbiguousIdError where it finds entries of several.

    Methods that `mnemic.sync_bridge.drive` runs, with no event loop, wait in the caller's thread.

    Raises:
        StoreClosedError: By every method after `close`.
        ReadOnlyError: By methods that write, if the store was opened for reading alone.
        StoreError: By any method; its children say what is wrong with the file or the disk.
    """

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
        """Store entries of this agent, all or none, with the embeddings they carry.

        An entry whose key was used before, in an earlier call or in this one, is not stored again.
        What an entry supersedes gets its status and a link in the same transaction (C161). The
        quota is checked in the transaction that writes, so that writers together never pass it
        (C082).

        Args:
            agent_id: Whose they are.
            entries: In any number.
            now: What has expired by now is no duplicate; merged entries are updated now.
            quota: How many bytes of content the agent may have.
            on_duplicate: What becomes of an entry whose text the user has already.
            is_import: Let the entry that one supersedes be missing.

        Raises:
            DuplicateEntryError: If an id is already stored for this agent and user, forgotten or
                not, or a key was used for another content.
            EntryNotFoundError: If what an entry supersedes is not there.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would pass the quota.
        """
        ...

    async def add_embeddings(
        self,
        agent_id: str,
        model: str,
        contents: Mapping[int, str],
        vectors: Sequence[NDArray[np.float32]],
    ) -> None:
        """Give rows the vectors of their contents.

        Rows that are gone, that have a vector or whose content is another by now are passed over.

        Args:
            agent_id: Whose rows.
            model: The vectors' model.
            contents: What was embedded, by row.
            vectors: For each content those of its parts, shape (parts, dim).
        """
        ...

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, now: datetime, include_deleted: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries of these ids that the scope has, without their embeddings.

        Args:
            scope: Where to look.
            ids: Unknown ones are left out of the answer.
            now: What has expired by now is left out.
            include_deleted: Return forgotten, expired, archived and superseded entries too.
        """
        ...

    async def located(
        self, scope: Scope, ids: Sequence[UUID], *, now: datetime, include_deleted: bool = False
    ) -> dict[UUID, Located]:
        """Return what `get` does, and the rows."""
        ...

    async def get_rows(
        self, scope: Scope, rows: Sequence[int], *, now: datetime, include_deleted: bool = False
    ) -> dict[int, MemoryEntry]:
        """Return the entries of these rows that the scope has; otherwise as `get`."""
        ...

    async def matching(
        self, scope: Scope, expression: Expression, page: MemoryFilter, *, now: datetime
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true.

        Args:
            scope: Where to look.
            expression: From `mnemic.model.parse_filter`.
            page: Its order, limit, offset and `include_forgotten` are honoured; expired entries are
                like forgotten ones. Archived and superseded entries are left out unless the filter
                asks for a status.
            now: The time.

        Returns:
            Entries without their embeddings, in a total order: ties go to the newest, then to the
            smallest id, then to the first user by name, nobody before all.
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
        """Return the entries that follow a place in the list of those that `matching` would find.

        Returns:
            At most `limit`, newest first, then smallest id, then first user; the first ones for
            None.
        """
        ...

    async def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> bool | None:
        """Mark an entry as forgotten.

        Returns:
            True if it was not forgotten before, False if it was and nothing changed, None if the
            scope has none of that id.
        """
        ...

    async def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> bool:
        """Take a forgotten entry back that has not expired.

        Returns:
            False if there is none that was forgotten at `oldest` or later.
        """
        ...

    async def delete(self, scope: Scope, entry_id: UUID) -> list[UUID]:
        """Delete an entry for good, forgotten or not, with its vectors and links.

        Returns:
            Its id; nothing if the scope has none of that id.
        """
        ...

    async def soft_delete_all(self, scope: Scope, now: datetime) -> list[UUID]:
        """Mark all entries of a scope as forgotten that are not; return their ids."""
        ...

    async def delete_all(self, scope: Scope) -> list[UUID]:
        """Delete all entries of a scope for good, forgotten or not; return their ids."""
        ...

    async def purge(self, scope: Scope, oldest: datetime) -> list[UUID]:
        """Delete for good what a scope forgot, or what expired, before `oldest`; return the ids."""
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
        """Change a living entry.

        Args:
            scope: Where it is.
            entry_id: Which it is.
            change: Makes the new state from the one that is stored at the moment of the write;
                its content, importance, type, tags, metadata, status and `updated_at` are kept.
            embedded: Model and vectors of the new content's parts, shape (parts, dim), if it
                changes.
            now: What has expired by now is not there.
            quota: Checked as in `add` if the content grows.
            include_archived: Change an archived entry too.

        Returns:
            The entry as it is then, or None if the scope has none of that id.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would pass the quota.
        """
        ...

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Take note that rows were read; it is written down later, and is no change (C158)."""
        ...

    def has_pending_accesses(self, agent_id: str, rows: Sequence[int]) -> bool:
        """Return whether accesses of any of these rows may not be written down yet."""
        ...

    async def write_accesses(self) -> None:
        """Write down the accesses noted so far."""
        ...

    async def link(self, scope: Scope, wanted: MemoryLink, *, now: datetime) -> MemoryLink:
        """Write a link between two entries of a scope that are neither forgotten nor expired.

        Returns:
            The link; one of this type that was there already gets the strength and keeps its time.

        Raises:
            EntryNotFoundError: If one of them is not there.
        """
        ...

    async def unlink(self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None) -> int:
        """Delete the links of one type, or of all but SUPERSEDES, from one entry to another.

        Returns:
            How many.
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
        """Return the links of an entry; both ends in the scope, neither forgotten nor expired.

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
        """Return what the links of a row's entry lead to, in the order of `links`."""
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
        """Return entries of a scope, whatever their status, in the order they were stored.

        Args:
            scope: Where to look.
            row: That of the last entry of the call before; 0 begins.
            limit: How many at most.
            now: What has expired by now is like forgotten.
            include_deleted: Whether forgotten and expired ones are among them.
            model: Entries come with their vectors of this model, if they have any.
        """
        ...

    async def links_within(
        self, scope: Scope, *, now: datetime, include_deleted: bool
    ) -> list[StoredLink]:
        """Return the links between entries of one user that `stored_after` returns.

        Order as `links`, then by user.
        """
        ...

    async def add_links(self, scope: Scope, new: Sequence[StoredLink]) -> int:
        """Write links of any type between entries of a scope; return how many are new.

        Those of type SUPERSEDES must say what the field of that name does (C161). Links whose ends
        are not in the scope, or not their user's, are passed over, and so are those that are there
        already.
        """
        ...

    async def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored; see `mnemic.model.agent_id.stored_spelling`."""
        ...

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Walk through the whole file, all agents' memories, and compare it with its checksums.

        Args:
            repair: Give checksums to memories of earlier versions that have none, and write each
                agent's number and sum of memories anew; what is damaged stays so and is reported.
            progress: Called now and then with the number of memories so far.
        """
        ...

    async def used_bytes(self, agent_id: str) -> int:
        """Return how many bytes the agent's contents take, forgotten ones included (C085)."""
        ...

    async def stats(self, scope: Scope, *, now: datetime) -> LongTermMemoryStats:
        """Return what a scope has, as of one moment; figures of quota and embedder are left out."""
        ...

    async def count(self, scope: Scope, *, now: datetime) -> int:
        """Return how many entries of the scope a search can find."""
        ...

    async def embedding_model(self, agent_id: str) -> tuple[str, int] | None:
        """Return name and dimension of the model of the agent's vectors, or None before any."""
        ...

    async def contents(self, agent_id: str, rows: Sequence[int]) -> dict[int, str]:
        """Return the texts of those of these rows that are neither forgotten nor outdated."""
        ...

    async def vectors(self, agent_id: str, row: int, model: str) -> NDArray[np.float32]:
        """Return the vectors of a row's parts, shape (parts, dimensions); (0, 0) for none."""
        ...

    async def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of a living entry; None if the scope has none of that id."""
        ...

    async def position(self, agent_id: str) -> LogPosition:
        """Return the number of the agent's last change, and how often accesses were written."""
        ...

    async def position_and_revision(self, scope: Scope) -> tuple[LogPosition, int]:
        """Return the position of the scope's agent and the revision of its walls, in one look."""
        ...

    async def revision(self, scope: Scope) -> int:
        """Return a number that every change within the walls of a scope raises, and no other.

        The walls are agent and user, where no user is one too; project and session do not count.
        For all users it is the number of the agent's last change. Accesses are no changes, and that
        a memory expires is none. It never falls, and is 0 before anything.
        """
        ...

    async def changed_rows_since(self, agent_id: str, seq: int) -> list[int] | None:
        """Return the rows that were touched after a change; None if they are no longer kept."""
        ...

    async def accesses_since(self, agent_id: str, accesses: int) -> AccessedRows:
        """Return what was accessed since accesses had been written down so often.

        What is not written down yet is not among it. Entries may be that are not to be found. All
        that was accessed since version 4 of the schema is returned for 0, and for a number that was
        not reached yet.

        Args:
            agent_id: Whose entries.
            accesses: That of an earlier `LogPosition`.
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
        """Return what an index needs to step from change `seq` to now.

        Everything is returned for None, or if the changes since `seq` are no longer kept. Expired
        rows are among them.

        Args:
            agent_id: Whose rows.
            model: The model whose vectors are wanted; None wants none.
            seq: Where the index stands.
            sink: If everything is returned, takes it in parts; the batch is empty then.
            state: Which rows.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
        """
        ...

    async def erase(self) -> bool:
        """Remove what was deleted from the store's files; return whether nothing is left (C175).

        If something is, it is tried again later, at the latest when the last process closes it.
        """
        ...

    async def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy everything, as of one moment, to a new place; others may write meanwhile.

        Raises:
            StoreFileError: If there is something already, or it cannot be written.
        """
        ...

    async def close(self) -> None:
        """Finish the writes that were handed in, then let go of the file. Harmless if repeated."""
        ...
