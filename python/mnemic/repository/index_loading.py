"""Full loads of an index: from its snapshot or the store, in a call or in the background."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeAlias

from mnemic.errors import BusyThreadError, MnemicError, StoreClosedError, VectorFileDamagedError
from mnemic.index import NativeIndex
from mnemic.index.loading import ignore
from mnemic.model import Scope
from mnemic.model.rows import State
from mnemic.reporting.logs import logger
from mnemic.reporting.progress import reporting
from mnemic.repository.agent_index import AgentIndex, IndexAccesses, IndexModel
from mnemic.repository.vector_model import VectorModel
from mnemic.store.operations import ScopeStatistics
from mnemic.threads.background import Background

_log = logger(__name__)

REBUILD_SECONDS = 10.0
"""Minimum seconds between two loads in the background."""

MEASURE_EVERY = 256
"""Changes after which a growing index is measured: that applies them to the core's index at once,
which for each alone would slow writers down."""

Swapping: TypeAlias = Callable[[], AbstractContextManager[None]]


class _StoppedError(Exception):
    """The background work was stopped."""


class IndexLoading:
    """Loads all rows of an index, and drops them for its pool.

    Args:
        index: The index.
        accesses: Their accesses.
    """

    def __init__(self, index: AgentIndex, accesses: IndexAccesses) -> None:
        self._index = index
        self._accesses = accesses
        self._pool = index.settings.pool
        self._measured_seq: int | None = None
        self._thread = Background("load")
        self._next_at = 0.0
        self._reporting_thread: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the index and of the rows that the store holds beside it, partly estimated."""
        index = self._index
        held = index.store.cached_bytes(index.agent_id) if index.state is State.ACTIVE else 0
        return index.native.core.nbytes + held

    @property
    def is_held_here(self) -> bool:
        """Whether this thread is in the midst of loading or changing the index."""
        return self._index.lock.is_held_here()

    def unload(self) -> bool:
        """Drop the rows, for whoever uses them next to load; return False if they are changed now.

        Searches go on with the index that they began with.
        """
        index = self._index
        if not index.lock.acquire(blocking=False):
            return False
        try:
            index.native = index.new(index.model)
            self._measured_seq = None
            if index.state is State.ACTIVE:
                index.store.release(index.agent_id)
            if index.settings.unloaded is not None:
                index.settings.unloaded()
            return True
        finally:
            index.lock.release()

    def note_use(self) -> None:
        """Record a use of the index, and its size if it has changed."""
        if self._pool is None:
            return
        seq = self._index.native.seq
        if seq is None or seq == self._measured_seq:
            self._pool.used(self)
            return
        self._measured_seq = seq
        self._pool.measured(self)

    def note_changes(self) -> None:
        """Record the size of an index that has grown."""
        if (self._index.native.seq or 0) - (self._measured_seq or 0) >= MEASURE_EVERY:
            self.note_use()

    def turn(self) -> AbstractContextManager[None]:
        """Wait until no other index of the pool is being loaded, if this one is to be.

        Raises:
            BusyThreadError: If a progress function calls this, from within the load it reports.
        """
        if self._reports_here:
            raise BusyThreadError(
                "this thread is loading the memory: a progress function or a signal handler "
                "cannot search it meanwhile"
            )
        if self._pool is None or self._index.is_loaded:
            return nullcontext()
        return self._pool.loading()

    def load(self, deadline: float | None) -> None:
        """Load all rows, for whoever has the index's lock; the program is told of it."""
        model = self._index.model
        fresh = self._restored(model)
        if fresh is None:
            with self._reported() as seen:
                fresh = self._read(model, seen, deadline)
        self._replace(*fresh, model)

    def begin(self) -> None:
        """Load all rows in the background, unless that goes on or was done lately."""
        if time.monotonic() >= self._next_at:
            self._index.begin(self._thread, self._load_in_background)

    def _load_in_background(self) -> None:
        index = self._index
        is_rebuild = index.is_loaded
        try:
            with self.turn():
                if is_rebuild or not index.is_loaded:
                    self.build(index.model, is_restored=not is_rebuild)
            self.note_use()
        except _StoppedError:
            pass
        except (MnemicError, MemoryError) as error:
            _log.warning("The index of agent %s was not loaded: %s", index.agent_id, str(error))
        finally:
            self._next_at = time.monotonic() + REBUILD_SECONDS

    def build(
        self, model: IndexModel, swapping: Swapping = nullcontext, *, is_restored: bool = False
    ) -> None:
        """Read all rows into a new index, and swap it for the present one.

        Searches go on with the present one until then.

        Args:
            model: What the new index is made for.
            swapping: Its context contains the replacement, and nothing that takes long.
            is_restored: Whether a snapshot may be used.
        """
        index = self._index
        owner = index.model.vectors
        restored = self._restored(model) if is_restored else None
        fresh, accesses = restored or self._read(model, lambda _: self._check_not_stopped())
        while not self._swap(fresh, accesses, model, owner, swapping):
            self._check_not_stopped()
            fresh.apply(index.rows_since(fresh.seq, model.known))

    def repair(self) -> None:
        """Load all rows from the store, after a snapshot was found damaged."""
        index = self._index
        _log.warning(
            "The snapshot of the index of agent %s is damaged; the index is loaded from the store",
            index.agent_id,
        )
        if index.model.snapshots is not None:
            index.model.snapshots.drop()
        try:
            self.build(index.model)
        except _StoppedError:
            raise StoreClosedError("the memory was closed") from None

    def close(self) -> None:
        """Wait for the load in the background, and end what the index does there."""
        self._thread.join()
        with nullcontext() if self._reports_here else self._index.lock:
            self._index.native.close()

    @property
    def _reports_here(self) -> bool:
        return self._reporting_thread == threading.get_ident()

    def _restored(self, model: IndexModel) -> tuple[NativeIndex, int] | None:
        """Return an index from a snapshot with all changes since, and its number of accesses."""
        snapshots = model.snapshots
        restored = None if snapshots is None else snapshots.restored()
        if snapshots is None or restored is None:
            return None
        fresh = self._index.new(model)
        try:
            fresh.restore(restored.core, restored.seq, restored.beginning)
        except VectorFileDamagedError:  # found by a source that reads all vectors at once
            snapshots.drop()
            return None
        batch = self._index.rows_since(restored.seq, model.known, with_sensitive=True)
        return (fresh, restored.accesses) if fresh.apply(batch) else None

    def _read(
        self, model: IndexModel, seen: Callable[[int], object], deadline: float | None = None
    ) -> tuple[NativeIndex, int]:
        """Return an index of all rows of the store, and its number of accesses, at least."""
        index = self._index
        fresh = index.new(model)
        accesses = index.store.known_position(index.agent_id).accesses
        with fresh.loader(seen) as loader:
            fresh.apply(index.rows_since(None, model.known, loader, deadline), loader)
        return fresh, accesses

    def _check_not_stopped(self) -> None:
        if self._index.is_stopped:
            raise _StoppedError

    @contextmanager
    def _reported(self) -> Generator[Callable[[int], None], None, None]:
        """Yield what takes the numbers of rows that are read, and reports them to the program.

        A memory counts for one part when its record is read, then its vectors.
        """
        index = self._index
        settings = index.settings
        if settings.progress is None or settings.progress is False:
            yield ignore
            return
        everyone = Scope(index.agent_id, all_users=True)
        total = index.store.read(ScopeStatistics(everyone, settings.clock())).active_entries
        parts, done = 1 if index.model.known is None else 2, 0
        self._reporting_thread = threading.get_ident()
        try:
            with reporting(settings.progress, "loading") as report:

                def seen(number: int) -> None:
                    nonlocal done
                    done += number
                    report(min(done // parts, total), total)

                yield seen
                report(total, total)
        finally:
            self._reporting_thread = None

    def _swap(
        self,
        fresh: NativeIndex,
        accesses: int,
        model: IndexModel,
        owner: VectorModel,
        swapping: Swapping,
    ) -> bool:
        """Swap a loaded index for the present one; return False if that is more recent.

        It is dropped if the model has changed from that of its owner since it was begun.
        """
        index = self._index
        with index.lock, swapping():
            return index.model.vectors is not owner or self._replace(fresh, accesses, model)

    def _replace(self, fresh: NativeIndex, accesses: int, model: IndexModel) -> bool:
        with self._accesses.moving:
            is_replaced = self._index.native.replace_with(fresh)
            if is_replaced:  # accesses during the read are read again
                self._index.model, self._measured_seq = model, None
                self._accesses.restart(accesses)
            return is_replaced
