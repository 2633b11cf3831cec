"""The native index: exact, in memory, filtered before ranking."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from mnemic._core import RECORD_COLUMNS, Coverage, IndexSnapshot, MemoryIndex
from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.errors import VectorFileDamagedError
from mnemic.index.base import (
    HeldSource,
    IndexSelection,
    InitialVectors,
    ListRequest,
    NeighbourRow,
    NeighbourSearch,
    RankedPage,
    RankedRow,
    RankInputs,
    RowSet,
    SourceFactory,
    SourceState,
)
from mnemic.index.choice import FaissSources
from mnemic.index.loading import Loader, SourceGuard, ignore, put, raise_accesses
from mnemic.model import Scope
from mnemic.model.filter import Field
from mnemic.model.rows import Access, Link, Record, RowBatch
from mnemic.model.search import CosineScale, Search
from mnemic.threads.locks import InnerLock

T = TypeVar("T")

_CONTENT = RECORD_COLUMNS.index("content")
MAX_PENDING = 256  # rows; larger batches are no faster per row
MIN_VACANT = 16_384  # places; fewer hardly slow searches
MAX_DEFERRED = 256
MAX_DEFERRED_ROWS = 4096
MAX_SCALES = 1024

_RANKED_ROW = cast("Callable[[tuple[Any, ...]], RankedRow]", partial(tuple.__new__, RankedRow))
"""Takes the core's hits as they are; `RankedRow` itself takes twice as long for a field each."""


class KeptScale(NamedTuple):
    """The scale of a user's cosines, and what they have in common.

    They hold between two times, in microseconds.
    """

    scale: CosineScale | None
    common: Float32Array | None
    since: int
    until: int


class Summary(NamedTuple):
    """The parts of an index's state that every search reads.

    Attributes:
        size: Number of rows.
        unembedded: Rows without a vector, ascending.
        needs_rebuild: Whether more places are vacant than used, and a rebuild pays: a row whose
            content changes leaves its place vacant; places are not reused.
        has_speakers: Whether any row ever had a speaker.
        scales: The scales of cosines that were computed since, by user.
    """

    size: int
    unembedded: list[int]
    needs_rebuild: bool
    has_speakers: bool
    scales: dict[tuple[str | None, bool], KeptScale]


class Snapshot(NamedTuple):
    """An index as it was after a change.

    Attributes:
        core: The core's view of it.
        seq: Number of the change.
        unembedded: Rows without a vector; the source may still have an old one of theirs.
        source: Its candidate source, held with the same changes; None without one that can be.
    """

    core: IndexSnapshot
    seq: int
    unembedded: list[int]
    source: HeldSource | None


class NativeIndex:
    """One agent's rows in the core's `MemoryIndex`, ranked, and updated by numbered changes.

    Searches may run in many threads while one applies changes.

    Args:
        dim: Dimension of the vectors; None without vectors.
        make_source: Makes the source that proposes rows of large selections; None for no source.
        coverage: The languages of the embedder; None for any.
        language: The language of the rows by its code, "auto" to detect that of each, or None to
            leave words as they are written.
        repair: Loads the rows again, after the file that they came from was found damaged; None
            raises instead.

    Attributes:
        seq: Number of the last applied change; None before loading.
        source: The candidate source; None without one.
    """

    def __init__(
        self,
        dim: int | None,
        make_source: SourceFactory | None = None,
        coverage: Coverage | None = None,
        language: str | None = "auto",
        repair: Callable[[], object] | None = None,
    ) -> None:
        self._repair = repair
        self._dim = dim
        self._make_source = make_source
        self._make_core = partial(MemoryIndex, language=language, coverage=coverage)
        self._core = self._make_core(self._dim)
        self.source: SourceGuard | None = None  # made with the rows that are loaded
        self._summary: Summary | None = None  # of the core as it is; None after a change
        self._lock = InnerLock()
        self.seq: int | None = None
        self._pending: list[RowBatch] = []
        self._pending_rows = 0
        self._deferred: dict[int, RowBatch] = {}

    def __len__(self) -> int:
        return len(self.core)

    def loader(self, seen: Callable[[int], object] = ignore) -> Loader:
        """Return a sink for a full load; see `Loader`."""
        return Loader(partial(self._make_core, self._dim), self._new_source, seen)

    def apply(self, batch: RowBatch, loader: Loader | None = None) -> bool:
        """Apply a batch of changes; return False if it does not follow the index's change number.

        A batch that arrives before its predecessors is deferred. Concurrent searches see each row
        before or after its change.

        Args:
            batch: The changes.
            loader: The sink that received the batch, if it is a full load.
        """
        with self._lock:
            if batch.since is None:
                self._replace(batch, loader)
            elif self.seq is None or batch.since < self.seq:
                return False
            elif batch.since > self.seq:
                return self._defer(batch)
            else:
                self._append(batch)
            self._append_deferred()
            return True

    def restore(self, core: MemoryIndex, seq: int, beginning: InitialVectors) -> None:
        """Take over rows that were loaded from a file, as of a change.

        Args:
            core: The rows.
            seq: Number of the change.
            beginning: Their vectors, for a candidate source.
        """
        source = self._new_source(beginning)
        with self._lock:
            self._core, self.source, self._summary = core, source, None
            self._pending, self._pending_rows = [], 0
            self.seq = seq

    def snapshot(self) -> Snapshot | None:
        """Return the rows as they are now; None before loading.

        A candidate source that has all changes is held, and must be released.
        """
        with self._lock:
            self._drain()
            if self.seq is None:
                return None
            core, unembedded = self._core.snapshot(), self._core.unembedded()
            # Last: if anything else failed, it would not be released.
            held = None if self.source is None else self.source.hold()
            return Snapshot(core, self.seq, unembedded, held)

    def replace_with(self, fresh: "NativeIndex") -> bool:
        """Take over the rows of a fresh index; return False if this index is more recent."""
        with self._lock:
            if fresh.seq is None or (self.seq is not None and fresh.seq < self.seq):
                return False
            self._make_source = fresh._make_source  # noqa: SLF001 - of the same class
            # In this order: a reader that sees nothing pending uses the core as it is.
            self._core = fresh.core
            self.source = fresh.source
            self._dim = fresh._dim  # noqa: SLF001 - of the same class
            self._pending, self._pending_rows, self._summary = [], 0, None
            self.seq = fresh.seq
            self._append_deferred()
            return True

    def change_accesses(self, accesses: Sequence[Access], *, adds: bool) -> None:
        """Change last access and access count of rows in one step; unknown rows are skipped.

        Args:
            accesses: Their values.
            adds: Whether they are added. Otherwise the known ones are raised to at least these:
                those that were added may not be in the store yet. A batch of changes lowers no
                accesses either.
        """
        with self._lock:
            self._drain()
            if adds:
                self._core.add_accesses(list(accesses))
            else:
                raise_accesses(self._core, accesses)

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
        try:
            found = self.core.rank(search, *inputs)
        except VectorFileDamagedError:
            if self._repair is None:
                raise
            self._repair()
            found = self.core.rank(search, *inputs)
        return RankedPage(list(map(_RANKED_ROW, found[0])), *found[1:])

    @property
    def has_source(self) -> bool:
        """Whether a candidate source can propose rows."""
        return self.source is not None and self.source.is_open

    def selected(self, search: Search, inputs: RankInputs, few: int) -> IndexSelection | None:
        """Return the rows that the scope, the time, the filters and exclusions of a search select.

        Floors of the search do not count. None is returned if there are at most `few` rows, and if
        the deadline passes.
        """
        found = self.core.selected(search, inputs.scope, inputs.now, few)
        if found is None:
            return None
        size, rows = found
        return IndexSelection(size, None if rows is None else RowSet.of(rows))

    def nearest(self, vectors: Float32Array, k: int, selected: RowSet | None) -> Int64Array | None:
        """Return the proposals of the candidate source; see `CandidateSource.nearest`.

        They may hold unknown, repeated and unselected rows. None is returned without a source, and
        if it fails.
        """
        return None if self.source is None else self.source.nearest(vectors, k, selected)

    @property
    def source_state(self) -> SourceState | None:
        """What the candidate source has done of all changes; None without one."""
        self.summary()  # which applies all changes
        return None if self.source is None else self.source.state

    def close(self) -> None:
        """End what the candidate source does in the background."""
        if self.source is not None:
            self.source.close()

    def listed(self, wanted: ListRequest) -> list[Access]:
        """Return the rows of a list with their accesses.

        Order: the requested one, then newest, then smallest UUID, then user by name, no user before
        all; rows that were never accessed come last in the order of accesses.
        """
        return self.core.listed(wanted)

    def counted(self, wanted: ListRequest) -> int:
        """Return the number of rows that a list has without its limit and offset."""
        return self.core.counted(wanted)

    def distinct(
        self, wanted: ListRequest, field: Field, prefix: str | None
    ) -> list[tuple[Any, int]]:
        """Return the distinct values of a field in the rows of a list, with their numbers of rows.

        Limit and offset are those of the values; see `mnemic.store.operations.DistinctValues`.

        Args:
            wanted: The list.
            field: A name, the type, tags or a path into the metadata.
            prefix: Only texts that begin with it are counted; None is any value.
        """
        return self.core.distinct(wanted, field, prefix)

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
        return [NeighbourRow(*hit) for hit in self.core.neighbours(wanted)]

    def scale(self, scope: Scope, now: int) -> KeptScale:
        """Return the scale of the cosines of a user's rows, which is kept until they change."""
        try:
            return self._kept_scale(scope, now)
        except VectorFileDamagedError:
            if self._repair is None:
                raise
        self._repair()
        return self._kept_scale(scope, now)

    def _kept_scale(self, scope: Scope, now: int) -> KeptScale:
        # In this order: what is kept is never older than the state it is kept for.
        kept, core = self.summary().scales, self.core
        user = scope.user_id, scope.all_users
        known = kept.get(user)
        if known is None or not known.since <= now < known.until:
            found = core.cosine_scale(scope, now)
            expiry = core.next_expiry(scope, now)
            known = KeptScale(
                None if found is None else CosineScale(*found[:-1]),
                None if found is None else found[-1],
                since=now,
                until=sys.maxsize if expiry is None else expiry,
            )
            if len(kept) >= MAX_SCALES:
                kept.clear()
            kept[user] = known
        return known

    @property
    def core(self) -> MemoryIndex:
        """The core's index with all pending changes applied."""
        if self._pending:
            with self._lock:
                self._drain()
        return self._core

    def summary(self) -> Summary:
        """Return the summary of the core's index; it is read from the core once for each change."""
        summary = self._summary
        if summary is None or self._pending:
            with self._lock:
                self._drain()
                core, rows = self._core, len(self._core)
                needs_rebuild = core.docids - rows > max(rows, MIN_VACANT)
                summary = Summary(rows, core.unembedded(), needs_rebuild, core.has_speakers, {})
                self._summary = summary
        return summary

    def _replace(self, batch: RowBatch, loader: Loader | None) -> None:
        if loader is None:
            core, source = self._make_core(self._dim), self._new_source()
        else:
            core, source = loader.finish()
        self._put(core, source, batch)
        self._core, self.source = core, source
        self._pending, self._pending_rows, self._summary = [], 0, None
        self.seq = batch.seq

    def _defer(self, batch: RowBatch) -> bool:
        if batch.since is None or len(self._deferred) == MAX_DEFERRED:
            return False
        rows = sum(len(early.records) for early in self._deferred.values())
        if rows + len(batch.records) > MAX_DEFERRED_ROWS:
            return False
        self._deferred[batch.since] = batch
        return True

    def _append_deferred(self) -> None:
        while self._deferred:
            since = min(self._deferred)
            if self.seq is None or since > self.seq:
                return
            batch = self._deferred.pop(since)
            if since == self.seq:
                self._append(batch)

    def _append(self, batch: RowBatch) -> None:
        """Queue a batch until the next read; applying each at once would slow down writers."""
        self._pending.append(batch)
        self._pending_rows += len(batch.records)
        self.seq = batch.seq
        if self._pending_rows >= MAX_PENDING or len(self._pending) >= MAX_PENDING:
            with suppress(MemoryError):  # it is stored; the next read raises
                self._drain()

    def _drain(self) -> None:
        if self._pending:
            batch = self._pending[0] if len(self._pending) == 1 else _merged_batch(self._pending)
            self._summary = None
            self._put(self._core, self.source, batch)
        self._pending, self._pending_rows = [], 0

    def _put(self, core: MemoryIndex, source: SourceGuard | None, batch: RowBatch) -> None:
        if self._dim is None:  # callers may give vectors of their own
            batch = msgspec.structs.replace(batch, embedded=[])
        put(core, batch)
        if source is not None:
            source.apply(batch)

    def _new_source(self, beginning: InitialVectors | None = None) -> SourceGuard | None:
        """Return a candidate source, if there are vectors and a factory.

        Args:
            beginning: Vectors that it has, or will have soon; None for an empty source.
        """
        if self._dim is None or self._make_source is None:
            return None
        if beginning is not None and isinstance(self._make_source, FaissSources):
            return SourceGuard(self._make_source(self._dim, beginning))
        guard = SourceGuard(self._make_source(self._dim))
        for rows, vectors in () if beginning is None else beginning.parts():
            guard.add(rows, vectors)
        return guard


def _merged_batch(batches: Sequence[RowBatch]) -> RowBatch:
    """Return one batch equivalent to several, in which a row may appear and go several times.

    Vectors of a row stay while its content does, as in the core. A row that went and came again
    stays among those that went: the core removes them before it adds records.
    """
    removed: set[int] = set()
    records: dict[int, Record] = {}
    parts: dict[int, list[Float32Array]] = {}
    linked: set[int] = set()
    links: dict[int, list[Link]] = {}
    for batch in batches:
        for row in batch.removed:
            removed.add(row)
            records.pop(row, None)
            parts.pop(row, None)
            linked.discard(row)
            links.pop(row, None)
        for row in batch.linked:
            linked.add(row)
            links[row] = []
        for link in batch.links:
            links[link[0]].append(link)
        for record in batch.records:
            known = records.get(record[0])
            if known is not None and known[_CONTENT] != record[_CONTENT]:
                removed.add(record[0])
                parts.pop(record[0], None)
            records[record[0]] = record
        given: dict[int, list[Float32Array]] = {}
        if batch.vectors is not None:
            for row, vector in zip(batch.embedded, batch.vectors, strict=True):
                given.setdefault(row, []).append(vector)
        parts |= given
    vectors = [vector for of_row in parts.values() for vector in of_row]
    since, seq = batches[0].since, batches[-1].seq
    return RowBatch(
        since=since,
        seq=seq,
        records=list(records.values()),
        embedded=[row for row, of_row in parts.items() for _ in of_row],
        vectors=np.stack(vectors) if vectors else None,
        removed=sorted(removed),
        linked=sorted(linked),
        links=[link for of_row in links.values() for link in of_row],
    )
