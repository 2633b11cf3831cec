"""Requests to an index of memories, its answers, and the contract of candidate sources.

A source is an index of vectors alone, below the index of memories. It proposes rows whose vectors
are near a query; the index ranks them. It computes every score itself, from its own copy of the
vectors, and drops proposals outside the scope and the filters of the call. So a source decides
which memories are considered, and nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from mnemic.arrays import BoolArray, Float32Array, Int64Array, UInt8Array, np
from mnemic.model import Expression, MemorySortOrder, Scope
from mnemic.records import Redacted


class Hops(NamedTuple):
    """Which links are followed from found memories, and what a neighbour's score is.

    Attributes:
        depth: Maximum number of links on a path, 0 to 3; with 0 superseded memories lead to the
            heads of their versions, and nothing else is followed.
        decays: Factor of the score at each link, 0 to 1, by the number of the link's type; links of
            a type with 0 are not followed.
        follow_incoming: Whether links are also followed from the linked memory to the linking one.
        limit: Maximum number of neighbours; with 0 nothing is followed.
    """

    depth: int
    decays: tuple[float, ...]
    follow_incoming: bool = False
    limit: int = 10


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


class RowSet(NamedTuple):
    """A set of rows, in the form that id selectors of vector libraries take.

    Either the list or the bitmap is given, whichever is smaller.

    Attributes:
        rows: int64, shape (n,), ascending; None if there is a bitmap.
        bitmap: uint8; row r is in the set if bit r % 8 of byte r // 8 is 1, counted from the least
            significant bit. Rows beyond the end are not in it.
    """

    rows: Int64Array | None = None
    bitmap: UInt8Array | None = None

    @classmethod
    def of(cls, given: Int64Array | UInt8Array) -> "RowSet":
        """Return the set of a list of rows, or of a bitmap."""
        if given.dtype == np.uint8:
            return cls(bitmap=given.view(np.uint8))
        return cls(rows=given.astype(np.int64, copy=False))

    def to_rows(self) -> Int64Array:
        """Return the rows, int64, ascending."""
        if self.bitmap is not None:
            return np.flatnonzero(np.unpackbits(self.bitmap, bitorder="little"))
        return np.empty(0, np.int64) if self.rows is None else self.rows

    def contains(self, rows: Int64Array) -> BoolArray:
        """Return for each of these rows, shape (n,), whether it is in the set."""
        if self.bitmap is None:
            return np.isin(rows, self.to_rows())
        is_inside = (rows >= 0) & (rows < 8 * len(self.bitmap))
        places = np.where(is_inside, rows, 0)
        bits = self.bitmap[places >> 3] >> (places & 7).astype(np.uint8)
        found: BoolArray = is_inside & (bits & 1 == 1)
        return found


class IndexSelection(NamedTuple):
    """The rows of an index that a search selects by scope, time, filters and exclusions.

    Attributes:
        size: Their number.
        rows: The rows; None for all rows of the index.
    """

    size: int
    rows: RowSet | None


class SourceState(NamedTuple):
    """What a source has done so far.

    Attributes:
        kind: The kind of its index, as "hnsw".
        indexed: Vectors that its index has.
        waiting: Vectors that its index does not have yet.
        removed: Places of its index whose vectors are removed or replaced.
        proposes: Whether it proposes rows now; if not, all memories are ranked.
        is_at_work: Whether changes are being brought into its index.
    """

    kind: str
    indexed: int = 0
    waiting: int = 0
    removed: int = 0
    proposes: bool = True
    is_at_work: bool = False


class CandidateSource(Protocol):
    """Proposes rows whose vectors are near a query.

    **Rows.** A source holds vectors by row. Several vectors of one row are those of the chunks of
    a long text; the nearest of them counts. `add` and `remove` are called by one thread at a time,
    in the order of the changes. A full load uses a new source: the index makes one by its
    `SourceFactory`, and drops the old one when the load is complete.

    **Stale rows.** A source may apply changes late, and may propose rows that are gone or have
    changed: the index ignores or re-scores them. Each such proposal takes the place of another one,
    so a source should catch up soon. A row whose text changed and has no vector yet keeps its old
    vectors here, and is removed or overwritten later.

    **Threads.** `nearest` is called from many threads, also during `add` and `remove`; a source
    that needs a lock brings its own. No method changes its arguments, or keeps them.

    **Errors.** If `nearest` raises an `Exception`, or returns something else than it should, the
    index ranks all selected memories exactly. If `add` or `remove` raises one, the source is out of
    step: it is dropped, and searches are exact until the next full load. Messages of errors are
    neither logged nor shown.
    """

    @property
    def is_exact(self) -> bool:
        """Whether `nearest` always returns the nearest rows. Ties may be decided in any way."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of memory held, partly estimated."""
        ...

    def add(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors, shape (n, dim), of rows, shape (n,); they replace all vectors of these rows.

        The vectors of one row are next to each other. Vectors are finite, and of any length:
        similarity is the cosine, and 0 with the null vector.
        """
        ...

    def remove(self, rows: Int64Array) -> None:
        """Remove rows, shape (n,); unknown ones are ignored."""
        ...

    def nearest(self, vectors: Float32Array, k: int, selected: RowSet | None) -> Int64Array:
        """Return the rows nearest to the nearest of some vectors.

        Args:
            vectors: The query, shape (m, dim), m of at least 1.
            k: Maximum number of rows, at least 1.
            selected: Only these rows; None for all.

        Returns:
            int64, shape (n,), best first, each row once, all of them selected. Fewer than
            min(k, selected rows) means that the source found no more.
        """
        ...


class InitialVectors(NamedTuple):
    """The vectors that a source has before any change, from a file or from an index.

    Attributes:
        path: A file that a `SourceWriter` has written; None for none.
        label: The label that the file must have.
        number: Number of vectors.
        parts: Yields all vectors: rows, shape (n,), and vectors, shape (n, dim); those of a row are
            next to each other, in one part.
        drop: Is called with the reason if the file is of no use.
    """

    path: str | None
    label: bytes
    number: int
    parts: Callable[[], Iterable[tuple[Int64Array, Float32Array]]]
    drop: Callable[[str], object]


SourceWriter: TypeAlias = Callable[[str, bytes], bool]
"""Writes an index to a file with a label; the file is complete or not there.

It returns False if the source was given up meanwhile, and raises StoreError if the file cannot be
written.
"""


class HeldSource(Protocol):
    """A source that brings no change into its index until it is released; searches go on."""

    def writer(
        self,
        without: Int64Array,
        *,
        rebuild: bool,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> SourceWriter | None:
        """Return what writes the index without some rows, and without those that were removed.

        Args:
            without: Rows to leave out, shape (n,).
            rebuild: Whether to rebuild an index where this one has rows that the file must not
                have. That takes as long as building.
            is_stopped: Ends that once it is true.

        Returns:
            None if it cannot be written.
        """
        ...

    @property
    def may_rebuild(self) -> bool:
        """Whether rebuilding the index would take a small part of the time since the last one."""
        ...

    def release(self) -> None:
        """Let changes come into the index again."""
        ...


SourceFactory: TypeAlias = Callable[[int], CandidateSource]
"""Makes an empty source of vectors of a dimension; a class is one."""

SourceChoice: TypeAlias = Callable[[], SourceFactory | None]
"""Chooses what makes the sources of a new index, before its rows are read: it may read the store.

None is no source.
"""
