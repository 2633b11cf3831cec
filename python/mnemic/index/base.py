"""Requests to an index of memories, and its answers."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from mnemic.arrays import Float32Array, Int64Array
from mnemic.model import Expression, MemorySortOrder, Scope
from mnemic.model.hops import Hops
from mnemic.model.redacted import Redacted


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
        time_zone: Changes of the offset of the time zone whose days the query names; none is UTC.
    """

    scope: Scope
    now: int
    vectors: Float32Array | None = None
    context: Float32Array | None = None
    limit: int | None = None
    best_match: float | None = None
    proposed: Int64Array | None = None
    time_zone: bytes = b""


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
        chunk: Which of its vectors is nearest to the query's, where it has several.
    """

    row: int
    id: bytes
    score: float
    components: dict[str, float]
    last_accessed_at: int | None = None
    access_count: int = 0
    similarity: float | None = None
    reasons: Reasons | None = None
    chunk: int | None = None

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
        by_another: Whether the text names one speaker, and the best row is by another.
    """

    ranked: list[RankedRow]
    total: int | None
    partial: bool = False
    approximate: bool = False
    share: float | None = None
    weak: bool = False
    by_another: bool = False
