"""Results of searches, lists, writes, deletions, imports, verification and audits."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, get_args, overload
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.model.hit import Hit, Passage, Why
from mnemic.model.marks import SHOWN
from mnemic.model.table import table_of
from mnemic.records import Listing, Record, RecordList, Redacted
from mnemic.reporting.habits import STATS, AnswersHabits


class Lineage(NamedTuple):
    """A memory, the versions that it supersedes, and its rivals.

    Attributes:
        head: The memory.
        versions: Memories that it supersedes, directly or through others, oldest first.
        contradicting: Other active memories that supersede one of them: last changed first, then
            smallest id.
    """

    head: MemoryEntry
    versions: tuple[MemoryEntry, ...] = ()
    contradicting: tuple[MemoryEntry, ...] = ()


class EmbeddingModel(Record, frozen=True):
    """The model of an agent's stored vectors, as the file records it.

    Attributes:
        name: Name of the model.
        dimensions: Length of each vector.
    """

    name: str
    dimensions: int


class ReembedReport(Record, frozen=True):
    """What a re-embedding has done.

    Attributes:
        model: Name of the new model.
        dimensions: Length of its vectors.
        previous: Name of the model of the agent's vectors before; None if it had none.
        is_complete: Whether the new vectors are in use. If not, the old ones stay in use, and the
            next call goes on where this one ended.
        embedded: Number of memories embedded by this call.
        kept: Number of memories whose vectors of the model were there already.
        failed: Ids of the memories that the embedder failed on each time, oldest first.
        seconds: Duration.
    """

    model: str
    dimensions: int
    previous: str | None
    is_complete: bool
    embedded: int
    kept: int
    failed: tuple[UUID, ...]
    seconds: float


class VerifyProblem(Record, frozen=True):
    """A difference between a file and its checksums.

    Attributes:
        what: Description, without any content of a memory.
        agent_id: The agent, if it concerns one.
        row: Row of the memory in the file, if it concerns one.
        id: Id of the memory, if it can be read.
    """

    what: str
    agent_id: str | None = None
    row: int | None = None
    id: UUID | None = None


class VerifyReport(Record, frozen=True):
    """Result of verifying a whole file.

    Attributes:
        memories: Number of memories of all agents, in any state.
        vectors: Number of vectors.
        links: Number of links.
        without_sums: Number of memories of earlier versions without checksums, before any repair.
        problems: The problems, in the order they were found.
        checksums_added: Number of memories that got checksums.
        repaired_agents: Agents whose number and sum of memories was rewritten.
    """

    memories: int
    vectors: int
    links: int
    without_sums: int
    problems: tuple[VerifyProblem, ...] = ()
    checksums_added: int = 0
    repaired_agents: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file has no problem that checksums detect."""
        return not self.problems


class SchemaVersions(Record, frozen=True):
    """Versions of the tables of a memory.

    Attributes:
        found: Version that they had; 0 is no tables.
        reached: Version that they have now, or, after a dry run, would have.
        newest: The version that this mnemic reads and writes.
    """

    found: int
    reached: int
    newest: int


class IndexInfo(Record, frozen=True):
    """What the index of an agent's active memories consists of.

    Attributes:
        kind: "exact", where all memories are compared; "hnsw" or "flat", of an approximate index;
            or the name of a candidate source of the program's own.
        memories: Number of memories.
        indexed: Vectors in the approximate index; a long memory has several.
        waiting: Vectors that are not in it yet. A search compares them all; while more than 4,096
            wait it compares all memories.
        removed: Places in it whose memories are deleted or changed. At a fifth of all it is made
            again.
        proposes: Whether searches use it now.
        nbytes: Bytes of both in memory, partly estimated.
    """

    kind: str
    memories: int
    indexed: int
    waiting: int
    removed: int
    proposes: bool
    nbytes: int


class IndexAudit(Record, frozen=True):
    """How much of the best an approximate index finds, measured on stored memories.

    Attributes:
        kind: As in `IndexInfo`.
        memories: Number of memories.
        sampled: Number of memories whose vectors were the queries.
        k: Number of nearest memories compared, that of the query left out.
        recall: Mean share of the exact nearest that the index finds, from 0 to 1; 1 where all
            memories are compared, and without any memory.
        lowest_recall: The smallest share of any query.
        source_seconds: Median seconds of a query of the approximate index alone; 0 without one.
        exact_seconds: Median seconds of a query of the exact index.
        waiting: As in `IndexInfo`, at the end.
        removed: As in `IndexInfo`, at the end.
    """

    kind: str
    memories: int
    sampled: int
    k: int
    recall: float
    lowest_recall: float
    source_seconds: float
    exact_seconds: float
    waiting: int
    removed: int


class SearchHit(Hit, frozen=True):
    """A found memory with its score.

    Attributes:
        entry: The memory, without its embedding.
        score: Score of the ranking, clamped to 0 to 1; higher is better.
        components: Named parts of the score, each from 0 to 1, except `question`, `role` and
            `chunks`, which are subtracted and so at most 0.
        similarity: Cosine of query and memory, from -1 to 1; of several vectors the largest. None
            where no vectors were compared: in a search by keywords, and of a memory without one.
        why: The reasons for the score; None unless the search explains.
        passage: The sentences of a long memory that the query is about; None of one of at most 256
            estimated tokens, without a query, behind a million characters of long memories, and of
            a hit of `context`, whose text has what it cites.
    """

    components: dict[str, float]
    similarity: float | None = None
    why: Why | None = None
    passage: Passage | None = None


class MemorySearchResult(Hit, frozen=True):
    """A memory found by meaning.

    Attributes:
        entry: The memory, without its embedding.
        score: Cosine of query and memory; negative ones are 0.
        rank: From 1.
    """

    rank: int

    @property
    def similarity(self) -> float:
        """The score, under its documented name."""
        return self.score


class TagUsage(Redacted, frozen=True):
    """Number of active memories with a tag.

    Attributes:
        tag: The tag.
        count: Number of active memories that have it.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"tag"})

    tag: str
    count: int


class LongTermMemoryStats(Record, AnswersHabits, frozen=True, kw_only=True):
    """Statistics of the memories of a scope.

    Each memory is counted once: as active, archived, superseded, deleted or expired.

    Attributes:
        active_entries: Memories that a search can find, as counted by `count`.
        archived_entries: Archived memories.
        superseded_entries: Superseded memories.
        forgotten_entries: Deleted memories that can be restored.
        expired_entries: Memories past their `expires_at` that were not deleted before.
        sealed_entries: Sealed memories, in any state; without a key no other figure counts them,
            except bytes.
        unreadable_entries: Sealed memories that cannot be opened: for lack of a key, or because
            they were damaged or changed.
        storage_bytes_used: UTF-8 bytes of all contents; deleted ones count until purged, and sealed
            ones count what is stored of them, in Base64 with all that is sealed. With a
            limit, those that it is for: of the user, or of the whole agent.
        storage_bytes_limit: Maximum bytes; None is no limit.
        entries_by_type: Number of active memories of each type.
        top_tags: The most frequent tags of active memories, then by name; at most ten.
        oldest_entry: Creation time of the oldest active memory; None without any.
        newest_entry: Creation time of the newest active memory; None without any.
        average_embedding_time_ms: Mean over the texts embedded since opening; 0 before any, and 0
            unless all users are requested.
        total_embeddings_generated: Texts embedded since opening; 0 unless all users are requested.
        hint: A sentence about the cause of figures of nothing, if one is likely; else None.
    """

    _habits: ClassVar[Mapping[str, str]] = STATS

    active_entries: int
    forgotten_entries: int
    archived_entries: int = 0
    superseded_entries: int = 0
    expired_entries: int = 0
    sealed_entries: int = 0
    unreadable_entries: int = 0
    storage_bytes_used: int = 0
    storage_bytes_limit: int | None = None
    entries_by_type: dict[MemoryType, int] = msgspec.field(default_factory=dict)
    top_tags: tuple[TagUsage, ...] = ()
    oldest_entry: datetime | None = None
    newest_entry: datetime | None = None
    average_embedding_time_ms: float = 0.0
    total_embeddings_generated: int = 0
    hint: str | None = None

    @property
    def stored_entries(self) -> int:
        """Memories in any state, deleted and expired ones included."""
        return (
            self.active_entries
            + self.archived_entries
            + self.superseded_entries
            + self.forgotten_entries
            + self.expired_entries
        )

    @property
    def storage_percent_used(self) -> float:
        """Used ÷ limit · 100; 0 without a limit above 0."""
        limit = self.storage_bytes_limit or 0
        return self.storage_bytes_used / limit * 100 if limit > 0 else 0.0


class UserUsage(Record, frozen=True):
    """What one user's memories take.

    Attributes:
        user_id: The user; None stands for the memories without a user.
        active_entries: Memories that a search can find, as counted by `count`.
        storage_bytes_used: UTF-8 bytes of all contents; deleted ones count until purged.
    """

    user_id: str | None
    active_entries: int
    storage_bytes_used: int


_LEFT_BY_SERVER = (
    "the memories are deleted for all processes; their bytes leave the tables of the server by "
    "VACUUM FULL, and its log and backups with time: see the page on PostgreSQL"
)


class DeleteResult(int):
    """Number of memories that a call deleted: an int, and so false if there were none.

    Attributes:
        erased: Whether nothing of permanently deleted data, now or earlier, is left in the store's
            files, also after a power cut; always False after a deletion that can be restored. False
            if a reader still needed the old state; erasure is repeated later, at the latest when
            the last process closes the file. `erase_pending` repeats it at once, and so does
            another deletion. None where the store cannot know, as in PostgreSQL: asking again
            changes nothing, and `hint` says what does.
        hint: A sentence about the cause where nothing was deleted, if one is likely; what removes
            the bytes where `erased` is None; else None.
    """

    erased: bool | None = False
    hint: str | None = None

    def __new__(cls, count: int, *, erased: bool | None = False, hint: str | None = None) -> Self:
        """Make a result of a count."""
        made = super().__new__(cls, count)
        made.erased = erased
        made.hint = _LEFT_BY_SERVER if erased is None and hint is None else hint
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return count, `erased` and `hint`."""
        return {"count": int(self), "erased": self.erased, "hint": self.hint}

    def __repr__(self) -> str:
        hint = "" if self.hint is None else f", hint={self.hint!r}"
        return f"DeleteResult({int(self)}, erased={self.erased}{hint})"


class MemoryPage(Listing[MemoryEntry], frozen=True):
    """A page of a list of memories: a sequence of its entries.

    Attributes:
        entries: Newest first, then smallest id.
        cursor: Cursor of the next page; None if this is the last.
        hint: A sentence about the cause of an empty first page, if one is likely; else None.
    """

    _items_field: ClassVar[str] = "entries"
    _entry_fields: ClassVar[tuple[str, ...]] = MemoryEntry.__struct_fields__
    _hit_fields: ClassVar[tuple[str, ...]] = ()
    _marks: ClassVar[tuple[str, ...]] = ("has_more", "hint")
    _nouns: ClassVar[tuple[str, str]] = ("entry", "entries")

    entries: tuple[MemoryEntry, ...]
    cursor: str | None
    hint: str | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is a next page."""
        return self.cursor is not None


class PageCursor(NamedTuple):
    """Sort key of the last entry of a page, newest first; the next page begins after it."""

    created_at: datetime
    id: UUID
    user_id: str | None = None


class ImportResult(Record, frozen=True):
    """Result of an import.

    Attributes:
        stored: Number of new memories.
        skipped: Number of memories whose ids existed.
        links: Number of new links, without those of supersession.
        evicted: Ids of the memories that were deleted to make space, in the order in which they
            went; with many new ones, earlier ones of the import may be among them.
    """

    stored: int
    skipped: int
    links: int
    evicted: tuple[UUID, ...] = ()


class SearchResults(Listing[SearchHit], frozen=True, eq=False):
    """The hits of one search, best first: score, then newest, then smallest id.

    Attributes:
        hits: The hits; a list is converted.
        degraded: Whether the embedder failed, so that a hybrid search was answered by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the timeout passed, so that better hits may be missing.
        approximate: Whether an approximate index chose the memories that were ranked: better ones
            may be missing. Scores are exact.
        share: Share of similarity in the matches, the rest is the keywords': 0 in a search by
            keywords, 1 in one by meaning; None without a query. Memories that the embedder does not
            cover have none, as their component `share` shows.
        hint: A sentence about the cause of an empty result, if one is likely; else None.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        searched_in: "memory" if the index of all memories was ranked, "database" if the database
            selected those that were; scores and order are the same.
        by_another: Whether the query names one speaker, and the best of all hits is by another: the
            answer may not be the one that is asked for.
    """

    _items_field: ClassVar[str] = "hits"
    _entry_fields: ClassVar[tuple[str, ...]] = MemoryEntry.__struct_fields__
    _hit_fields: ClassVar[tuple[str, ...]] = ("score", "similarity")
    _marks: ClassVar[tuple[str, ...]] = SHOWN

    hits: tuple[SearchHit, ...]
    degraded: bool = False
    partial: bool = False
    approximate: bool = False
    share: float | None = None
    hint: str | None = None
    stale_since: datetime | None = None
    searched_in: Literal["memory", "database"] = "memory"
    degraded_reason: str | None = None
    by_another: bool = False

    def __post_init__(self) -> None:
        """Make a tuple of a list."""
        if self.hits.__class__ is not tuple:
            force_setattr(self, "hits", tuple(self.hits))

    @overload
    def __getitem__(self, at: int) -> SearchHit: ...
    @overload
    def __getitem__(self, at: slice) -> "SearchResults": ...
    def __getitem__(self, at: int | slice) -> "SearchHit | SearchResults":
        if isinstance(at, slice):
            return msgspec.structs.replace(self, hits=self.hits[at])
        try:
            return self.hits[at]
        except TypeError:
            raise self._no_item(at) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchResults):
            return NotImplemented
        return (self.hits, self._flags) == (other.hits, other._flags)

    def __ne__(self, other: object) -> bool:  # msgspec's own compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self.hits)

    @property
    def _flags(self) -> tuple[bool, bool, bool]:
        return self.degraded, self.partial, self.approximate

    def table(self, width: int | None = None) -> str:
        """Return the hits as a table of plain text, one line for each.

        Columns are the place, the score, the shares that add up to it, the words matched, and the
        content, cut; shares and words only with `explain=True`. Content and words of sensitive
        memories are hidden.

        Args:
            width: Columns that a line takes, where the numbers leave some; else words and contents
                have columns of their own width.
        """
        return table_of(self.hits, width)

    def __str__(self) -> str:
        return self.table() if any(hit.why is not None for hit in self.hits) else repr(self)


class WrittenEntry(MemoryEntry, frozen=True, kw_only=True, eq=False):
    """A memory as a write left it, with the memories that the write deleted to make space.

    Attributes:
        evicted_ids: Ids of the memories that were deleted permanently, in the order in which they
            went. They are of the same user.
    """

    evicted_ids: tuple[UUID, ...] = ()

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown[:-1]}, evicted={len(self.evicted_ids)})" if self.evicted_ids else shown

    @property
    def evicted(self) -> tuple[UUID, ...]:
        """Ids of the memories that were deleted to make space for this one."""
        return self.evicted_ids


def written(entry: MemoryEntry, evicted: Iterable[UUID]) -> MemoryEntry:
    """Return an entry with what went for it, or the entry itself if nothing did."""
    ids = tuple(evicted)
    if not ids:
        return entry
    if isinstance(entry, WrittenEntry):  # with more of its own
        return msgspec.structs.replace(entry, evicted_ids=ids)
    fields = {name: getattr(entry, name) for name in MemoryEntry.__struct_fields__}
    return WrittenEntry(**fields, evicted_ids=ids)


class AddedMemories(RecordList[MemoryEntry]):
    """The memories of one call as they were stored: a list, with what was deleted to make space.

    Args:
        memories: The memories.
        evicted: Ids of what was deleted.

    Attributes:
        evicted: Ids of the memories that were deleted permanently, in the order in which they went.
    """

    _marks: ClassVar[tuple[str, ...]] = ("evicted",)
    _nouns: ClassVar[tuple[str, str]] = ("entry", "entries")

    evicted: tuple[UUID, ...]

    def __init__(self, memories: Iterable[MemoryEntry] = (), evicted: Iterable[UUID] = ()) -> None:
        super().__init__(memories)
        self.evicted = tuple(evicted)


class UpdateResult(int):
    """Number of memories that a call changed: an int, with what was deleted to make space.

    Args:
        count: The number.
        evicted: Ids of what was deleted.

    Attributes:
        evicted: Ids of the memories that were deleted permanently, in the order in which they went.
    """

    evicted: tuple[UUID, ...] = ()

    def __new__(cls, count: int, *, evicted: Iterable[UUID] = ()) -> Self:
        """Make a result of a count."""
        made = super().__new__(cls, count)
        made.evicted = tuple(evicted)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return count and ids."""
        return {"count": int(self), "evicted": [str(one) for one in self.evicted]}

    def __repr__(self) -> str:
        return f"UpdateResult({int(self)}, evicted={len(self.evicted)})"


AuditKind: TypeAlias = Literal[
    "exact_duplicates",
    "near_duplicates",
    "stale",
    "never_accessed",
    "sealed",
    "unembedded",
    "superseded",
    "expired",
    "oversized",
    "secrets",
    "unscanned",
]
"""What an audit counts; the names of the counts of `MemoryAudit`."""

AUDIT_KINDS: Final[tuple[AuditKind, ...]] = get_args(AuditKind)


class AuditFinding(Record, frozen=True, kw_only=True):
    """A memory that an audit found.

    Attributes:
        id: Its id.
        user_id: Its user; None for a memory without one.
        repeats: Of a duplicate, the id of the earlier memory that it repeats.
        similarity: Of a near duplicate, the cosine of both; None where their texts were compared.
        patterns: Of a secret, the names of the patterns that match, in the order they were given;
            a regular expression without a name is its own.
    """

    id: UUID
    user_id: str | None = None
    repeats: UUID | None = None
    similarity: float | None = None
    patterns: tuple[str, ...] = ()


class MemoryAudit(Record, frozen=True, kw_only=True):
    """What of the memories of a scope may need attention.

    A memory may count in several ways. Active memories are those that a search can find.

    Attributes:
        memories: Active memories.
        stored: Memories in any state, deleted ones that can be restored included.
        exact_duplicates: Active memories whose text an earlier one of the same user has, apart from
            case, width, white space and the punctuation around it.
        near_duplicates: Other active memories that are about the same as an earlier one of the same
            user; see `Memory.audit`.
        stale: Active memories that were neither made, changed nor accessed for a time.
        never_accessed: Active memories that were never accessed.
        sealed: Memories in any state that are sealed; without their key they are in no other count,
            and in no finding.
        unembedded: Active memories without a vector.
        superseded: Memories replaced by a newer one, neither deleted nor expired.
        expired: Memories past their `expires_at` that were not deleted before.
        oversized: Active memories with a long content.
        secrets: Memories in any state, stored in plain text, in which a pattern matches.
        unscanned: Memories with a text that took the patterns too long: it may hold secrets.
        secrets_by_pattern: The number of these memories by the name of each pattern that matches
            any.
        findings: The memories of each kind that has any, in the order they were stored, as many as
            requested; empty unless ids were requested.
        hint: A sentence about the cause of an audit of nothing, if one is likely; else None.
    """

    memories: int = 0
    stored: int = 0
    exact_duplicates: int = 0
    near_duplicates: int = 0
    stale: int = 0
    never_accessed: int = 0
    sealed: int = 0
    unembedded: int = 0
    superseded: int = 0
    expired: int = 0
    oversized: int = 0
    secrets: int = 0
    unscanned: int = 0
    secrets_by_pattern: dict[str, int] = msgspec.field(default_factory=dict)
    findings: dict[AuditKind, tuple[AuditFinding, ...]] = msgspec.field(default_factory=dict)
    hint: str | None = None

    def ids(self, kind: AuditKind) -> tuple[UUID, ...]:
        """Return the ids of the findings of a kind, in the order the memories were stored.

        Args:
            kind: Name of a count, such as "exact_duplicates".
        """
        return tuple(finding.id for finding in self.findings.get(kind, ()))


class AuditRequest(NamedTuple):
    """A checked request for an audit.

    Attributes:
        near: Smallest similarity of near duplicates, 0 to 1; None looks for none.
        stale_after: Time without change and access after which a memory is stale.
        max_bytes: Bytes of UTF-8 beyond which a content is oversized; None for those that the
            embedder does not see at once.
        limit: Maximum number of findings of each kind; 0 for counts alone.
        deadline: In seconds of `time.monotonic()`; None is no limit.
    """

    near: float | None
    stale_after: timedelta
    max_bytes: int | None
    limit: int
    deadline: float | None
