"""What the parts of one agent's index share: its rows, what they are made for, and accesses."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from mnemic.errors import EmbeddingModelMismatchError, StoreError
from mnemic.index import NativeIndex, SourceChoice
from mnemic.model.rows import RowBatch, State
from mnemic.protocols import Clock, system_clock
from mnemic.reporting.progress import Progress
from mnemic.repository.index_pool import PooledIndexes
from mnemic.repository.index_snapshots import IndexKind, IndexSnapshots
from mnemic.repository.missing_vectors import MissingVectors
from mnemic.repository.vector_model import VectorModel
from mnemic.store import LogPosition, Store
from mnemic.store.operations import AccessesSince, RowsSince
from mnemic.store.values import BatchSink, Model
from mnemic.threads.background import Background
from mnemic.threads.locks import InnerLock, Lock


class IndexSettings(NamedTuple):
    """Settings of an index.

    Attributes:
        language: The language of the entries, "auto" or None; see `Options`.
        can_write: Whether new vectors may be stored.
        pool: Bounds the bytes of loaded indexes; None for no bound.
        keeps_snapshots: Whether snapshots of an index of active memories are loaded and saved.
        choose_source: Chooses the index's candidate source; None for none.
        progress: Gets full loads that a call waits for.
        clock: Gives the time.
        unloaded: Called when the pool has dropped the index; None for nothing to call.
        is_lazy: Whether even an index with an embedder is loaded by its first use alone.
    """

    language: str | None = "auto"
    can_write: bool = True
    pool: PooledIndexes | None = None
    keeps_snapshots: bool = True
    choose_source: SourceChoice | None = None
    progress: Progress | None = None
    clock: Clock = system_clock
    unloaded: Callable[[], object] | None = None
    is_lazy: bool = False


class IndexModel(NamedTuple):
    """What an index is made for.

    Attributes:
        vectors: The model of the agent's vectors.
        known: Its name and dimension; None before the agent's first vector.
        missing: Embeds memories without a vector; None where they stay without.
        snapshots: Files of the index; None without.
    """

    vectors: VectorModel
    known: Model | None
    missing: MissingVectors | None = None
    snapshots: IndexSnapshots | None = None


class AgentIndex:
    """The index of one agent's memories of one state.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        settings: Its settings.
        state: State of the memories.
        vectors: The model of the agent's vectors.
        repair: Loads the rows again, after their snapshot was found damaged.

    Attributes:
        store: Where the memories are.
        agent_id: Whose memories.
        settings: Its settings.
        state: State of the memories.
        model: What it is made for.
        native: Its rows; none before they are loaded, and after they were dropped.
        lock: Held by whoever applies the store's changes, or replaces the rows.
        is_switching: Whether the agent's vectors may already be those of another model.
        is_stopped: Whether its memory is closed.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        settings: IndexSettings,
        state: State,
        vectors: VectorModel,
        *,
        repair: Callable[[], object],
    ) -> None:
        self.store = store
        self.agent_id = agent_id
        self.settings = settings
        self.state = state
        self.lock = Lock()
        self.is_switching = self.is_stopped = False
        self._starting = Lock()
        self._repair = repair
        self.model = IndexModel(vectors, vectors.known)
        self.native = self.new(self.model)

    @property
    def is_loaded(self) -> bool:
        """Whether the rows are in memory."""
        return self.native.seq is not None

    @property
    def lacks_model(self) -> bool:
        """Whether there are vectors of another model: the first, or after the last were deleted."""
        known = self.model.vectors.known
        return known is not None and known != self.model.known

    def new(self, model: IndexModel) -> NativeIndex:
        """Return an empty index for the vectors of a model."""
        choose, dim = self.settings.choose_source, None if model.known is None else model.known[1]
        make_source = None if dim is None or choose is None else choose()
        embedder = model.vectors.embedder
        coverage = None if embedder is None else embedder.coverage
        return NativeIndex(dim, make_source, coverage, self.settings.language, self._repair)

    def snapshots_of(self, vectors: VectorModel, known: Model | None) -> IndexSnapshots | None:
        """Return the snapshots of the index for a model, if any are kept."""
        if self.state is not State.ACTIVE or not self.settings.keeps_snapshots:
            return None
        embedder = vectors.embedder
        languages = None if embedder is None else embedder.languages
        kind = IndexKind(self.agent_id, known, self.settings.language, languages)
        return IndexSnapshots(self.store, kind, None if embedder is None else embedder.coverage)

    def unembedded(self) -> list[int]:
        """Return the rows without a vector, ascending."""
        return list(self.native.summary().unembedded)

    def is_current(self) -> bool:
        """Return whether it has all changes of the store that are known."""
        return self.store.known_position(self.agent_id).seq == self.native.seq

    def rows_since(
        self,
        seq: int | None,
        model: Model | None,
        sink: BatchSink | None = None,
        deadline: float | None = None,
        *,
        with_sensitive: bool = False,
    ) -> RowBatch:
        """Read changes of the store; without vectors if they are of another model by now."""
        wanted = RowsSince(self.agent_id, model, seq, sink, self.state, with_sensitive)
        try:
            return self.store.read(wanted, deadline=deadline)
        except EmbeddingModelMismatchError:
            if not self.is_switching:
                raise
        return self.store.read(replace(wanted, model=None), deadline=deadline)

    def begin(self, thread: Background, work: Callable[..., object], *values: object) -> None:
        """Begin work in the background, unless some goes on, or the memory is closed."""
        with self._starting:
            if not self.is_stopped:
                thread.begin(work, *values)

    def stop(self) -> None:
        """Begin nothing in the background from now on."""
        self.is_stopped = True
        with self._starting:
            pass  # whoever has begun a thread under this lock has started it


MAX_BUFFERED = 4096
"""Accesses from which on writing all to the store is faster than adding each to an index."""

Accesses: TypeAlias = tuple[int, int]
"""Number of accesses, and the last one, in microseconds since 1970 in UTC."""


class IndexAccesses:
    """Accesses of the rows of an index, collected until a ranking needs them. Thread-safe.

    Args:
        index: The index.

    Attributes:
        moving: Held while accesses are taken from the buffer to the index.
        written: Number of the store's access writes that the index contains, at least.
    """

    def __init__(self, index: AgentIndex) -> None:
        self._index = index
        self.written = 0
        self.moving = Lock()
        self._lock = InnerLock()
        self._rows: list[tuple[Sequence[int], int]] = []
        self._number = 0
        self._were_dropped = False

    def record(self, rows: Sequence[int], now: int) -> None:
        """Buffer accesses before the store gets them: rankings use them at once.

        Args:
            rows: Rows of memories in any state.
            now: Microseconds since 1970 in UTC.
        """
        if not self._index.is_loaded:
            return  # they come with the full load
        with self._lock:  # merged when taken: most searches do not need them
            self._rows.append((rows, now))
            self._number += len(rows)
            if self._number > MAX_BUFFERED:
                self._drop()

    def last(self, rows: Sequence[int]) -> list[int | None]:
        """Return the last access of rows known to the index, buffered ones included."""
        if not self._index.is_loaded:
            return [None] * len(rows)
        self.push()
        known = self._index.native.core.accesses(list(rows))
        return [None if access is None else access[0] for access in known]

    def push(self) -> None:
        """Apply the buffered accesses to the index, so that they need not be on disk first."""
        with self.moving:  # a concurrent caller waits for the accesses taken here
            with self._lock:
                calls, self._rows, self._number = self._rows, [], 0
            if calls:
                added = [(row, last, number) for row, (number, last) in _merged(calls).items()]
                self._index.native.change_accesses(added, adds=True)

    def drop(self) -> None:
        """Drop the buffered accesses; they will be read from the store."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        self._rows, self._number, self._were_dropped = [], 0, True

    def restart(self, written: int) -> None:
        """Begin again with rows that contain so many access writes of the store, at least."""
        self.written = written
        self.drop()

    def catch_up(self, position: LogPosition) -> None:
        """Apply all accesses to an index that has all changes.

        Args:
            position: Where the store stood at last.
        """
        with self._lock:
            were_dropped, self._were_dropped = self._were_dropped, False
        if were_dropped:
            self.write()
            position = self._index.store.known_position(self._index.agent_id)
        self.push()
        if position.accesses != self.written:
            self.pull()

    def pull(self) -> None:
        """Apply what the store has."""
        index = self._index
        with index.lock:
            seq = index.native.seq
            accessed = index.store.read(AccessesSince(index.agent_id, self.written))
            self.push()  # they may be in what was read, and count once
            index.native.change_accesses(accessed.rows, adds=False)
            # Rows that the index lacks come with their stored accesses: then all is read again.
            if seq is not None and seq >= accessed.position.seq:
                self.written = accessed.position.accesses

    def write(self) -> None:
        """Write pending accesses; if the store is busy, what is read next is a little behind."""
        if self._index.settings.can_write:
            with suppress(StoreError):  # a store that cannot be read raises there
                self._index.store.write_accesses().result()

    def are_in(self, batch: RowBatch) -> bool:
        """Return whether a batch adds or restores rows whose accesses are not on disk yet."""
        rows = [record[0] for record in batch.records]
        known = self._index.native.core.accesses(rows)
        new = [row for row, access in zip(rows, known, strict=True) if access is None]
        return bool(new) and self._index.store.accesses.has(self._index.agent_id, new)


def _merged(calls: Iterable[tuple[Sequence[int], int]]) -> dict[int, Accesses]:
    added: dict[int, Accesses] = {}
    for rows, now in calls:
        for row in rows:
            number, last = added.get(row, (0, now))
            added[row] = number + 1, max(last, now)
    return added
