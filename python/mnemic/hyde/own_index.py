"""An index of one scope's memories by another embedding model than the memory's own."""

from __future__ import annotations

import threading
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from mnemic._core import VectorMap
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError, StoreBusyError, StoreFullError
from mnemic.logs import logger
from mnemic.model.deadline import check_deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from mnemic.embed.base import AnyEmbedder
    from mnemic.index import RowSet
    from mnemic.model import Expression, MemoryEntry, Scope
    from mnemic.repository.repository import Repository

    Vectors: TypeAlias = NDArray[np.float32]

EMBEDDED_AT_ONCE: Final = 256
"""Memories between two looks at a cancellation, and that are stored by one write."""

MAX_FAILURES: Final = 3
"""Failures in a row of single texts, after which the embedder counts as broken."""

MAX_READ: Final = 2048
"""Up to so many changed rows are read from the store; the memory's index lists more of them."""

PART_BITS: Final = 5
"""A vector's id is its row with so many bits for its chunk: a text has at most 32 chunks."""

_NO_IDS: Final = np.empty(0, np.int64)
_TURN_SECONDS: Final = 0.05  # between two looks at a cancellation while another build runs

_log = logger(__name__)


class OwnIndexBuild(NamedTuple):
    """What a build did.

    Attributes:
        rows: Memories in the index afterwards.
        loaded: Memories whose stored vectors were read.
        embedded: Memories that were embedded.
        failed: Memories without a usable vector; the next build tries them again.
        is_cancelled: Whether it was cancelled, so that the index stayed as it was.
    """

    rows: int
    loaded: int = 0
    embedded: int = 0
    failed: int = 0
    is_cancelled: bool = False


class _CancelledError(Exception):
    """The build was cancelled."""


class OwnIndex:
    """Vectors of a scope's active memories by a model of their own, searched exactly.

    `build` runs in the caller's thread. It reads the vectors that the store keeps of this model,
    embeds the contents that lack one, and changes the index at one moment; searches see the index
    as it was until then. Later builds read what changed since. Builds run one after the other, and
    one that began before a finished one is left out.

    A long content has a vector for each chunk, and counts with its best. Zero vectors, and vectors
    of another dimension than the embedder's, are left out with one warning.

    Every search is limited to the rows that the memory's own index selects at that moment in the
    scope: active, not expired, matching the filters. What this index holds beside them is not seen.

    Args:
        repository: The memories.
        scope: Only its memories are indexed and found.
        embedder: Embeds contents; in any of the forms of `as_embedder`.
        keeps_vectors: Whether vectors are stored beside the entries, except those of sensitive
            ones; a store that is opened read-only keeps none.

    Attributes:
        generation: Number of the last build that changed the index; 0 before the first.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        embedder: AnyEmbedder | ValidatedEmbedder,
        *,
        keeps_vectors: bool = True,
    ) -> None:
        self._embedder: ValidatedEmbedder = _checked(embedder)
        self._companions = repository.companions
        self._scope = scope
        self._keeps_vectors = keeps_vectors and self._companions.can_write
        self._building = threading.Lock()
        self._tickets = count(1)
        self.generation = 0
        self._map: VectorMap | None = None
        self._long: dict[int, int] = {}
        self._seq: int | None = None
        self._rows: set[int] = set()
        self._lacking: set[int] = set()
        self._contents = _Contents()
        self._has_warned = False

    def __len__(self) -> int:
        """Return the number of indexed memories."""
        return len(self._rows)

    def __bool__(self) -> bool:
        """Return True: an index without memories is one."""
        return True

    @property
    def model(self) -> str:
        """Name of the embedding model."""
        return self._embedder.model

    @property
    def dimensions(self) -> int | None:
        """Length of each vector; None before the first."""
        return None if self._map is None else self._map.dim

    @property
    def is_outdated(self) -> bool:
        """Whether the embedder's vectors have another length, so that the index finds nothing.

        The next build makes the index anew.
        """
        known = self._embedder.dimensions
        return None not in (known, self.dimensions) and known != self.dimensions

    def build(self, cancelled: Callable[[], bool] = bool) -> OwnIndexBuild:
        """Bring the index up to date with the store.

        Args:
            cancelled: Returns whether the build shall end; called from time to time. Vectors that
                are stored by then serve the next build.

        Raises:
            EmbeddingError: If the embedder fails, and the index is left without any memory.
            StoreError: If the store cannot be read.
        """
        ticket = next(self._tickets)
        while not self._building.acquire(timeout=_TURN_SECONDS):
            if cancelled():
                return OwnIndexBuild(len(self), is_cancelled=True)
        try:
            if ticket < self.generation:  # a later call has seen all that this one would
                return OwnIndexBuild(len(self))
            return self._build(ticket, cancelled)
        except _CancelledError:
            return OwnIndexBuild(len(self), is_cancelled=True)
        finally:
            self._building.release()

    def search(
        self,
        vectors: ArrayLike,
        top_k: int = 10,
        *,
        min_similarity: float = -1.0,
        filters: Expression | None = None,
        deadline: float | None = None,
    ) -> list[tuple[int, float]]:
        """Return the memories that are most similar to the nearest of some vectors.

        Args:
            vectors: Shape (d,) or (m, d); zero vectors are ignored.
            top_k: Maximum number of memories.
            min_similarity: Smallest cosine, inclusive.
            filters: Only matching memories.
            deadline: In seconds of `time.monotonic()`; None is no limit.

        Returns:
            Row and cosine, the largest cosine first, then the smallest row; each row once.
            Nothing where the vectors have another dimension than the index; one warning is logged.

        Raises:
            DeadlineExceededError: If the deadline passes.
            NonFiniteVectorError: If a vector holds NaN or infinity.
        """
        held, queries = self._map, np.atleast_2d(np.asarray(vectors, np.float32))
        if held is None or not len(held) or top_k < 1 or not queries.size:
            return []
        if queries.shape[-1] != held.dim:
            self._warn(f"the queries have {queries.shape[-1]} dimensions, the index {held.dim}")
            return []
        queries = queries[np.any(queries, axis=1)]
        check_deadline(deadline)
        self._companions.refresh(deadline)
        selected = self._companions.selected(self._scope, filters, deadline)
        check_deadline(deadline)
        if selected is None or not len(queries):
            return []
        allow = None if selected.rows is None else self._ids_of(selected.rows)
        floor = None if min_similarity <= -1 else min_similarity  # below it by rounding alone
        wanted = top_k
        while True:
            ids, scores = held.search(
                queries, k=wanted, allow=allow, min_score=floor, combine="max"
            )
            best = self._best(ids, scores, is_checked=allow is not None)
            if len(best) >= top_k or len(ids) < wanted:
                return best[:top_k]
            wanted *= 2  # chunks of one memory took places of others

    def _best(
        self, ids: NDArray[np.int64], scores: NDArray[np.float64], *, is_checked: bool
    ) -> list[tuple[int, float]]:
        """Return rows with their best chunk; without a selection only those that are known."""
        best: dict[int, float] = {}
        for row, score in zip((ids >> PART_BITS).tolist(), scores.tolist(), strict=True):
            best.setdefault(row, score)
        found = list(best.items())
        if not is_checked:
            is_known = self._companions.known(list(best))
            found = [pair for pair, known in zip(found, is_known, strict=True) if known]
        return sorted(found, key=_by_score)

    def _ids_of(self, selected: RowSet) -> NDArray[np.int64]:
        rows, long = selected.to_rows(), dict(self._long)
        with_chunks = np.fromiter(long, np.int64, len(long))
        with_chunks = with_chunks[selected.contains(with_chunks)]
        further = [_ids(row, long[row])[1:] for row in with_chunks.tolist()]
        return np.concatenate([rows << PART_BITS, *further])

    def _build(self, ticket: int, cancelled: Callable[[], bool]) -> OwnIndexBuild:
        if self.is_outdated:
            self._seq = None
        changed = self._companions.changed_since(self._seq)
        if changed.rows == [] and not self._lacking:
            self.generation = ticket
            return OwnIndexBuild(len(self))
        update = _Update(self._embedder.dimensions)
        is_whole = changed.rows is None
        touched = set(changed.rows or ()) | self._lacking
        present = self._present(None if is_whole else touched)
        self._load(update, None if is_whole else sorted(present), present)
        error = self._embed(update, sorted(present - update.vectors.keys()), cancelled)
        has_learned = self._embedder.dimensions not in {None, update.dimensions}
        if has_learned or (self.is_outdated and not is_whole):
            self._seq = None  # the first call of the embedder showed another length
            return self._build(ticket, cancelled)
        gone = (self._rows if is_whole else touched & self._rows) - update.vectors.keys()
        self._swap(update, gone, is_whole=is_whole)
        self._lacking, self._seq = update.lacking - update.vectors.keys(), changed.seq
        self.generation = ticket
        if error is not None and not self._rows:
            raise error
        return OwnIndexBuild(len(self), update.loaded, update.embedded, len(self._lacking))

    def _present(self, rows: set[int] | None) -> set[int]:
        """Return the active rows of the scope, among some or all."""
        if rows is not None and len(rows) <= MAX_READ:
            return set(self._companions.entries(self._scope, sorted(rows)))
        present = set(self._companions.rows(self._scope).tolist())
        return present if rows is None else present & rows

    def _load(self, update: _Update, rows: list[int] | None, present: set[int]) -> None:
        """Read stored vectors; none is stored that is zero."""
        stored = self._companions.stored(self.model, rows, update.dimensions)
        update.vectors = {row: vectors for row, vectors in stored.items() if row in present}
        update.loaded = len(update.vectors)
        if update.vectors:
            update.dimensions = next(iter(update.vectors.values())).shape[1]

    def _embed(
        self, update: _Update, rows: list[int], cancelled: Callable[[], bool]
    ) -> EmbeddingError | None:
        """Embed the contents of rows; return the error of a broken embedder."""
        failures, size = 0, EMBEDDED_AT_ONCE
        while rows:
            if cancelled():
                raise _CancelledError
            some, rows = rows[:size], rows[size:]
            try:
                self._embed_some(update, self._companions.entries(self._scope, some))
                failures, size = 0, min(EMBEDDED_AT_ONCE, 4 * size)
            except EmbeddingError as error:
                if len(some) > 1:
                    rows, size = some + rows, max(1, len(some) // 4)
                    continue
                failures += 1
                update.lacking.update(some)
                _log.debug("A memory has no vector of %r: %s", self.model, error.kind)
                if failures == MAX_FAILURES:
                    update.lacking.update(rows)
                    return error
        return None

    def _embed_some(self, update: _Update, entries: Mapping[int, MemoryEntry]) -> None:
        """Give entries vectors: those of an equal content, or new ones, which are stored."""
        fresh: dict[int, MemoryEntry] = {}
        for row, entry in entries.items():
            known = self._known_vectors(update, entry.content)
            if known is None and entry.content:
                fresh[row] = entry
            elif known is not None:
                self._take(update, row, known, entry.content)
        found = self._embedder.embed_contents([entry.content for entry in fresh.values()])
        for (row, entry), vectors in zip(fresh.items(), found, strict=True):
            self._take(update, row, vectors, entry.content)
        usable = {row: entry for row, entry in fresh.items() if row in update.vectors}
        update.embedded += len(usable)
        self._keep(usable, update)

    def _known_vectors(self, update: _Update, content: str) -> Vectors | None:
        hashed = _hash(content)
        if (row := update.contents.row_of(hashed)) is not None:
            return update.vectors[row]
        row = self._contents.row_of(hashed)
        if row is None or self._map is None or self.is_outdated:
            return None
        return self._map.get(_ids(row, self._long.get(row, 1)))

    def _take(
        self, update: _Update, row: int, vectors: Vectors, content: str | None = None
    ) -> None:
        """Take the vectors of a row; unusable ones are left out."""
        update.dimensions = update.dimensions or vectors.shape[1]
        if vectors.shape[1] != update.dimensions or not vectors.any(axis=1).all():
            self._warn("a vector is zero, or of another length than others, and is left out")
            update.lacking.add(row)
            return
        update.vectors[row] = vectors
        if content is not None:
            update.contents.note(row, _hash(content))

    def _keep(self, entries: Mapping[int, MemoryEntry], update: _Update) -> None:
        """Store new vectors; where that fails the index has them all the same."""
        if not self._keeps_vectors or not entries:
            return
        try:
            self._companions.store(self.model, entries, update.vectors)
        except (StoreBusyError, StoreFullError) as error:
            _log.warning("Vectors of %r cannot be stored: %s", self.model, str(error))

    def _swap(self, update: _Update, gone: set[int], *, is_whole: bool) -> None:
        """Change the index; each row at one moment, and a whole build all at once."""
        counts = {row: len(vectors) for row, vectors in update.vectors.items()}
        rows = set(counts) if is_whole else (self._rows - gone) | set(counts)
        long, before = {row: n for row, n in counts.items() if n > 1}, self._long
        if not is_whole:
            long |= {row: n for row, n in before.items() if row in rows and row not in counts}
        held = self._map
        if held is None or held.dim != (update.dimensions or held.dim):
            held = None if update.dimensions is None else VectorMap(update.dimensions)
        # A search that begins now may meet either state.
        self._long = {row: max(long.get(row, 1), before.get(row, 1)) for row in long | before}
        if held is not None and is_whole:
            held.replace(_all_ids(counts), _joined(update.vectors.values(), held.dim))
        elif held is not None:
            replaced = (counts.keys() & self._rows) | gone
            chunks = {row: before.get(row, 1) for row in replaced}
            self._change(held, update.vectors, chunks, gone)
        if held is not None:
            held.flush()  # here, and not in the background of the first searches
        self._map, self._long, self._rows = held, long, rows
        self._contents.follow(update.vectors, update.contents, rows)

    @staticmethod
    def _change(
        held: VectorMap, vectors: Mapping[int, Vectors], before: Mapping[int, int], gone: set[int]
    ) -> None:
        """Write changed rows, then remove surplus ids.

        A chunk that is no more gets the vector of the first one before it is removed, so that no
        search meets an old chunk beside new ones.

        Args:
            held: The map.
            vectors: The vectors of changed rows.
            before: The numbers of chunks of those rows that the map has.
            gone: Rows to remove.
        """
        surplus = {
            row: _ids(row, before[row])[len(new) :] for row, new in vectors.items() if row in before
        }
        over = [np.repeat(vectors[row][:1], len(ids), axis=0) for row, ids in surplus.items()]
        old = np.concatenate([_NO_IDS, *surplus.values()])
        ids = _all_ids({row: len(new) for row, new in vectors.items()})
        held.upsert(np.concatenate([ids, old]), _joined([*vectors.values(), *over], held.dim))
        held.remove(np.concatenate([old, _all_ids({row: before[row] for row in gone})]))

    def _warn(self, what: str) -> None:
        level_of = _log.debug if self._has_warned else _log.warning
        self._has_warned = True
        level_of("The index of the model %r: %s", self.model, what)


class _Update:
    """What a build has read and embedded so far.

    Args:
        dimensions: Length of each vector; None if it is not known yet.

    Attributes:
        vectors: Shape (chunks, dimensions), by row.
        contents: The contents of those that were embedded.
        lacking: Rows without a usable vector.
        dimensions: Length of each vector; None before the first.
        loaded: Number of rows whose vectors were stored.
        embedded: Number of rows that were embedded.
    """

    def __init__(self, dimensions: int | None) -> None:
        self.vectors: dict[int, Vectors] = {}
        self.contents = _Contents()
        self.lacking: set[int] = set()
        self.dimensions = dimensions
        self.loaded = 0
        self.embedded = 0


class _Contents:
    """The rows of contents that were embedded in this process, by hash."""

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._hashes: dict[int, bytes] = {}

    def row_of(self, hashed: bytes) -> int | None:
        """Return a row whose vectors are those of a content."""
        return self._rows.get(hashed)

    def note(self, row: int, hashed: bytes) -> None:
        """Note the content of a row's vectors."""
        self._hashes[row] = hashed
        self._rows[hashed] = row

    def follow(self, changed: Iterable[int], noted: _Contents, rows: set[int]) -> None:
        """Drop changed rows and those that are not indexed, then take in what was noted."""
        for row in (self._hashes.keys() - rows) | (self._hashes.keys() & set(changed)):
            known = self._hashes.pop(row)
            if self._rows.get(known) == row:
                del self._rows[known]
        for row, hashed in noted._hashes.items():
            self.note(row, hashed)


def _hash(content: str) -> bytes:
    return blake2b(content.encode(), digest_size=16).digest()


def _ids(row: int, number: int) -> NDArray[np.int64]:
    """Return the ids of a row's chunks."""
    return (row << PART_BITS) + np.arange(number, dtype=np.int64)


def _all_ids(counts: Mapping[int, int]) -> NDArray[np.int64]:
    """Return the ids of the chunks of rows, each given with their number."""
    numbers = np.fromiter(counts.values(), np.int64, len(counts))
    first = np.cumsum(numbers) - numbers
    chunks = np.arange(numbers.sum()) - np.repeat(first, numbers)
    rows = np.repeat(np.fromiter(counts, np.int64, len(counts)), numbers)
    ids: NDArray[np.int64] = (rows << PART_BITS) + chunks
    return ids


def _joined(vectors: Iterable[Vectors], dimensions: int) -> Vectors:
    return np.concatenate([np.empty((0, dimensions), np.float32), *vectors])


def _by_score(found: tuple[int, float]) -> tuple[float, int]:
    return -found[1], found[0]


def _checked(embedder: AnyEmbedder | ValidatedEmbedder) -> ValidatedEmbedder:
    return embedder if isinstance(embedder, ValidatedEmbedder) else ValidatedEmbedder(embedder)
