"""What a search returns."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Self, overload
from uuid import UUID

import msgspec

from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.model.redacted import Redacted


class VerifyProblem(NamedTuple):
    """One thing that is not as it was stored.

    Attributes:
        what: In words, without anything of a memory's content.
        agent_id: Whose, if it is one agent's.
        row: The row of the memory in the file, if it is one memory's.
        id: The memory's id, if it can be read.
    """

    what: str
    agent_id: str | None = None
    row: int | None = None
    id: UUID | None = None


class VerifyReport(NamedTuple):
    """What walking through a whole file has found.

    Attributes:
        memories: How many there are, all agents' together, whatever their state.
        vectors: How many vectors.
        links: How many links.
        without_sums: Memories of earlier versions that have no checksums, before any repair.
        problems: What is not as it was stored, in the order it was found.
        sealed: How many memories got checksums.
        repaired_agents: Whose number and sum of memories was written anew.
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
        """Whether everything is as it was stored, as far as there are checksums."""
        return not self.problems


class SearchHit(msgspec.Struct, frozen=True):
    """One memory found, and why.

    Attributes:
        entry: The memory, without its embedding.
        score: What it was ranked by, shown from 0 to 1; higher is better.
        components: The named parts of the score, each from 0 to 1, but for `question`, which is
            taken away and so at most 0.
    """

    entry: MemoryEntry
    score: float
    components: dict[str, float]

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.entry.id

    @property
    def content(self) -> str:
        """The memory's text."""
        return self.entry.content

    @property
    def user_id(self) -> str | None:
        """Whom the memory is about."""
        return self.entry.user_id

    @property
    def session_id(self) -> str | None:
        """The session it comes from."""
        return self.entry.session_id

    @property
    def type(self) -> MemoryType:
        """What sort of thing it states."""
        return self.entry.type

    @property
    def created_at(self) -> datetime:
        """When the memory came to be."""
        return self.entry.created_at

    @property
    def tags(self) -> tuple[str, ...]:
        """The memory's tags."""
        return self.entry.tags

    @property
    def metadata(self) -> dict[str, Any]:
        """The memory's metadata."""
        return self.entry.metadata


class Found(NamedTuple):
    """What a search found.

    Attributes:
        hits: Best first.
        total: How many match in all; None unless that was asked for.
    """

    hits: list[SearchHit]
    total: int | None


class MemorySearchResult(msgspec.Struct, frozen=True):
    """One memory found by meaning (R042 to R044).

    Attributes:
        entry: The memory, without its embedding.
        similarity: Cosine of query and memory, 0 where it is negative (C102).
        rank: From 1.
    """

    entry: MemoryEntry
    similarity: float
    rank: int


class TagUsage(Redacted, frozen=True):
    """How many active memories carry a tag (R069)."""

    _hidden: ClassVar[frozenset[str]] = frozenset({"tag"})

    tag: str
    count: int


class LongTermMemoryStats(msgspec.Struct, frozen=True, kw_only=True):
    """What the memories of one call's scope amount to.

    Each memory is counted once: as active, archived, superseded, forgotten or expired.

    Attributes:
        active_entries: Memories that a search can find, as many as `count` says.
        archived_entries: Memories that were archived.
        superseded_entries: Memories that another one replaced.
        forgotten_entries: Forgotten memories that were not deleted for good yet.
        expired_entries: Memories past their `expires_at` that were not forgotten before.
        storage_bytes_used: UTF-8 bytes of all contents; forgotten ones count until purged. Where
            there is a limit, those of the whole agent, whose limit it is.
        storage_bytes_limit: None is no limit.
        entries_by_type: Active memories of each type that has any.
        top_tags: The tags of most active memories, most first, then by name; at most ten.
        oldest_entry: Creation of the oldest active memory; None without any.
        newest_entry: Creation of the newest active memory; None without any.
        average_embedding_time_ms: Over the texts embedded since opening; 0 before any, and 0 unless
            all users were asked for.
        total_embeddings_generated: Texts embedded since opening; 0 unless all users were asked for.
    """

    active_entries: int
    forgotten_entries: int
    archived_entries: int = 0
    superseded_entries: int = 0
    expired_entries: int = 0
    storage_bytes_used: int = 0
    storage_bytes_limit: int | None = None
    entries_by_type: dict[MemoryType, int] = msgspec.field(default_factory=dict)
    top_tags: tuple[TagUsage, ...] = ()
    oldest_entry: datetime | None = None
    newest_entry: datetime | None = None
    average_embedding_time_ms: float = 0.0
    total_embeddings_generated: int = 0

    @property
    def storage_percent_used(self) -> float:
        """Used ÷ limit · 100; 0 without a limit (R064)."""
        if not self.storage_bytes_limit:
            return 0.0
        return self.storage_bytes_used / self.storage_bytes_limit * 100


class DeleteResult(int):
    """How many memories a call deleted or forgot: an int, and so false where there was none.

    Attributes:
        erased: Whether nothing of what was deleted for good, now or before, is left in the store's
            files, also after a power cut; never told after soft forgetting. False where a reader
            still needed the old state; it is tried again later, at the latest when the last process
            closes the file. `erase_pending` tries it at once, and so does deleting again.
    """

    erased: bool = False

    def __new__(cls, count: int, *, erased: bool = False) -> Self:
        """Make one of a count."""
        made = super().__new__(cls, count)
        made.erased = erased
        return made

    def __repr__(self) -> str:
        return f"DeleteResult({int(self)}, erased={self.erased})"


class MemoryPage(msgspec.Struct, frozen=True):
    """A part of a list of memories.

    Attributes:
        entries: Newest first, then smallest id; without their embeddings.
        cursor: What to ask the next page with; None if this is the last.
    """

    entries: tuple[MemoryEntry, ...]
    cursor: str | None

    def __iter__(self) -> Iterator[MemoryEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class ImportResult(msgspec.Struct, frozen=True):
    """What became of the lines of an import.

    Attributes:
        stored: Memories that are new.
        skipped: Memories whose ids were there already.
        links: Links that are new, besides those that supersession brings.
    """

    stored: int
    skipped: int
    links: int


class SearchResults(Sequence[SearchHit]):
    """The hits of one search, best first: score, then newest, then smallest id (C164).

    Attributes:
        degraded: Whether the embedder failed, so that a hybrid search was answered by keywords.

    Args:
        hits: In that order.
        degraded: As above.
    """

    __slots__ = ("_hits", "degraded")

    degraded: bool

    def __init__(self, hits: Sequence[SearchHit], *, degraded: bool = False) -> None:
        self._hits = tuple(hits)
        self.degraded = degraded

    @overload
    def __getitem__(self, at: int) -> SearchHit: ...
    @overload
    def __getitem__(self, at: slice) -> "SearchResults": ...
    def __getitem__(self, at: int | slice) -> "SearchHit | SearchResults":
        if isinstance(at, slice):
            return SearchResults(self._hits[at], degraded=self.degraded)
        return self._hits[at]

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self._hits)

    def __len__(self) -> int:
        return len(self._hits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchResults):
            return NotImplemented
        return (self._hits, self.degraded) == (other._hits, other.degraded)

    def __hash__(self) -> int:
        return hash(tuple(hit.id for hit in self._hits))

    def __repr__(self) -> str:
        mark = ", degraded=True" if self.degraded else ""
        return f"SearchResults({list(self._hits)!r}{mark})"
