"""FAISS as a candidate source: an index of vectors for memories beyond exact search."""

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mnemic.index.base import InitialVectors, RowSet, SourceState, SourceWriter
from mnemic.index.choice import FaissIndex, FaissOptions, faiss_library
from mnemic.index.saved_index import SavedIndex, SavedIndexError, read_index, write_index
from mnemic.index.shared_lock import SharedLock
from mnemic.reporting.logs import logger
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import Lock

_log = logger(__name__)

MAX_WAITING: Final = 4096
"""Vectors that may wait for the index: a search compares them all. With more it proposes nothing,
and every memory is ranked."""

BULK: Final = 256
"""Vectors that are added at once while nothing is proposed anyway; closing waits for them. More are
added no faster."""

INCREMENT: Final = 16
"""Vectors that are added at once otherwise; searches wait some milliseconds for them."""

MIN_VACANT: Final = 1024
VACANT_SHARE: Final = 0.2
"""An index is rebuilt once so many positions, and this share of them, are vacant."""

MIN_ANEW_SECONDS: Final = 600.0
ANEW_SHARE: Final = 10.0
"""An index is rebuilt for a file if so many times the seconds that making it took have passed
since, and at least so many; small changes do not count as making it."""

_VACANT: Final = -1
_MAX_ROW: Final = 2**63 - 1


class _Change(NamedTuple):
    """Rows whose vectors are replaced; without new ones they are removed.

    Attributes:
        replaced: The rows, ascending.
        rows: The row of each new vector.
        vectors: The new vectors, of length 1, or null.
    """

    replaced: NDArray[np.int64]
    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]


class _Made(NamedTuple):
    """When the index was made, and the seconds that making it took."""

    at: float
    seconds: float


class FaissSource:
    """Proposes the rows that an index of FAISS takes for the nearest.

    A thread adds vectors to the index; until then they wait, and a search compares them itself. A
    new index proposes nothing before it has nearly all vectors.

    Args:
        dim: Dimension of the vectors.
        options: The options of the index.
        beginning: The vectors that it has before any change; None for none. It proposes nothing
            until it has them.
    """

    def __init__(
        self,
        dim: int,
        options: FaissOptions | None = None,
        beginning: InitialVectors | None = None,
    ) -> None:
        self._index = FaissIndex(FaissOptions() if options is None else options, dim)
        self._positions = _Positions()
        self._waiting: deque[_Change] = deque()
        self._number_waiting = 0
        self._beginning = beginning
        self._is_closed = False
        self._is_given_up = False
        self._made = _Made(time.monotonic(), 0.0)
        self._reset()
        register(self)
        if beginning is not None:
            with self._queue_lock:
                self._start_thread()

    def _reset(self) -> None:
        """Begin without a thread, and with locks that are free."""
        self._lock = SharedLock()  # of the index and its positions
        self._queue_lock = Lock()
        self._step_lock = Lock()  # of whatever changes the index, or reads it for long
        self._thread: threading.Thread | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every vector is compared."""
        return self._index.options.kind == "flat"

    @property
    def nbytes(self) -> int:
        """Bytes of the index, estimated; see `CandidateSource`."""
        waiting = self._number_waiting * self._index.dim * 4
        return self._index.nbytes(self._positions.size) + self._positions.nbytes + waiting

    @property
    def waiting(self) -> int:
        """Number of vectors that are not in the index yet."""
        beginning = self._beginning
        return self._number_waiting + (0 if beginning is None else beginning.number)

    @property
    def state(self) -> SourceState:
        """What the source has done so far; see `SourceState`."""
        with self._queue_lock:  # of one moment: nothing waits once nothing is at work
            positions = self._positions
            return SourceState(
                self._index.options.kind,
                indexed=positions.size - positions.vacant,
                waiting=self.waiting,
                removed=positions.vacant,
                proposes=not self._proposes_nothing,
                is_at_work=self._thread is not None and self._has_work,
            )

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors of rows; see `CandidateSource`."""
        self._hand_in(_Change(np.unique(rows), rows.copy(), _unit(vectors)))

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove rows; see `CandidateSource`."""
        nothing = np.empty((0, self._index.dim), np.float32)
        self._hand_in(_Change(np.unique(rows), np.empty(0, np.int64), nothing))

    def _hand_in(self, change: _Change) -> None:
        with self._queue_lock:
            if self._is_closed:  # nothing would ever take it from the queue
                return
            self._waiting.append(change)
            self._number_waiting += len(change.rows)
            if self._thread is None:
                self._start_thread()

    def _start_thread(self) -> None:
        thread = thread_of("faiss", _work, weakref.ref(self))
        try:
            self._index.require_memory()  # `start` waits forever for one that finds no memory
            start_thread(thread)
        except (MemoryError, RuntimeError):  # the next change tries again
            _log.warning("No thread can be started for an index of FAISS")
        else:
            self._thread = thread

    def settle(self) -> None:
        """Wait until the index has all vectors that were added."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def close(self) -> None:
        """Add no further vectors to the index."""
        self._is_closed = True
        self.settle()

    def retire(self) -> None:
        """End all work, that of other threads' searches included, and propose nothing more."""
        self._is_given_up = True
        self.close()
        with self._step_lock, self._lock.writing():
            pass

    def forget(self) -> None:
        """Propose nothing in a forked process: threads of its parent may have been at work."""
        self._is_closed = self._is_given_up = True
        self._reset()
        self._index.disown()
        self._positions.disown()

    def hold(self) -> Self | None:
        """Let no change come into the index, until it is released.

        Returns:
            None while changes wait or are brought in, without vectors, and once it is given up.
        """
        if not self._step_lock.acquire(blocking=False):
            return None
        if self._waiting or self._proposes_nothing or not self._index.size:
            self._step_lock.release()
            return None
        return self

    def release(self) -> None:
        """Let changes come into the index again; see `hold`."""
        self._step_lock.release()

    def writer(
        self,
        without: NDArray[np.int64],
        *,
        rebuild: bool,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> SourceWriter | None:
        """Return what writes the held index to a file, or one rebuilt; see `HeldSource`."""
        rows, kept = self._positions.rows, self._positions.occupied()
        kept = kept[~np.isin(rows[kept], without)]
        if len(kept) == self._index.size:
            return partial(self._write, self._index, rows.copy())
        if not rebuild or not len(kept):
            return None
        started = time.monotonic()
        with self._index.own_threads():
            made = self._made_of(kept, lambda: self._is_given_up or is_stopped())
        if made is None:
            return None
        now = time.monotonic()
        self._made = _Made(now, now - started)
        # A copy: the positions own what their rows are a view of.
        return partial(self._write, made[0], made[1].rows.copy())

    def _write(self, index: FaissIndex, rows: NDArray[np.int64], path: str, label: bytes) -> bool:
        saved, stopped = SavedIndex(index, rows, label), partial(getattr, self, "_is_given_up")
        return write_index(path, saved, index.options, index.dim, is_stopped=stopped)

    @property
    def may_rebuild(self) -> bool:
        """Whether making the index would take a small part of the time since it was made last."""
        made = self._made
        return time.monotonic() - made.at >= max(MIN_ANEW_SECONDS, ANEW_SHARE * made.seconds)

    def nearest(
        self, vectors: NDArray[np.float32], k: int, selected: RowSet | None
    ) -> NDArray[np.int64]:
        """Return the nearest rows; see `CandidateSource`."""
        queries = _unit(vectors)
        if self._proposes_nothing:  # without the lock, for which a search would wait long
            return np.empty(0, np.int64)
        with self._lock.reading():
            with self._queue_lock:
                waiting = list(self._waiting)
            if self._proposes_nothing:
                return np.empty(0, np.int64)
            changed = _rows_of(waiting)
            indexed = self._search(queries, k + len(changed), selected)
        rows, scores = _without(indexed, changed)
        if waiting:
            new_rows, new_scores = _compared(waiting, queries, selected)
            rows, scores = np.concatenate([rows, new_rows]), np.concatenate([scores, new_scores])
        return _best_rows(rows, scores)[:k]

    @property
    def _proposes_nothing(self) -> bool:
        is_behind = self._number_waiting > MAX_WAITING or self._beginning is not None
        return is_behind or self._is_given_up

    def _search(
        self, queries: NDArray[np.float32], enough: int, selected: RowSet | None
    ) -> "_ScoredRows":
        """Return rows of the index, enough if it has them, each with its inner products."""
        positions = self._positions
        if not positions.size:
            return _NOTHING
        chosen = positions.selector(selected)
        wanted = int(enough * positions.vectors_per_row)
        while True:
            wanted = min(max(wanted, 1), positions.size)
            scores, found = self._index.search(queries, wanted, chosen.selector, chosen.share)
            is_found = found >= 0
            rows = positions.rows[found[is_found]]
            is_all = wanted == positions.size or not is_found.all()
            if is_all or len(np.unique(rows)) >= enough:
                return _ScoredRows(rows, scores[is_found])
            wanted *= 2  # several chunks of a row were among them

    def advance(self) -> bool:
        """Bring the next changes into the index, in the source's own thread.

        Returns:
            Whether there were any.
        """
        with self._queue_lock:
            if self._is_closed or not self._has_work:
                self._thread = None
                return False
        self._index.use_own_threads()
        if self._beginning is not None:
            self._begin_with(self._beginning)
            return True
        with self._step_lock:
            started = time.monotonic()
            self._apply_next()
            if self._positions.is_mostly_vacant:
                kept = self._positions.occupied()
                made = self._made_of(kept, lambda: self._is_closed)
                if made is not None:
                    with self._lock.writing():
                        self._index, self._positions = made
            taken = self._made.seconds + time.monotonic() - started
            self._made = self._made._replace(seconds=taken)
        return True

    @property
    def _has_work(self) -> bool:
        return self._beginning is not None or bool(self._waiting)

    def _begin_with(self, beginning: InitialVectors) -> None:
        """Take over the index of a file; without one, its vectors wait before all changes."""
        saved = self._read(beginning)
        parts = [] if saved is not None else beginning.parts()
        changes: list[_Change] = []
        for rows, vectors in parts:
            if self._is_closed:
                return
            if len(rows):
                changes.append(_Change(np.unique(rows), rows, _unit(vectors)))
        if saved is not None:
            with self._step_lock, self._lock.writing():
                self._index, self._positions = saved.held, _Positions.of(saved.rows)
        with self._queue_lock:
            self._waiting.extendleft(reversed(changes))
            self._number_waiting += sum(len(change.rows) for change in changes)
            self._beginning = None

    def _read(self, beginning: InitialVectors) -> SavedIndex | None:
        if beginning.path is None:
            return None
        try:
            saved = read_index(
                beginning.path,
                self._index.options,
                self._index.dim,
                is_stopped=lambda: self._is_closed,
            )
        except SavedIndexError as error:
            if not self._is_closed:
                beginning.drop(str(error))
            return None
        if saved.label != beginning.label:
            beginning.drop("it was made from another state of the index")
            return None
        return saved

    def _apply_next(self) -> None:
        """Bring the first changes that wait into the index."""
        changes = self._first_changes(BULK if self._number_waiting > MAX_WAITING else INCREMENT)
        change = _Change(_rows_of(changes), *_current(changes))
        with self._lock.writing():
            try:
                self._positions.vacate(change.replaced)
                if len(change.rows):
                    self._index.add(change.vectors)
                    self._positions.append(change.rows)
            except BaseException:  # before the next search, which would read beyond the positions
                self.give_up()
                raise
            with self._queue_lock:
                for change in changes:
                    self._waiting.popleft()
                    self._number_waiting -= len(change.rows)

    def _first_changes(self, size: int) -> list[_Change]:
        """Return the first changes that wait, of about so many vectors together, at least one."""
        with self._queue_lock:
            self._waiting.extendleft(reversed(_parts(self._waiting.popleft(), size)))
            vectors = np.cumsum([len(change.rows) for change in self._waiting])
            number = max(1, int(np.searchsorted(vectors, size, side="right")))
            return list(islice(self._waiting, number))

    def give_up(self) -> None:
        """Propose nothing from now on."""
        self._is_given_up = True
        with self._queue_lock:
            self._is_closed = True
            self._beginning = None
            self._waiting.clear()
            self._number_waiting = 0

    def _made_of(
        self, kept: NDArray[np.int64], is_stopped: Callable[[], bool]
    ) -> "tuple[FaissIndex, _Positions] | None":
        """Return a new index of the vectors at some positions; None if it is stopped."""
        old, positions = self._index, self._positions
        fresh, numbered = FaissIndex(self._index.options, self._index.dim), _Positions()
        for first in range(0, len(kept), BULK):
            if is_stopped():
                return None
            part = kept[first : first + BULK]
            fresh.add(old.vectors(part))
            numbered.append(positions.rows[part])
        return fresh, numbered


def _work(reference: "weakref.ref[FaissSource]") -> None:
    """Bring changes into the index of a source, as long as it lives and has some."""
    goes_on = True
    while goes_on:
        source = reference()
        if source is None:
            return
        goes_on = _stepped(source)
        del source


def _stepped(source: FaissSource) -> bool:
    try:
        return source.advance()
    except Exception as error:  # noqa: BLE001 - the exact ranking answers
        _log.warning("An index of FAISS is given up: %s", type(error).__name__)
        source.give_up()
        return False


class _ScoredRows(NamedTuple):
    """Rows, some repeated, each with an inner product."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


_NOTHING: Final = _ScoredRows(np.empty(0, np.int64), np.empty(0, np.float32))


class _Selector(NamedTuple):
    """FAISS's selector of positions, the share that it selects, and what it refers to."""

    selector: Any
    share: float
    kept: object


class _Positions:
    """The rows of the positions of an index; a row has a position for each of its vectors."""

    def __init__(self) -> None:
        self._ids = faiss_library().Int64Vector()
        self._rows = np.empty(0, np.int64)  # a view of these, which selectors of FAISS read
        self._highest = _VACANT
        self.size = 0
        self.vacant = 0
        self._distinct = 0

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> "_Positions":
        """Return positions with these rows, none of them vacant."""
        made = cls()
        if len(rows):
            made.append(rows)
        return made

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each position; -1 for vacant ones."""
        return self._rows[: self.size]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self._rows.nbytes

    def disown(self) -> None:
        """Free nothing, ever; see `FaissIndex.disown`."""
        self._ids.this.own(False)  # noqa: FBT003 - an argument of SWIG

    @property
    def vectors_per_row(self) -> float:
        """Mean number of vectors of a row, at least 1."""
        return max(1.0, (self.size - self.vacant) / max(1, self._distinct))

    @property
    def is_mostly_vacant(self) -> bool:
        """Whether the index should be rebuilt."""
        return self.vacant > MIN_VACANT and self.vacant > VACANT_SHARE * self.size

    def append(self, rows: NDArray[np.int64]) -> None:
        """Add the rows of the next positions; those of a row that has some stand together."""
        end = self.size + len(rows)
        if end > len(self._rows):
            self._grow(max(end, 2 * len(self._rows), 1024))
        self._rows[self.size : end] = rows
        self._distinct += int(np.count_nonzero(rows[1:] != rows[:-1])) + 1
        self._highest = max(self._highest, int(rows.max()))
        self.size = end

    def _grow(self, capacity: int) -> None:
        faiss, grown = faiss_library(), faiss_library().Int64Vector()
        grown.resize(capacity)
        view = faiss.rev_swig_ptr(grown.data(), capacity)
        view[: self.size] = self.rows
        self._rows, self._ids = view, grown

    def vacate(self, rows: NDArray[np.int64]) -> None:
        """Make the positions of rows vacant."""
        known = rows[rows <= self._highest]  # new memories have higher numbers than all others
        if not len(known):
            return
        found = np.flatnonzero(np.isin(self.rows, known))
        if len(found):
            self._distinct -= len(np.unique(self._rows[found]))
            self._rows[found] = _VACANT
            self.vacant += len(found)

    def occupied(self) -> NDArray[np.int64]:
        """Return the positions that are not vacant."""
        return np.flatnonzero(self.rows != _VACANT)

    def selector(self, selected: RowSet | None) -> _Selector:
        """Return what selects the positions of rows; without vacant ones None selects all."""
        if selected is None and not self.vacant:
            return _Selector(None, 1.0, None)
        faiss, ids = faiss_library(), self._ids
        kept: NDArray[Any] | None = None
        if selected is None:
            inner, number = faiss.IDSelectorRange(0, _MAX_ROW), self._distinct
        elif selected.bitmap is None:
            kept = selected.to_rows()
            inner, number = faiss.IDSelectorBatch(kept), len(kept)
        else:
            kept = np.ascontiguousarray(selected.bitmap)
            inner, number = faiss.IDSelectorBitmap(kept), int(_SET_BITS[kept].sum())
        share = min(1.0, number / max(1, self._distinct))
        return _Selector(faiss.IDSelectorTranslated(ids, inner), share, (inner, kept, ids))


_SET_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1)
"""Number of bits that are set in each byte."""


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of length 1, or null."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    return np.ascontiguousarray(wide / lengths, dtype=np.float32)


def _rows_of(waiting: list[_Change]) -> NDArray[np.int64]:
    """Return the rows that changes replace, ascending."""
    if not waiting:
        return np.empty(0, np.int64)
    return np.unique(np.concatenate([change.replaced for change in waiting]))


def _without(found: _ScoredRows, changed: NDArray[np.int64]) -> _ScoredRows:
    """Return found rows but for those that have changed since."""
    if not len(changed):
        return found
    is_kept = ~np.isin(found.rows, changed)
    return _ScoredRows(found.rows[is_kept], found.scores[is_kept])


def _current(waiting: list[_Change]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the rows and vectors of changes that no later one of them replaces."""
    rows: list[NDArray[np.int64]] = []
    vectors: list[NDArray[np.float32]] = []
    later = np.empty(0, np.int64)
    for change in reversed(waiting):
        is_current = ~np.isin(change.rows, later)
        rows.append(change.rows[is_current])
        vectors.append(change.vectors[is_current])
        later = np.union1d(later, change.replaced)
    return np.concatenate(rows), np.concatenate(vectors)


def _compared(
    waiting: list[_Change], queries: NDArray[np.float32], selected: RowSet | None
) -> _ScoredRows:
    """Return the rows with waiting vectors, each with its inner product."""
    rows, vectors = _current(waiting)
    if selected is not None:
        is_selected = selected.contains(rows)
        rows, vectors = rows[is_selected], vectors[is_selected]
    scores = (vectors @ queries.T).max(axis=1) if len(vectors) else np.empty(0, np.float32)
    return _ScoredRows(rows, scores)


def _best_rows(rows: NDArray[np.int64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return each row once, by the best of its scores, best first."""
    ordered = rows[np.argsort(-scores, kind="stable")]
    _, first = np.unique(ordered, return_index=True)
    return ordered[np.sort(first)]


def _parts(change: _Change, size: int) -> list[_Change]:
    """Return a change in parts of at least so many vectors; those of a row stay together."""
    begins = np.flatnonzero(np.diff(change.rows, prepend=_VACANT))  # of each row's vectors
    cuts, first = [0], 0
    while (at := int(np.searchsorted(begins, first + size))) < len(begins):
        first = int(begins[at])
        cuts.append(first)
    ends = [*cuts[1:], len(change.rows)]
    if len(cuts) == 1:
        return [change]
    return [_part(change, begin, end) for begin, end in zip(cuts, ends, strict=True)]


def _part(change: _Change, first: int, end: int) -> _Change:
    rows = change.rows[first:end]
    return _Change(np.unique(rows), rows, change.vectors[first:end])


# Sources end before the interpreter does, and with a fork. FAISS asks the interpreter now and then
# whether to go on. A thread that asks while the interpreter is finalized is ended in the midst of a
# parallel region, and C++ then aborts the process.

_SOURCES: Final[dict[int, weakref.ref[FaissSource]]] = {}
"""By identity; a list of a dict's values is made in one step, that of a WeakSet is not."""


def register(source: FaissSource) -> None:
    """Have a source end its work before the interpreter does, and let go of it after a fork."""
    number = id(source)
    _SOURCES[number] = weakref.ref(source, lambda dead: _unregister(number, dead))


def _unregister(number: int, dead: weakref.ref[FaissSource]) -> None:
    if _SOURCES.get(number) is dead:  # the next object may have the same identity
        del _SOURCES[number]


def _open_sources() -> list[FaissSource]:
    found = [reference() for reference in list(_SOURCES.values())]
    return [source for source in found if source is not None]


def _retire_all() -> None:
    for source in _open_sources():
        source.retire()


def _forget_all() -> None:
    for source in _open_sources():
        source.forget()


atexit.register(_retire_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
