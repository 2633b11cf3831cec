"""The contract of every index of memories; that of candidate sources is in `candidates`."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from mnemic.arrays import Float32Array, Int64Array
from mnemic.index.candidates import IndexSelection, RowSet
from mnemic.index.loading import Loader
from mnemic.model import Expression, MemorySortOrder, Scope
from mnemic.model.filter import Field
from mnemic.model.hops import Hops
from mnemic.model.redacted import Redacted
from mnemic.model.rows import Access, RowBatch
from mnemic.model.search import Search


class RankInputs(NamedTuple):
    """The computed inputs of a ranking, beside the search itself.

    Attributes:
        scope: Only rows of it.
        now: Microseconds since 1970 in UTC; rows expired before are excluded.
        vectors: float32, shape (m, dim): the query; of several vectors the nearest counts; None if
            similarity has no share.
        context: float32, shape (m, dim): rows similar to it get a higher score, or None; of several
            vectors the nearest counts.
        limit: Maximum number of rows; None is the search's.
        best_match: Divisor of matches in a relative search; None is the best match of the scope.
        proposed: Rows proposed by a candidate source, int64, shape (n,); None ranks all rows.
    """

    scope: Scope
    now: int
    vectors: Float32Array | None = None
    context: Float32Array | None = None
    limit: int | None = None
    best_match: float | None = None
    proposed: Int64Array | None = None


class ListRequest(Redacted, frozen=True, kw_only=True):
    """A request for a list of rows.

    Attributes:
        scope: Only rows of it.
        now: Microseconds since 1970 in UTC; rows expired before are excluded.
        filters: Only rows that match.
        order: The order.
        after: Creation in microseconds, the UUID's 16 bytes and user of a row; only rows after it,
            newest first, are listed.
        offset: Number of first rows to skip.
        limit: Maximum number of rows.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"filters"})

    scope: Scope
    now: int
    filters: Expression
    order: MemorySortOrder = MemorySortOrder.CREATED_DESCENDING
    after: tuple[int, bytes, str | None] | None = None
    offset: int = 0
    limit: int


class LinkSearch(Redacted, frozen=True, kw_only=True):
    """A request to follow links.

    Attributes:
        scope: Only its memories are traversed and found.
        now: Microseconds since 1970 in UTC; rows expired before are excluded.
        row: The first row; it is not found itself.
        direction: "out" from it, "in" to it, or "both".
        kinds: Bits of the types of links.
        depth: Maximum number of links on a path, 1 to 3.
        limit: Maximum number of rows.
        filters: Only matching rows are traversed and found; the first row need not match.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"filters"})

    scope: Scope
    now: int
    row: int
    direction: str
    kinds: int
    depth: int
    limit: int
    filters: Expression | None = None
    deadline: float | None = None


class NeighbourSearch(Redacted, frozen=True, kw_only=True):
    """A request for the neighbours of found rows.

    Attributes:
        scope: Only its memories are traversed and found.
        now: Microseconds since 1970 in UTC; rows expired before are excluded.
        starts: Rows with their scores; they are neither found nor traversed. Those outside the
            scope lead nowhere.
        hops: The links to follow.
        filters: Only matching rows are traversed and found; starts need not match.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"filters"})

    scope: Scope
    now: int
    starts: Sequence[tuple[int, float]]
    hops: Hops
    filters: Expression | None = None
    deadline: float | None = None


class NeighbourRow(NamedTuple):
    """A row reached by links from several others.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        score: Score of the start, times decay and strength of each link on the best path.
        kind: Number of the type of the last link.
        via_row: The row before it on that path.
        depth: Number of links on it.
        last_accessed_at: Microseconds since 1970 in UTC, or None.
        access_count: Number of accesses.
    """

    row: int
    id: bytes
    score: float
    kind: int
    via_row: int
    depth: int
    last_accessed_at: int | None = None
    access_count: int = 0


class LinkedRow(NamedTuple):
    """A row reached by links.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        strength: Largest product of strengths on a path to it.
        kinds: Types of the links on that path, the first hop first.
        last_accessed_at: Microseconds since 1970 in UTC, or None.
        access_count: Number of accesses.
    """

    row: int
    id: bytes
    strength: float
    kinds: tuple[int, ...]
    last_accessed_at: int | None = None
    access_count: int = 0


Reasons: TypeAlias = tuple[
    dict[str, float],
    list[tuple[str, str, int]],
    bytes | None,
    tuple[int, int] | None,
    str | None,
    str | None,
]
"""The reasons for a score as the index gives them.

Shares of the score by name; matched words, each with the token of the query, that of the memory,
and how many turns before it stands; the UUID's 16 bytes of the neighbour; first microsecond of the
named time and first one after it; role; speaker.
"""


class RankedRow(NamedTuple):
    """A ranked row.

    Attributes:
        row: The store's integer.
        id: The UUID's 16 bytes.
        score: Sort key, in float64: the score, or the key of the search's order.
        components: Named parts of the score: all with `Search.explain`, else similarity and
            keyword.
        last_accessed_at: Microseconds since 1970 in UTC, or None.
        access_count: Number of accesses.
        similarity: Cosine with the nearest query; None where no vectors were compared.
        reasons: The reasons for the score; None unless requested.
    """

    row: int
    id: bytes
    score: float
    components: dict[str, float]
    last_accessed_at: int | None = None
    access_count: int = 0
    similarity: float | None = None
    reasons: Reasons | None = None

    @property
    def shown_score(self) -> float:
        """The score for display, from 0 to 1; rounding may carry `score` past either end."""
        score = self.score
        return score if 0.0 <= score <= 1.0 else min(1.0, max(0.0, score))


class RankedPage(NamedTuple):
    """The best rows of a ranking.

    Attributes:
        ranked: Best first.
        total: Number of matches; None unless requested, and in a partial page.
        partial: Whether the deadline passed, so that better rows may be missing.
        approximate: Whether only some of the selected rows were considered, by proposals; `total`
            counts the matches among these.
        share: Share of similarity in the matches; None without a query.
        weak: Whether the evidence was below its floor, so that nothing was found.
    """

    ranked: list[RankedRow]
    total: int | None
    partial: bool = False
    approximate: bool = False
    share: float | None = None
    weak: bool = False


class Index(Protocol):
    """Ranks one agent's rows. Searches may run in many threads while one applies changes."""

    @property
    def seq(self) -> int | None:
        """Number of the last applied change; None before loading."""
        ...

    def loader(self) -> Loader:
        """Return a sink for a full load."""
        ...

    def apply(self, batch: RowBatch, loader: Loader | None = None) -> bool:
        """Apply a batch of changes; return False if it does not follow the index's change number.

        Args:
            batch: The changes.
            loader: The sink that received the batch, if it is a full load.
        """
        ...

    def raise_accesses(self, accesses: Sequence[Access]) -> None:
        """Raise last access and access count of rows to at least these values, in one step.

        Unknown rows are skipped, and so are values below the known ones: accesses counted by
        `add_accesses` may not be in the store yet. A batch of changes lowers no accesses either.
        """
        ...

    def add_accesses(self, accesses: Sequence[Access]) -> None:
        """Add accesses to rows, in one step; unknown rows are skipped."""
        ...

    def accesses(self, rows: Sequence[int]) -> list[tuple[int | None, int] | None]:
        """Return last access and access count of rows; None for unknown rows."""
        ...

    @property
    def has_speakers(self) -> bool:
        """Whether any row ever had a speaker, whose name a query may hold."""
        ...

    def unembedded(self) -> list[int]:
        """Return the rows without a vector, ascending."""
        ...

    def rank(self, search: Search, inputs: RankInputs) -> RankedPage:
        """Return the best rows of a scope.

        Of the search, the filters, the ranking and all limits apply; its texts beside the query
        count only through the vectors.

        Order: score, then newest, then smallest UUID, then user by name, no user before all. The
        result of a smaller limit is always the head of the result of a larger one.

        A partial page has rows that were ranked in full before the search's deadline, in their
        order; any others may be missing.

        With proposed rows, only these are considered, the rows with the best keyword matches, and
        the neighbours of both in their sessions; all within the scope and the filters. Each has the
        score and the components of the ranking without proposals, except that a relative search
        without a given divisor divides by the best match considered. Unknown, repeated and
        unselected proposals are ignored. With an order in place of the score's, all are.

        Raises:
            DeadlineExceededError: If the deadline passes, and the search takes no partial answer.
        """
        ...

    @property
    def has_source(self) -> bool:
        """Whether a candidate source can propose rows."""
        ...

    def surface_forms(self, text: str, tokens: list[str]) -> list[tuple[str, list[int]]]:
        """Return where tokens are written in a text, each with the positions of its tokens."""
        ...

    def selected(self, search: Search, inputs: RankInputs, few: int) -> IndexSelection | None:
        """Return the rows that the scope, the time, the filters and exclusions of a search select.

        Floors of the search do not count. None is returned if there are at most `few` rows, and if
        the deadline passes.
        """
        ...

    def nearest(self, vectors: Float32Array, k: int, selected: RowSet | None) -> Int64Array | None:
        """Return the proposals of the candidate source; see `CandidateSource.nearest`.

        They may hold unknown, repeated and unselected rows. None is returned without a source, and
        if it fails.
        """
        ...

    def listed(self, wanted: ListRequest) -> list[Access]:
        """Return the rows of a list with their accesses.

        Order: the requested one, then newest, then smallest UUID, then user by name, no user before
        all; rows that were never accessed come last in the order of accesses.
        """
        ...

    def counted(self, wanted: ListRequest) -> int:
        """Return the number of rows that a list has without its limit and offset."""
        ...

    def distinct(
        self, wanted: ListRequest, field: Field, prefix: str | None
    ) -> list[tuple[Any, int]]:
        """Return the distinct values of a field in the rows of a list, with their numbers of rows.

        Limit and offset are those of the values; see `mnemic.store.lists.Lists.distinct`.

        Args:
            wanted: The list.
            field: A name, the type, tags or a path into the metadata.
            prefix: Only texts that begin with it are counted; None is any value.
        """
        ...

    def linked(self, wanted: LinkSearch) -> tuple[list[LinkedRow], int]:
        """Return the rows reached by links, and their number.

        Order: strength, then fewest hops, then newest, then smallest UUID, then user. The first row
        must be in the scope, and need not match the filter.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        ...

    def neighbours(self, wanted: NeighbourSearch) -> list[NeighbourRow]:
        """Return the rows reached by links from several rows, each by its best path.

        A score below 0 counts as 0. Of equal paths the one with the fewest hops counts, then that
        from the smallest row, then the type of the smallest number. A link to a superseded row
        leads to the head of its versions: the row of the scope that superseded it, or that
        superseded its successor, and so on; of several the one that was changed last, then the
        smallest UUID.

        Order: score, then fewest hops, then newest, then smallest UUID, then user.

        Raises:
            DeadlineExceededError: If the deadline passes.
            InvalidArgumentError: If the depth or a decay is out of range.
        """
        ...

    def related(
        self, query: str, texts: list[tuple[str, float]], scope: Scope, limit: int
    ) -> list[tuple[str, float]]:
        """Return words of texts that are related to a query, weighted by the user's rows.

        Statistics come from all rows of the scope's user, or of all users; project and session do
        not narrow them.
        """
        ...

    def key_phrases(self, text: str, scope: Scope, limit: int) -> list[tuple[str, float]]:
        """Return phrases of a text that occur in the user's rows, weighted as in `related`."""
        ...

    def next_expiry(self, scope: Scope, now: int) -> int | None:
        """Return the first expiry of a row of the user after now, in microseconds."""
        ...

    def in_first_person(
        self, text: str, scope: Scope, now: int, deadline: float | None = None
    ) -> str:
        """Return a text with "I" and "my" in place of the names of a scope's speakers.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        ...

    def __len__(self) -> int:
        """Return the number of rows, expired ones included."""
        ...
