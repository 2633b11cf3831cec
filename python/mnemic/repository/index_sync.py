"""Index synchronisation: applies the changes of a store to an index."""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from mnemic._core import Coverage
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    BusyThreadError,
    EmbeddingModelMismatchError,
    MnemicError,
    StoreClosedError,
    StoreError,
    VectorFileDamagedError,
)
from mnemic.index import NativeIndex, SourceChoice, choice
from mnemic.model.rows import RowBatch, State
from mnemic.reporting.logs import logger
from mnemic.repository.access_buffer import AccessBuffer
from mnemic.repository.index_pool import PooledIndexes
from mnemic.repository.index_snapshots import Due, IndexKind, IndexSnapshots, save_quietly
from mnemic.repository.load_progress import LoadProgress, WatchedSink
from mnemic.repository.missing_vectors import PATIENCE_SECONDS, MissingVectors
from mnemic.repository.vector_model import VectorModel
from mnemic.store import LogPosition, Store
from mnemic.store.operations import AccessesSince, RowsSince
from mnemic.store.values import BatchSink, Model
from mnemic.threads.background import Background
from mnemic.threads.locks import Lock
from mnemic.threads.loop_threads import shared_in_turn
from mnemic.threads.sync_bridge import run_blocking

_log = logger(__name__)

REBUILD_SECONDS = 10.0
"""Minimum seconds between two rebuilds of an index."""


MEASURE_EVERY = 256
"""Changes after which a growing index is measured: that applies them to the core's index at once,
which for each alone would slow writers down."""


def _repair(sync: "weakref.ref[IndexSync]") -> None:
    alive = sync()
    if alive is not None:
        alive.repair()


def _coverage_of(model: VectorModel) -> Coverage | None:
    """Return the languages of a model's embedder."""
    return None if model.embedder is None else model.embedder.coverage


class _StoppedError(Exception):
    """The background work was stopped."""


class IndexSettings(NamedTuple):
    """Settings of an index.

    Attributes:
        language: The language of the entries, "auto" or None; see `Options`.
        can_write: Whether new vectors may be stored.
        pool: Bounds the bytes of loaded indexes; None for no bound.
        keeps_snapshots: Whether snapshots of an index of active memories are loaded and saved.
        choose_source: Chooses the index's candidate source; None for none.
        progress: Reports full loads that a call waits for; None for none.
        unloaded: Called when the pool has dropped the index; None for nothing to call.
        is_lazy: Whether even an index with an embedder is loaded by its first use alone.
    """

    language: str | None = "auto"
    can_write: bool = True
    pool: PooledIndexes | None = None
    keeps_snapshots: bool = True
    choose_source: SourceChoice | None = None
    progress: LoadProgress | None = None
    unloaded: Callable[[], object] | None = None
    is_lazy: bool = False


class IndexSync:
    """Applies changes, and embeds entries without a vector, for one agent's index.

    Args:
        store: The store.
        agent_id: The agent.
        model: Model of the vectors; its embedder embeds entries without a vector.
        options: Its options.
        state: State of the entries; only active ones are embedded.
        is_switching: Whether the agent's model is being changed; see `begin_switch`.

    Attributes:
        model: Name and dimension of the index's vectors; None before the agent's first vector.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StoreError: If the store cannot be read.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        model: VectorModel,
        options: IndexSettings,
        state: State = State.ACTIVE,
        *,
        is_switching: bool = False,
    ) -> None:
        self._options = options
        self._pool = options.pool
        self._can_write = options.can_write
        self._choose_source = options.choose_source
        self._is_switching = is_switching
        self._measured_seq: int | None = None
        self._is_unloaded = options.is_lazy
        self._vector_model = model
        if not is_switching:
            model.check_stored()
        self.model = model.known
        self._learning = Lock()
        self._coverage = _coverage_of(model)
        self._index = self._new_index(self.model, self._coverage)
        self._store = store
        self._agent_id = agent_id
        self._state = state
        self._missing = self._new_missing(model.embedder)
        self._catching_up = Lock()
        self._rebuilding = Background("rebuild")
        self._rebuild_at = 0.0
        self._snapshots = self._new_snapshots(self.model)
        self._saving = Background("snapshot")
        self._loading = Background("load")
        self._starting = Lock()
        self._is_stopped = False
        self._has_warned = False
        self._accesses = 0  # number of access writes that the index contains, at least
        self._buffer = AccessBuffer()
        self._access_lock = Lock()
        self._reporting_thread: int | None = None
        # Without an embedder, they may never be searched.
        if model.embedder is not None and not options.is_lazy:
            self.catch_up(max_seconds=None)

    @property
    def index(self) -> NativeIndex:
        """The synchronised index; one that was dropped is loaded again first."""
        if self._is_unloaded:
            self._apply_changes()
        return self._index

    @property
    def is_loaded(self) -> bool:
        """Whether the index is in memory."""
        return self._index.seq is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the index and of the rows that the store holds beside it, partly estimated."""
        held = self._store.cached_bytes(self._agent_id) if self._state is State.ACTIVE else 0
        return self._index.nbytes + held

    @property
    def embeds(self) -> bool:
        """Whether memories without a vector are given one."""
        return self._missing is not None

    def _new_missing(self, embedder: ValidatedEmbedder | None) -> MissingVectors | None:
        """Return what embeds the entries without a vector, if this index has them embedded."""
        if embedder is None or not self._can_write or self._state is not State.ACTIVE:
            return None
        return MissingVectors(self._store, self._agent_id, embedder, self._unembedded, self._grow)

    def new_index(self) -> NativeIndex:
        """Return an empty index of the same kind, for other rows."""
        return self._new_index(self.model, self._coverage)

    def is_of(self, model: VectorModel) -> bool:
        """Return whether the index holds the vectors of a model."""
        return self._vector_model is model

    def begin_switch(self) -> None:
        """Go on with the index as it is once the agent's vectors are those of another model.

        Changes from then on are applied without vectors, until `adopt`: they are found by keywords.
        """
        self._is_switching = True

    def end_switch(self) -> None:
        """End what `begin_switch` began, because the agent's vectors stayed as they were."""
        self._is_switching = False

    def adopt(
        self, vector_model: VectorModel, swapping: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Replace the index by one of the vectors that the agent has now.

        Searches go on with the old one until the new one is loaded.

        Args:
            vector_model: The model of the agent's vectors now.
            swapping: Its context contains the replacement, and nothing that takes long.
        """
        old, coverage = self._missing, _coverage_of(vector_model)

        def take() -> None:
            self._vector_model = vector_model
            self.model, self._coverage = vector_model.known, coverage
            self._missing = self._new_missing(vector_model.embedder)
            self._snapshots = self._new_snapshots(self.model)
            self._measured_seq, self._is_switching = None, False

        with self._learning:
            if not self._adopted_empty(vector_model.known, coverage, swapping, take):
                self._build(vector_model.known, coverage, swapping, take)
        if old is not None:
            old.stop()

    def _adopted_empty(
        self,
        model: Model | None,
        coverage: Coverage | None,
        swapping: Callable[[], AbstractContextManager[None]],
        take: Callable[[], None],
    ) -> bool:
        """Replace an index that is not loaded by an empty one; return False if it is loaded."""
        with self._catching_up, self._access_lock:
            if self._index.seq is not None:
                return False
            with swapping():
                self._index = self._new_index(model, coverage)
                self._is_unloaded = True
                take()
            return True

    def load_later(self) -> None:
        """Load the index in the background, unless that has begun or failed lately."""
        with self._starting:
            is_due = time.monotonic() >= self._rebuild_at
            if is_due and not (self.is_loaded or self._is_stopped):
                self._loading.begin(self._load_in_background)

    def _load_in_background(self) -> None:
        try:
            with self._turn_to_load():
                if not self.is_loaded:
                    self._load_fresh()
                    self._is_unloaded = False
            if self._pool is not None:
                self._measure(self._pool)
        except _StoppedError:
            pass
        except (MnemicError, MemoryError) as error:
            self._rebuild_at = time.monotonic() + REBUILD_SECONDS
            _log.warning("The index of agent %s was not loaded: %s", self._agent_id, str(error))

    def unload(self) -> bool:
        """Drop the index, for whoever uses it next to load; return False if it is being changed.

        Searches go on with the index that they began with.
        """
        if not self._catching_up.acquire(blocking=False):
            return False
        try:
            self._index = self._new_index(self.model, self._coverage)
            self._is_unloaded, self._measured_seq = True, None
            if self._state is State.ACTIVE:
                self._store.release(self._agent_id)
            if self._options.unloaded is not None:
                self._options.unloaded()
            return True
        finally:
            self._catching_up.release()

    def _unembedded(self) -> list[int]:
        return self._index.unembedded()

    def record_accesses(self, rows: Sequence[int], now: int) -> None:
        """Buffer accesses before the store gets them: rankings use them at once.

        Args:
            rows: Rows of memories in any state.
            now: Microseconds since 1970 in UTC.
        """
        if self._index.seq is not None:  # otherwise they come with the full load
            self._buffer.add(rows, now)

    def last_accesses(self, rows: Sequence[int]) -> list[int | None]:
        """Return the last access of rows known to the index, buffered ones included."""
        if self._index.seq is None:
            return [None] * len(rows)
        self._push_accesses()
        known = self._index.accesses(rows)
        return [None if access is None else access[0] for access in known]

    def load(self) -> None:
        """Load the index without embedding; a search repeats it or raises if that fails."""
        with suppress(MnemicError, MemoryError):
            self._learn_model()
            self._apply_changes()

    async def refresh(self) -> None:
        """Apply new changes; if that fails, the next search repeats it or raises."""
        if self._index.seq is None:
            return
        with suppress(StoreError, MemoryError):
            await run_blocking(self._apply_changes, self._store)

    async def apply(self, batch: RowBatch | None) -> None:
        """Apply a change; read it from the store if it does not follow the index's number."""
        with suppress(BusyThreadError):  # the change is stored: the next search applies it
            await self._apply(batch)

    async def _apply(self, batch: RowBatch | None) -> None:
        if batch is not None and batch.linked and self._index.seq is not None:
            self._push_accesses()  # rows stored again have none of the old ones
        # While the model changes, a batch may have vectors of another one than the index.
        is_switching = self._is_switching or (self.model is not None and self._lacks_model)
        if batch is None or is_switching or not self._index.apply(batch):
            await self.refresh()
        seq = self._index.seq
        grown = 0 if seq is None else seq - (self._measured_seq or 0)
        if self._pool is not None and grown >= MEASURE_EVERY:
            self._measure(self._pool)

    def catch_up(
        self,
        *,
        with_accesses: bool = False,
        deadline: float | None = None,
        max_seconds: float | None = PATIENCE_SECONDS,
    ) -> LogPosition:
        """Apply all changes of the store, and embed entries without a vector.

        Args:
            with_accesses: Whether to apply accesses too, which are not changes.
            deadline: Limit of reading the changes, in seconds of `time.monotonic()`; see
                `RowsSince`.
            max_seconds: Maximum seconds that embedding takes here, before it goes on in the
                background; None for no maximum.

        Returns:
            The store's position before.
        """
        if self._pool is not None:
            self._measure(self._pool)
        latest = partial(self._store.latest_position, self._agent_id, deadline=deadline)
        position = shared_in_turn(self, latest)
        if self._is_all_there_is():
            self._push_accesses()
            return position
        self._learn_model()
        if position.seq != self._index.seq:
            self._apply_changes(deadline)
        if self._missing is not None and not self._is_switching and self._missing.due():
            self._missing.embed_until(deadline, max_seconds)
            self._apply_changes(deadline)
        if with_accesses:  # after the changes, which may add rows without their accesses
            self._catch_up_with_accesses(position)
        if self._index.needs_rebuild or self._has_outgrown:
            self._start_rebuild()
        self._save_if_due()
        return position

    @property
    def _has_outgrown(self) -> bool:
        """Whether the index has grown beyond exact search since it was loaded, and may end that."""
        size = self._index.size
        if size <= choice.AUTO_LIMIT or self._index.has_source:
            return False
        if self._choose_source is None and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "Agent %s has %d memories, and every search compares all of its scope; "
                'index="auto" uses an approximate index',
                self._agent_id,
                size,
            )
        return self._choose_source is not None

    def _is_all_there_is(self) -> bool:
        """Return whether the index is loaded, and the store cannot be read for newer changes."""
        is_stale = self._store.stale_since(self._agent_id) is not None
        return is_stale and self._index.seq is not None

    def embed_all(self, embedder: ValidatedEmbedder) -> int:
        """Apply all changes, and embed all entries without a vector, however long that takes.

        Texts that could not be embedded are tried again.

        Args:
            embedder: Embeds them if the index has no embedder; it must be of its model.

        Returns:
            The number of entries that still lack a vector and are known to.
        """
        if self._missing is not None:
            self._missing.retry_all()
        self.catch_up(max_seconds=None)
        has_own = self._vector_model.embedder is not None
        given = None if has_own else self._new_missing(embedder)
        if given is not None and self._index.size:
            self._vector_model.learn(embedder.learned_dimensions())
            self._learn_model()
            given.embed_until(None, None)
            self.catch_up()
        return len(self._index.unembedded())

    def current_position(self) -> LogPosition | None:
        """Apply all accesses of the store to an index that has all its changes.

        Returns:
            The store's position before; None if the index is not loaded or lacks a change.
        """
        if self._index.seq is None:
            return None
        position = self._store.position(self._agent_id)
        if position.seq != self._index.seq:
            return None
        self._catch_up_with_accesses(position)
        return position

    def stop(self) -> None:
        """Stop background work; none starts again."""
        self._is_stopped = True
        if self._pool is not None:
            self._pool.closed(self)
        if self._missing is not None:
            self._missing.stop()
        with nullcontext() if self._reports_here() else self._catching_up:
            pass  # whoever has begun a thread under this lock has started it
        for thread in (self._rebuilding, self._loading, self._saving):
            thread.join()
        self._index.close()

    def _learn_model(self) -> None:
        """Take the vectors in once there are some of a model that the index was not made for."""
        if not self._lacks_model:
            return
        with self._learning:
            model = self._vector_model.known

            def take() -> None:
                self.model, self._snapshots = model, self._new_snapshots(model)

            if model is not None and model != self.model:
                self._build(model, self._coverage, take=take)

    @property
    def _lacks_model(self) -> bool:
        """Whether there are vectors of another model: the first, or after the last were deleted."""
        model = self._vector_model.known
        return model is not None and model != self.model

    @property
    def lacks_dimension(self) -> bool:
        """Whether there is an embedder whose vectors the index cannot hold yet."""
        return self.model is None and self._vector_model.embedder is not None

    @property
    def has_retries(self) -> bool:
        """Whether texts that could not be embedded wait for another attempt."""
        return self._missing is not None and self._missing.has_retries

    def note_stored(self, *, is_pending: bool) -> None:
        """Note a write, with vectors or without; see `MissingVectors.note_stored`."""
        if self._missing is not None:
            self._missing.note_stored(is_pending=is_pending, is_unknown=self.lacks_dimension)

    def _grow(self) -> None:
        """Take in the first vectors, whose dimension the index was made without."""
        if self.lacks_dimension:
            self._learn_model()
            self._apply_changes()

    def _start_rebuild(self) -> None:
        """Rebuild the index in the background, unless a rebuild is running."""
        with self._catching_up:
            is_due = time.monotonic() >= self._rebuild_at
            if is_due and not self._is_stopped:
                self._rebuilding.begin(self._rebuild)

    def _rebuild(self) -> None:
        try:
            self._build(self.model)
        except _StoppedError:
            pass
        except MnemicError as error:
            _log.warning("The index of agent %s cannot be rebuilt: %s", self._agent_id, str(error))
        finally:
            self._rebuild_at = time.monotonic() + REBUILD_SECONDS

    def _build(
        self,
        model: Model | None,
        coverage: Coverage | None = None,
        swapping: Callable[[], AbstractContextManager[None]] = nullcontext,
        take: Callable[[], None] | None = None,
    ) -> None:
        """Read all rows into a new index, and swap it for the present one.

        Args:
            model: Model of the vectors.
            coverage: The languages of another embedder; ignored without `take`.
            swapping: See `adopt`.
            take: Called once it is in place, for another model than that of the present one.
        """
        owner = self._vector_model
        fresh = self._new_index(model, self._coverage if take is None else coverage)
        accesses = self._store.known_position(self._agent_id).accesses
        with fresh.loader() as loader:
            sink = WatchedSink(loader, lambda _: self._check_not_stopped())
            fresh.apply(self._rows_since(None, model, sink), loader)
        while not self._swap(fresh, accesses, owner, swapping, take):
            self._check_not_stopped()
            fresh.apply(self._rows_since(fresh.seq, model))

    def _new_index(self, model: Model | None, coverage: Coverage | None) -> NativeIndex:
        dim, choose = None if model is None else model[1], self._choose_source
        make_source = None if dim is None or choose is None else choose()
        # By a weak reference: a memory that is never closed is collected with its last reference.
        repair = partial(_repair, weakref.ref(self))
        return NativeIndex(dim, make_source, coverage, self._options.language, repair)

    def _new_snapshots(self, model: Model | None) -> IndexSnapshots | None:
        """Return the snapshots of the index, if any are kept of it."""
        if self._state is not State.ACTIVE or not self._options.keeps_snapshots:
            return None
        named = None if model is None else (model[0], model[1])
        embedder = self._vector_model.embedder
        languages = None if embedder is None else embedder.languages
        kind = IndexKind(self._agent_id, named, self._options.language, languages)
        return IndexSnapshots(self._store, kind, self._coverage)

    def _load_fresh(self) -> None:
        """Load all rows, from a snapshot where there is one."""
        owner = self._vector_model
        fresh = self._restored()
        if fresh is None or not self._swap(*fresh, owner):
            self._build(self.model)

    def _restored(self) -> tuple[NativeIndex, int] | None:
        """Return an index from a snapshot with all changes since, and its number of accesses."""
        restored = None if self._snapshots is None else self._snapshots.restored()
        if restored is None:
            return None
        fresh = self._new_index(self.model, self._coverage)
        try:
            fresh.restore(restored.core, restored.seq, restored.beginning)
        except VectorFileDamagedError:  # found by a source that reads all vectors at once
            self._drop_snapshot()
            return None
        batch = self._rows_since(restored.seq, self.model, with_sensitive=True)
        return (fresh, restored.accesses) if fresh.apply(batch) else None

    def repair(self) -> None:
        """Load all rows from the store, after a snapshot was found damaged."""
        _log.warning(
            "The snapshot of the index of agent %s is damaged; the index is loaded from the store",
            self._agent_id,
        )
        self._drop_snapshot()
        try:
            self._build(self.model)
        except _StoppedError:
            raise StoreClosedError("the memory was closed") from None

    def _drop_snapshot(self) -> None:
        if self._snapshots is not None:
            self._snapshots.drop()

    def _save_if_due(self) -> None:
        """Save a snapshot in the background, if enough has changed since the last one."""
        snapshots, seq = self._snapshots, self._index.seq
        if snapshots is None or seq is None or not self._can_write or self._saving.is_running:
            return
        due = snapshots.due(seq, self._index.size, self._has_current_source)
        if due is not None:
            with self._catching_up:
                if not self._is_stopped:
                    self._saving.begin(self._save, snapshots, due)

    def _save(self, snapshots: IndexSnapshots, due: Due) -> None:
        accesses = self._accesses
        snapshot = self._index.snapshot()
        if snapshot is None:
            return
        try:
            # Those of the index must not be lost where it is loaded again.
            self.write_accesses()
            stopped = partial(getattr, self, "_is_stopped")
            save = partial(snapshots.save, snapshot, accesses, due=due, is_stopped=stopped)
            save_quietly(save)
        finally:
            if snapshot.source is not None:
                snapshot.source.release()

    def _has_current_source(self) -> bool:
        """Return whether an approximate index has all changes."""
        state = self._index.source_state
        return state is not None and state.proposes and not state.waiting

    def _swap(
        self,
        fresh: NativeIndex,
        accesses: int,
        owner: VectorModel,
        swapping: Callable[[], AbstractContextManager[None]] = nullcontext,
        take: Callable[[], None] | None = None,
    ) -> bool:
        """Swap a loaded index for the present one; return False if that is more recent.

        It is dropped if the model has changed from that of its owner since it was begun.
        """
        with self._catching_up, self._access_lock, swapping():
            if self._vector_model is not owner:
                return True
            is_replaced = self._index.replace_with(fresh)
            if is_replaced and take is not None:
                take()
            if is_replaced:  # accesses during the read are read again
                self._accesses = min(self._accesses, accesses)
                self._buffer.drop()
            return is_replaced

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise _StoppedError

    def _catch_up_with_accesses(self, position: LogPosition) -> None:
        if self._buffer.were_dropped():
            self.write_accesses()
            position = self._store.known_position(self._agent_id)
        self._push_accesses()
        if position.accesses != self._accesses:
            self._pull_accesses()

    def _push_accesses(self) -> None:
        """Apply the buffered accesses to the index, so that they need not be on disk first."""
        with self._access_lock:  # a concurrent caller waits for the accesses taken here
            rows = self._buffer.take()
            if rows:
                self._index.add_accesses(
                    [(row, last, number) for row, (number, last) in rows.items()]
                )

    def write_accesses(self) -> None:
        """Write pending accesses; if the store is busy, what is read next is a little behind."""
        if self._can_write:
            with suppress(StoreError):  # a store that cannot be read raises there
                self._store.write_accesses().result()

    def _pull_accesses(self) -> None:
        with self._catching_up:
            seq = self._index.seq
            accessed = self._store.read(AccessesSince(self._agent_id, self._accesses))
            self._push_accesses()  # they may be in what was read, and count once
            self._index.raise_accesses(accessed.rows)
            # Rows that the index lacks come with their stored accesses: then all is read again.
            if seq is not None and seq >= accessed.position.seq:
                self._accesses = accessed.position.accesses

    def _apply_changes(self, deadline: float | None = None) -> None:
        if self._is_current():
            return
        if self._reports_here():
            raise BusyThreadError(
                "this thread is loading the memory: a progress function or a signal handler "
                "cannot search it meanwhile"
            )
        with self._turn_to_load(), self._catching_up:
            while not self._is_current():
                # Once is enough: later writes of others are not awaited.
                if self._read_since(self._index.seq, deadline):
                    break
            if self._pool is not None:
                self._measure(self._pool)

    def _measure(self, pool: PooledIndexes) -> None:
        """Record a use of the index, and its size if it has changed."""
        seq = self._index.seq
        if seq is None or seq == self._measured_seq:
            pool.used(self)
            return
        self._measured_seq = seq
        pool.measured(self)

    def _turn_to_load(self) -> AbstractContextManager[None]:
        """Wait until no other index of the pool is being loaded, if this one is to be."""
        return nullcontext() if self._pool is None or self.is_loaded else self._pool.loading()

    def _read_since(self, seq: int | None, deadline: float | None) -> bool:
        if seq is None and self._is_restored():
            return True
        if seq is None:  # the full load contains at least so many
            self._accesses = self._store.known_position(self._agent_id).accesses
        with self._index.loader() as loader:
            batch = self._loaded(seq, loader, deadline)
            self._push_accesses()  # as above
            if batch.since is not None and self._restores_accessed_rows(batch):
                self._buffer.drop()
            is_applied = self._index.apply(batch, loader)
        if batch.since is None:
            self._buffer.drop()
            self._is_unloaded = False
        return is_applied

    def _is_restored(self) -> bool:
        """Load the index from a snapshot, under the caller's lock; return whether there was one."""
        fresh = self._restored()
        if fresh is None:
            return False
        with self._access_lock:
            self._index.replace_with(fresh[0])
            self._accesses = fresh[1]
            self._buffer.drop()
        self._is_unloaded = False
        return True

    def _loaded(self, seq: int | None, sink: BatchSink, deadline: float | None) -> RowBatch:
        """Read the rows since a change; a full load is reported."""
        progress = self._options.progress
        if seq is not None or progress is None:
            return self._rows_since(seq, self.model, sink, deadline)
        self._reporting_thread = threading.get_ident()
        try:
            with progress.counted(sink, has_vectors=self.model is not None) as counted:
                return self._rows_since(seq, self.model, counted, deadline)
        finally:
            self._reporting_thread = None

    def _reports_here(self) -> bool:
        """Return whether a progress function calls this, from within the load it reports."""
        return self._reporting_thread == threading.get_ident()

    def _restores_accessed_rows(self, batch: RowBatch) -> bool:
        """Return whether the batch adds or restores rows whose accesses are not on disk yet."""
        rows = [record[0] for record in batch.records]
        known = self._index.accesses(rows)
        new = [row for row, access in zip(rows, known, strict=True) if access is None]
        return bool(new) and self._store.has_pending_accesses(self._agent_id, new)

    def _rows_since(
        self,
        seq: int | None,
        model: Model | None,
        sink: BatchSink | None = None,
        deadline: float | None = None,
        *,
        with_sensitive: bool = False,
    ) -> RowBatch:
        wanted = RowsSince(self._agent_id, model, seq, sink, self._state, with_sensitive)
        try:
            return self._store.read(wanted, deadline=deadline)
        except EmbeddingModelMismatchError:
            if not self._is_switching:
                raise
        return self._store.read(replace(wanted, model=None), deadline=deadline)

    def _is_current(self) -> bool:
        return self._store.known_position(self._agent_id).seq == self._index.seq
