"""Operations of a store: what is read or written, as records that each store carries out.

Each has the promises of `Store`, and those that it states itself.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Generic, Literal, TypeVar
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
    OnConflict,
    OnDuplicate,
    Scope,
    UserUsage,
)
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.link import Direction
from mnemic.model.new_entry import NewEntry
from mnemic.model.results import PageCursor
from mnemic.model.rows import RowBatch, State
from mnemic.store.values import (
    NO_QUOTAS,
    AccessedRows,
    BatchSink,
    EntryRow,
    EntryVectors,
    LinkedRows,
    LogPosition,
    MarkedIds,
    Model,
    OwnedId,
    Quotas,
    ReembeddingProgress,
    SelectedRows,
    Selection,
    StoredAgent,
    StoredEntry,
    StoredLink,
    UpdatedEntries,
    WriteResult,
)

Result = TypeVar("Result")

BEFORE_EXPIRY: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time at which no entry has expired."""


class Read(Struct, Generic[Result], frozen=True):
    """A read of one committed state; the type of its result stands in the brackets of its base.

    Scopes:
        An entry outside the scope does not exist for the operation. Deleted, expired, archived and
        superseded entries are not found unless it says otherwise.

    Ids:
        Ids are unique within agent and user. A row is a positive integer that names one entry of
        the store and is never used again. A lookup by id with a scope of all users raises
        AmbiguousIdError if several users have the id.

    Order:
        Lists have a total order, given by each operation.

    Expiry:
        Time is an argument. An entry expires without a change being written.

    Sealing:
        Entries may be sealed where they are stored, with a key of their agent. A sealed entry that
        cannot be opened, because it was changed, is an error of reads of that entry alone; reads of
        many leave it out, log it, and count it in `ScopeStatistics`. Without encryption sealed
        entries do not exist for reads and changes, but for `ScopeStatistics`; deletions still reach
        them, by id or as all of a scope.

    Deadlines:
        A read with a `deadline`, in seconds of `time.monotonic()`, raises DeadlineExceededError
        once it has passed, also in the midst of its work. None is no limit.
    """

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


class Write(Struct, Generic[Result], frozen=True):
    """A write; the type of its result stands in the brackets of its base.

    What is said of scopes, ids and time for a `Read` holds for it, too.

    Atomicity and durability:
        A write happens completely or not at all. Its Future has a result only once the write
        survives a power cut; a failed write leaves nothing behind. Several writes may share one
        transaction (group commit); each has its own result, and a failed or cancelled one does
        not undo the others. A write sees all writes whose Future was done when it was handed in.

    Change numbers:
        Every write that changes an entry appends to the agent's numbered changes in the same
        transaction: 1, 2, 3, without gaps, in the order of the commits. A store may drop old
        changes; `RowsSince` and `ChangedRows` then say so. Changes of other processes are visible
        to the next read; `known_position` is that of the last one that asked.

    Futures:
        A Future's `result`, `exception` and callbacks may be used from any thread, also from one
        whose event loop is blocked by the wait. `concurrent.futures.wait` calls none of them, and
        must not block the event loop of the write. Callbacks run in a thread of the store or in the
        calling one, and must be short. Errors of the arguments and of a closed or read-only store
        are raised by the call itself, all others by the Future. `close` finishes the writes handed
        in before it.

    Cancellation:
        A Future can be cancelled until its write begins, and then the write does not happen.
        Later `cancel` returns False and the write goes on.
    """

    @property
    def agent_id(self) -> str:
        """The agent whose entries are written."""
        raise NotImplementedError

    @property
    def runs_after_accesses(self) -> bool:
        """Whether it must see all accesses recorded before it."""
        return False

    @property
    def goes_in_parts(self) -> bool:
        """Whether it may take several transactions, on a full disk."""
        return False


class ScopeWrite(Write[Result], frozen=True):
    """A write within a scope: what lies outside does not exist for it."""

    scope: Scope

    @property
    def agent_id(self) -> str:
        """The agent of the scope."""
        return self.scope.agent_id


class AgentWrite(Write[Result], frozen=True):
    """A write of an agent's entries, whoever's they are."""

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


class Links(ScopeRead[list[LinkedRows]], frozen=True):
    """The links between entries of a scope that are neither deleted nor expired.

    Order: time, then ids, then type, then user.

    Attributes:
        now: The time.
        entry: Those of this entry alone, by its id or its row. None is all, but for links between
            two users, which earlier versions wrote.
        direction: Whether they lead from the entry, to it, or both.
        kinds: Their types; None is any.
        include_deleted: Whether entries may be deleted or expired.
    """

    now: datetime
    entry: UUID | int | None = None
    direction: Direction = "both"
    kinds: Collection[LinkType] | None = None
    include_deleted: bool = False


class StoredAmount(ScopeRead[int], frozen=True):
    """What is stored in a scope, in any state: deleted entries count until they are purged.

    Attributes:
        unit: The bytes of the contents of its user or, for all users, of its agent; or the number
            of its entries, which takes longer.
    """

    unit: Literal["bytes", "entries"]


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


class RowsSince(AgentRead[RowBatch], frozen=True):
    """The changes that bring an index from a change to the present; expired rows are among them.

    All rows are returned if `seq` is None, if the log no longer reaches back to it, or, with
    vectors, if the agent's model was switched since. They are read to the end whatever the deadline
    is: cut short, the next read would start again and never end either.

    Attributes:
        model: Model of the wanted vectors; None for no vectors.
        seq: Change number of the index.
        sink: Receives all rows, if all are returned, in place of the returned batch.
        state: State of the rows.
        with_sensitive: Treat sensitive and sealed rows as changed: the index was loaded from a
            snapshot of change `seq`.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    model: Model | None
    seq: int | None
    sink: BatchSink | None = None
    state: State = State.ACTIVE
    with_sensitive: bool = False


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


class SealedRows(AgentRead[list[int]], frozen=True):
    """The rows of an agent's sealed entries, in any state, which no snapshot of an index may hold.

    A row of a snapshot that was sealed then is among them unless it `HasRemovedSince`.
    """


class NonceOfChange(AgentRead[int | None], frozen=True):
    """The nonce of a change of an agent; None if the log does not have it, or no more.

    It is a number from 0 to 2**63 - 1, drawn at random by the write that made the change. By it
    changes with the same number in different histories are told apart: two stores that were one
    once, as after a restored backup, have a change in common exactly if they had it before they
    parted, and then everything that was written up to it is the same.

    Carried out, as `HasRemovedSince`, by stores that keep snapshots of indexes. A snapshot is a
    cache that an index is loaded from in place of all rows: of use if the change that the index had
    read last has the same nonce in the store, and every row changed since is read by `RowsSince`
    with `with_sensitive`, for it holds no sensitive entry and no sealed one.

    `Store.erase` removes every snapshot, after the deletion has been committed. So that none with
    deleted content appears later, whoever saves one does all of this in `locked_snapshots`: it
    takes the index as of a change that nothing `HasRemovedSince`, creates the file, writes it, and
    gives it its name.

    Attributes:
        seq: Number of the change.
    """

    seq: int


class HasRemovedSince(AgentRead[bool], frozen=True):
    """Whether content or vectors may have been deleted or overwritten after a change.

    True also if the log no longer reaches back to it, or not yet to it.
    """

    seq: int


class Nearest(ScopeRead[SelectedRows | None], frozen=True):
    """The active memories of a scope among which the most similar ones to a query are.

    All that tie with the last one are among them. The store selects, and the core ranks: scores and
    ties are those of an index of all memories. None if the store does not know them: the filter is
    beyond it, a memory of the scope has no vector, or too many are not similar at all.

    Attributes:
        filters: Only memories that match; None is all.
        vectors: float32, shape (m, dim): the best match of any of them counts.
        model: Model of the memories' vectors.
        limit: Number of memories, at least 1.
        now: Microseconds since 1970 in UTC; memories that expired before are left out.
        is_exact: Whether every memory is compared; else an approximate index may choose some.
    """

    filters: Expression | None
    vectors: Float32Array
    model: Model
    limit: int
    now: int
    is_exact: bool = True


class ActiveRows(ScopeRead[SelectedRows], frozen=True):
    """All active rows of a scope, expired ones included, with vectors of a model and links."""

    model: Model | None


class RowsWithoutVectors(AgentRead[list[int]], frozen=True):
    """The active rows of an agent, or those of some rows, without a vector of a model."""

    model: Model
    among: Sequence[int] | None = None


class CountToEmbed(AgentRead[ReembeddingProgress], frozen=True):
    """How many entries lack the shadow vectors of a model, and how many need them.

    All entries that are not deleted need vectors, sensitive ones too, but those whose own vector is
    zero: they shall have none. Vectors of a content are enough whoever stored them.

    Raises:
        KeyUnavailableError: If entries are sealed, and there is no key.
    """

    model: Model


class RowsToEmbed(AgentRead[list[int]], frozen=True):
    """The rows that lack the shadow vectors of a model, as `CountToEmbed` counts them, ascending.

    Attributes:
        model: The model.
        after: Only later rows.
        limit: Maximum number of rows.
    """

    model: Model
    after: int
    limit: int


class SealedUnderOtherKeys(AgentRead[int], frozen=True):
    """The number of entries, in any state, that are not sealed under the newest key.

    Raises:
        InvalidArgumentError: If the store was opened without encryption.
    """


class NeedVectors(AgentRead[list[bool]], frozen=True):
    """For each entry, whether an `Add` of it needs its vectors, in the current state.

    With "replace" it needs none if its id is stored with the same content and vectors of the model;
    with "skip" none if its id is stored. The write decides again: an entry that needed them after
    all is stored without, as one is whose embedder failed.
    """

    entries: Sequence[MemoryEntry]
    model: str
    on_conflict: OnConflict


class Add(AgentWrite[WriteResult], frozen=True):
    """Stores entries of an agent, all or none, with their embeddings.

    They get ascending rows in the given order. An entry whose idempotency key was used before, in
    an earlier call or in this one, is not stored again. A superseded entry gets its status and a
    link in the same transaction. The quotas are checked inside the transaction, so that concurrent
    writers never exceed them.

    Attributes:
        entries: Any number of entries.
        now: Entries expired by now are not duplicates; merged entries are updated now.
        quotas: The most that may be stored, and whether the write deletes entries to keep to it:
            see `Eviction`.
        on_conflict: Treatment of an entry whose id the user already has, in any state and in any
            project and session. It comes after the idempotency key and before the text. "skip"
            leaves the stored entry as it is. "replace" stores the new one in its row, as it would
            be stored without the old one; but `created_at` stays, `version` grows by one,
            `updated_at` is now, the links that lead to the row stay, vectors stay if the content
            does and no others are given, and so does an idempotency key if no other is given.
            Entries that superseded the old one do so no more. Of an id that comes twice the last
            entry stays. Accesses that another opening has not written yet count for the new entry.
        on_duplicate: Treatment of an entry whose text the user already has.
        is_import: Allow a superseded entry to be missing.
        time_zone: Name of the agent's time zone, which is stored unless it has one.
        instead_of: Entries that are deleted permanently, in any state, but for those given, of
            which one that is given as it is stored stays so. They are selected inside the
            transaction.

    Raises:
        DuplicateEntryError: If an id is already stored for this agent and user, deleted or not, and
            `on_conflict` is "raise", or if a key was used for another content.
        EntryNotFoundError: If a superseded entry does not exist.
        InvalidEntryError: If an entry supersedes itself.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StorageQuotaExceededError: If the contents would exceed a quota.
    """

    entries: Sequence[NewEntry]
    now: datetime
    quotas: Quotas = NO_QUOTAS
    on_conflict: OnConflict = "raise"
    on_duplicate: OnDuplicate = "keep"
    is_import: bool = False
    time_zone: str | None = None
    instead_of: Selection | None = None

    @property
    def runs_after_accesses(self) -> bool:
        """Whether accesses are those of a replaced entry, or decide which entries go first."""
        return self.on_conflict == "replace" or self.quotas.entry_limits.evicts


class AddEmbeddings(AgentWrite[None], frozen=True):
    """Stores the vectors of the contents of rows.

    Rows that no longer exist, already have a vector, or have another content by now are skipped.

    Attributes:
        model: Model of the vectors.
        contents: Embedded content of each row.
        vectors: For each content the vectors of its chunks, shape (chunks, dim).
    """

    model: str
    contents: Mapping[int, str]
    vectors: Sequence[Float32Array]


class AddShadowVectors(AgentWrite[int], frozen=True):
    """Stores shadow vectors of rows, in place of earlier ones of the model.

    Shadow vectors are those of other models than the agent's own, beside the entries they belong
    to: those that are being filled, and those of a former model until they are dropped. Nothing
    else depends on them, they are no changes of their entries, count in no quota and go into no
    export. They share the entry's transactions: those of an old content are gone once the new one
    is stored, and all are with a permanently deleted entry. A model may be a shadow model and,
    before or later, the agent's own; the vectors of both are kept apart.

    The result is the number of rows whose vectors were stored.

    Attributes:
        model: Name of the model.
        entries: The entries by row; those whose content is stored no more are passed over.
        vectors: Shape (chunks, dimensions), for each of these rows; finite.
    """

    model: str
    entries: Mapping[int, MemoryEntry]
    vectors: Mapping[int, Float32Array]


class DropShadowVectors(AgentWrite[int], frozen=True):
    """Deletes the shadow vectors of a model, or of all; the result is of how many entries.

    An entry with vectors of two models counts twice. The agent's own vectors stay, whatever their
    model.
    """

    model: str | None


class BuildVectorIndex(AgentWrite[bool], frozen=True):
    """Builds the approximate index of an agent's vectors; the result is whether there is one.

    There is none for vectors that are too long. Carried out by stores that search vectors.
    """


class SwitchModel(AgentWrite[bool], frozen=True):
    """Makes the shadow vectors of a model the agent's own, unless entries lack them.

    The vectors that were its own become shadow vectors of their model; those of sensitive and
    sealed entries are deleted. Entries whose own vector is zero have a zero vector of the new
    model. The change is logged for each user, and makes `RowsSince` return all rows. The result is
    whether that was done; nothing changes where more entries lack their vectors.

    Attributes:
        model: The model; its name is another than that of the agent's vectors.
        skipped: Rows that may lack vectors, and have none then.
        max_missing: Number of other rows that may lack them, and have none then.

    Raises:
        StoreCorruptError: If a vector is damaged.
    """

    model: Model
    skipped: Collection[int] = ()
    max_missing: int = 0


class SoftDelete(ScopeWrite[MarkedIds], frozen=True):
    """Marks the selected entries of a scope as deleted; they can be restored.

    They are selected inside the transaction, as they are stored then; each entry of any status is
    decided, expired ones too. Unknown ids are skipped. The result is the ids of those marked now.

    Attributes:
        criteria: The entries.
        now: The time.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """

    criteria: Criteria
    now: datetime


class Restore(ScopeWrite[list[UUID]], frozen=True):
    """Restores those of the selected entries that have not expired; selects as `SoftDelete` does.

    The result is their ids.

    Attributes:
        criteria: The entries.
        oldest: Only entries that were deleted then or later.
        now: The time.
    """

    criteria: Criteria
    oldest: datetime
    now: datetime


class Delete(ScopeWrite[list[UUID]], frozen=True):
    """Deletes the selected entries of a scope permanently, with vectors and links.

    They are selected as by `SoftDelete`, whether marked as deleted or not. On a full disk a store
    may delete several in several transactions. The result is the ids of the deleted entries.
    """

    criteria: Criteria = EVERY_ENTRY

    @property
    def goes_in_parts(self) -> bool:
        """Whether it may take several transactions: one entry does not."""
        return self.criteria.ids is None or len(self.criteria.ids) > 1


class Purge(ScopeWrite[list[UUID]], frozen=True):
    """Deletes permanently what was deleted or expired before a time, as `Delete` does.

    Attributes:
        oldest: The time.
        expired: Also delete what expired at this time or before.
    """

    oldest: datetime
    expired: datetime | None = None

    @property
    def goes_in_parts(self) -> bool:
        """Whether it may take several transactions."""
        return True


class ForgetAgent(AgentWrite[list[UUID]], frozen=True):
    """Destroys the keys of an agent, and deletes its entries, as `Delete` does.

    What copies of the store made before have sealed stays readable with them and the master key.
    """

    @property
    def goes_in_parts(self) -> bool:
        """Whether it may take several transactions."""
        return True


class Update(ScopeWrite[UpdatedEntries], frozen=True):
    """Changes the selected entries of a scope that are neither deleted nor expired, all or none.

    They are selected inside the transaction, as they are stored then. Unknown ids are skipped. The
    result is the changed entries, in ascending order of their rows.

    Attributes:
        criteria: The entries.
        change: Computes the new state from the state stored at the time of the write. Its content,
            importance, type, tags, metadata, status, expiry and `updated_at` are stored; `version`
            grows by one. If it raises, nothing changes, and the Future raises the same.
        now: Entries expired by now do not exist.
        embedded: Model and vectors of the chunks of the new content, shape (chunks, dim), if the
            content changes.
        replace_vectors: Store the vectors in place of the old ones if the content stays, too.
        quotas: Checked as by `Add` if the content grows.
        include_archived: Also change archived entries.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StorageQuotaExceededError: If the contents would exceed a quota.
    """

    criteria: Criteria
    change: Callable[[MemoryEntry], MemoryEntry]
    now: datetime
    embedded: tuple[str, Float32Array] | None = None
    replace_vectors: bool = False
    quotas: Quotas = NO_QUOTAS
    include_archived: bool = False

    @property
    def runs_after_accesses(self) -> bool:
        """Whether entries may be deleted to make space: accesses decide which."""
        return self.quotas.entry_limits.evicts


class SetExpiry(ScopeWrite[int], frozen=True):
    """Sets the expiry of those of the selected entries that are active; None is never.

    They are selected as by `SoftDelete`. Versions and `updated_at` stay. The result is the number
    of entries that had another expiry.
    """

    criteria: Criteria
    expires_at: datetime | None
    now: datetime


class Link(ScopeWrite[MemoryLink], frozen=True):
    """Writes a link between two entries of a scope that are neither deleted nor expired.

    The result is the link. An existing link of the same type gets the new strength and keeps its
    time.

    Raises:
        EntryNotFoundError: If one of the entries does not exist.
        LinkAcrossUsersError: If they are of different users, or one is of none. Links of this kind
            that earlier versions wrote are followed in scopes of all users alone.
    """

    link: MemoryLink
    now: datetime


class Unlink(ScopeWrite[int], frozen=True):
    """Deletes the links of one type, or of all types but SUPERSEDES, from one entry to another.

    The result is the number of deleted links.
    """

    from_id: UUID
    to_id: UUID
    kind: LinkType | None = None


class AddLinks(ScopeWrite[int], frozen=True):
    """Writes links of any type between entries of a scope; the result is the number of new links.

    A link of type SUPERSEDES must agree with the entry's field `supersedes`. Existing links are
    skipped, and so are links with an end outside the scope or of another user.
    """

    links: Sequence[StoredLink]


class Reseal(AgentWrite[tuple[int, int]], frozen=True):
    """Seals entries under the newest key that are sealed under others, in the order of rows.

    Nothing else of them changes, and no change is logged. The result is the number of entries, and
    the row of the last one; zeros if there was none.

    Attributes:
        after: Row of the last entry of the call before; 0 for the first call.
        limit: Maximum number of entries.

    Raises:
        SealBrokenError: If an entry cannot be opened.
    """

    after: int
    limit: int


class EndRotation(AgentWrite[bool], frozen=True):
    """Destroys the keys of an agent but the newest, unless entries are sealed under them.

    The result is whether they were destroyed.
    """
