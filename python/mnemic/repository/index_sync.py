"""Index synchronisation: indexes catch up with their store, are saved, and change their model."""

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import BusyThreadError, MnemicError, StoreError
from mnemic.index import NativeIndex, choice
from mnemic.model.deadline import check_deadline
from mnemic.model.rows import RowBatch, State
from mnemic.reporting.logs import logger
from mnemic.repository import index_snapshots
from mnemic.repository.agent_index import AgentIndex, IndexAccesses, IndexModel, IndexSettings
from mnemic.repository.index_loading import IndexLoading, Swapping
from mnemic.repository.index_snapshots import Due, IndexSnapshots, save_quietly
from mnemic.repository.missing_vectors import PATIENCE_SECONDS, MissingVectors
from mnemic.repository.vector_model import VectorModel
from mnemic.store import LogPosition, Store
from mnemic.store.values import Model
from mnemic.threads.background import Background
from mnemic.threads.calls import shared_in_turn
from mnemic.threads.locks import InnerLock, Lock
from mnemic.threads.sync_bridge import run_blocking


class ModelChange:
    """Makes an index again where its vectors are of another model.

    Args:
        index: The index.
        loading: Loads it.
    """

    def __init__(self, index: AgentIndex, loading: IndexLoading) -> None:
        self._index = index
        self._loading = loading
        self._learning = Lock()
        index.model = self._made_for(index.model.vectors, index.model.known)

    def learn(self) -> None:
        """Take the vectors in once there are some of a model that the index was not made for."""
        index = self._index
        if not index.lacks_model:
            return
        with self._learning:
            vectors = index.model.vectors
            known = vectors.known
            if known is not None and known != index.model.known:
                snapshots = index.snapshots_of(vectors, known)
                self._loading.build(index.model._replace(known=known, snapshots=snapshots))

    def adopt(self, vectors: VectorModel, swapping: Swapping) -> None:
        """Replace the index by one of the vectors that the agent has now.

        Searches go on with the old one until the new one is loaded.

        Args:
            vectors: The model of the agent's vectors now.
            swapping: Its context contains the replacement, and nothing that takes long.
        """
        index = self._index
        old, model = index.model.missing, self._made_for(vectors, vectors.known)
        with self._learning:
            if not self._is_adopted_empty(model, swapping):
                self._loading.build(model, swapping)
            index.is_switching = False
        if old is not None:
            old.stop()

    def _is_adopted_empty(self, model: IndexModel, swapping: Swapping) -> bool:
        """Replace an index that is not loaded by an empty one; return False if it is loaded."""
        index = self._index
        with index.lock:
            if index.is_loaded:
                return False
            with swapping():
                index.model, index.native = model, index.new(model)
            return True

    def missing_of(self, embedder: ValidatedEmbedder | None) -> MissingVectors | None:
        """Return what embeds the memories without a vector, if this index has them embedded."""
        index = self._index
        if embedder is None or not index.settings.can_write or index.state is not State.ACTIVE:
            return None
        return MissingVectors(index.store, index.agent_id, embedder, index.unembedded, self.learn)

    def _made_for(self, vectors: VectorModel, known: Model | None) -> IndexModel:
        missing = self.missing_of(vectors.embedder)
        return IndexModel(vectors, known, missing, self._index.snapshots_of(vectors, known))


class IndexSaving:
    """Saves snapshots of an index, one at a time.

    Args:
        index: The index.
        accesses: Are written before a snapshot that counts them.
    """

    def __init__(self, index: AgentIndex, accesses: IndexAccesses) -> None:
        self._index = index
        self._accesses = accesses
        self._thread = Background("snapshot")

    def begin_if_due(self, rows: int) -> None:
        """Save a snapshot in the background, if enough has changed since the last one.

        Args:
            rows: Number of the index's rows.
        """
        snapshots, seq = self._index.model.snapshots, self._index.native.seq
        can_write = self._index.settings.can_write and not self._thread.is_running
        if snapshots is None or seq is None or not can_write:
            return
        due = snapshots.due(seq, rows, self._has_current_source)
        if due is not None:
            self._index.begin(self._thread, self._save, snapshots, due)

    def join(self) -> None:
        """Wait for the snapshot that is being saved."""
        self._thread.join()

    def _save(self, snapshots: IndexSnapshots, due: Due) -> None:
        accesses = self._accesses.written
        snapshot = self._index.native.snapshot()
        if snapshot is None:
            return
        try:
            # Those of the index must not be lost where it is loaded again.
            self._accesses.write()
            stopped = partial(getattr, self._index, "is_stopped")
            save_quietly(partial(snapshots.save, snapshot, accesses, due=due, is_stopped=stopped))
        finally:
            if snapshot.source is not None:
                snapshot.source.release()

    def _has_current_source(self) -> bool:
        """Return whether an approximate index has all changes."""
        state = self._index.native.source_state
        return state is not None and state.proposes and not state.waiting


_log = logger(__name__)


def _repair(sync: "weakref.ref[IndexSync]") -> None:
    alive = sync()
    if alive is not None:
        alive.loading.repair()


class IndexSync:
    """Applies changes, and embeds entries without a vector, for one agent's index.

    Args:
        store: The store.
        agent_id: The agent.
        vectors: Model of the vectors; its embedder embeds entries without a vector.
        settings: Settings of the index.
        state: State of the entries; only active ones are embedded.
        is_switching: Whether the agent's model is being changed.

    Attributes:
        own: What its parts share. While the agent's model changes (`is_switching`), changes are
            applied without vectors until `change.adopt`: they are found by keywords.
        accesses: Brings accesses to the index.
        loading: Loads it.
        saving: Saves it.
        change: Makes it again for another model.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StoreError: If the store cannot be read.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        vectors: VectorModel,
        settings: IndexSettings,
        state: State = State.ACTIVE,
        *,
        is_switching: bool = False,
    ) -> None:
        if not is_switching:
            vectors.check_stored()
        # By a weak reference: a memory that is never closed is collected with its last reference.
        repair = partial(_repair, weakref.ref(self))
        self.own = AgentIndex(store, agent_id, settings, state, vectors, repair=repair)
        self.own.is_switching = is_switching
        self.accesses = IndexAccesses(self.own)
        self.loading = IndexLoading(self.own, self.accesses)
        self.saving = IndexSaving(self.own, self.accesses)
        self.change = ModelChange(self.own, self.loading)
        self._has_warned = False
        # Without an embedder, they may never be searched.
        if vectors.embedder is not None and not settings.is_lazy:
            self.catch_up(max_seconds=None)

    @property
    def index(self) -> NativeIndex:
        """The synchronised index; one that is not in memory is loaded first."""
        if self.own.native.seq is None:
            self.apply_changes()
        return self.own.native

    @property
    def is_loaded(self) -> bool:
        """Whether the index is in memory."""
        return self.own.is_loaded

    @property
    def waits_for_embedder(self) -> bool:
        """Whether an embedder that answers makes more memories found.

        Those whose texts it failed on do, and those that wait for the length of its vectors.
        """
        known, missing = self.own.model.known, self.own.model.missing
        return known is None or (missing is not None and bool(missing.retries))

    def note_stored(self, *, is_pending: bool) -> None:
        """Note a write, with vectors or without; see `MissingVectors.note_stored`."""
        model = self.own.model
        if model.missing is not None:
            model.missing.note_stored(is_pending=is_pending, is_unknown=model.known is None)

    def load(self) -> None:
        """Load the index without embedding; a search repeats it or raises if that fails."""
        with suppress(MnemicError, MemoryError):
            self.change.learn()
            self.apply_changes()

    async def refresh(self) -> None:
        """Apply new changes; if that fails, the next search repeats it or raises."""
        if self.own.is_loaded:
            with suppress(StoreError, MemoryError):
                await run_blocking(self.apply_changes, self.own.store)

    async def apply(self, batch: RowBatch | None) -> None:
        """Apply a change; read it from the store if it does not follow the index's number."""
        with suppress(BusyThreadError):  # the change is stored: the next search applies it
            await self._apply(batch)

    async def _apply(self, batch: RowBatch | None) -> None:
        own = self.own
        if batch is not None and batch.linked and own.is_loaded:
            self.accesses.push()  # rows stored again have none of the old ones
        # While the model changes, a batch may have vectors of another one than the index.
        is_switching = own.is_switching or (own.model.known is not None and own.lacks_model)
        if batch is None or is_switching or not own.native.apply(batch):
            await self.refresh()
        if own.settings.pool is not None:
            self.loading.note_changes()

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

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        check_deadline(deadline)
        own = self.own
        store, agent_id = own.store, own.agent_id
        if own.settings.pool is not None:
            self.loading.note_use()
        latest = partial(store.latest_position, agent_id, deadline=deadline)
        position = shared_in_turn(self, latest)
        if store.stale_since(agent_id) is not None and own.is_loaded:
            self.accesses.push()  # the store cannot be read for anything newer
            return position
        # With an embedder a model stays that of an index once it is known.
        if own.model.known is None or own.model.vectors.embedder is None:
            self.change.learn()
        if position.seq != own.native.seq:
            self.apply_changes(deadline)
        missing, summary = own.model.missing, own.native.summary()
        waiting = None if missing is None or own.is_switching else summary.unembedded
        if missing is not None and waiting and missing.due(waiting):
            missing.embed_until(deadline, max_seconds)
            self.apply_changes(deadline)
            summary = own.native.summary()
        if with_accesses:  # after the changes, which may add rows without their accesses
            self.accesses.catch_up(position)
        size = summary.size
        if summary.needs_rebuild or (size > choice.AUTO_LIMIT and self._has_outgrown(size)):
            self.loading.begin()
        if size >= index_snapshots.MIN_ROWS:
            self.saving.begin_if_due(size)
        return position

    def _has_outgrown(self, size: int) -> bool:
        """Return whether a large index is searched exactly since it was small, and may end that."""
        choose = self.own.settings.choose_source
        if choose is None and not self._has_warned and not self.own.native.has_source:
            self._has_warned = True
            _log.warning(
                "Agent %s has %d memories, and every search compares all of its scope; "
                'index="auto" uses an approximate index',
                self.own.agent_id,
                size,
            )
        return choose is not None and not self.own.native.has_source

    def apply_changes(self, deadline: float | None = None) -> None:
        """Apply all changes of the store that are known, without embedding anything.

        Raises:
            BusyThreadError: If a progress function calls this, from within the load it reports.
        """
        if self.own.is_current():
            return
        with self.loading.turn(), self.own.lock:
            # Once is enough: later writes of others are not awaited.
            while not self.own.is_current() and not self._is_read(deadline):
                pass
            self.loading.note_use()

    def _is_read(self, deadline: float | None) -> bool:
        """Read the changes, and return whether they could be applied."""
        own = self.own
        if not own.is_loaded:
            self.loading.load(deadline)
            return True
        with own.native.loader() as loader:
            batch = own.rows_since(own.native.seq, own.model.known, loader, deadline)
            self.accesses.push()  # rows stored again have none of the old ones
            if batch.since is not None and self.accesses.are_in(batch):
                self.accesses.drop()
            is_applied = own.native.apply(batch, loader)
        if batch.since is None:
            self.accesses.drop()
        return is_applied

    def embed_all(self, embedder: ValidatedEmbedder) -> int:
        """Apply all changes, and embed all entries without a vector, however long that takes.

        Texts that could not be embedded are tried again.

        Args:
            embedder: Embeds them if the index has no embedder; it must be of its model.

        Returns:
            The number of entries that still lack a vector and are known to.
        """
        own = self.own
        if own.model.missing is not None:
            own.model.missing.retries.clear()
        self.catch_up(max_seconds=None)
        has_own = own.model.vectors.embedder is not None
        given = None if has_own else self.change.missing_of(embedder)
        if given is not None and own.native.summary().size:
            own.model.vectors.learn(embedder.learned_dimensions())
            self.change.learn()
            given.embed_until(None, None)
            self.catch_up()
        return len(own.unembedded())

    def current_position(self) -> LogPosition | None:
        """Apply all accesses of the store to an index that has all its changes.

        Returns:
            The store's position before; None if the index is not loaded or lacks a change.
        """
        own = self.own
        if not own.is_loaded:
            return None
        position = own.store.position(own.agent_id)
        if position.seq != own.native.seq:
            return None
        self.accesses.catch_up(position)
        return position

    def stop(self) -> None:
        """Stop background work; none starts again."""
        own = self.own
        own.stop()
        if own.settings.pool is not None:
            own.settings.pool.closed(self.loading)
        if own.model.missing is not None:
            own.model.missing.stop()
        self.saving.join()
        self.loading.close()


class IndexSet:
    """Indexes of active, inactive and deleted memories.

    That of active memories is loaded at once where there is an embedder; the others are built on
    first use.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        model: Model of the vectors.
        options: Options of the index of active memories; the others have no candidate source, and
            report nothing.

    Attributes:
        active: The index of active memories.
        generation: A number that is odd while the indexes of another model take the place of these,
            and another one afterwards: an answer that began before is not to be used.
        is_switching: Whether the agent's vectors may already be those of another model.
    """

    def __init__(
        self, store: Store, agent_id: str, model: VectorModel, options: IndexSettings
    ) -> None:
        self._model = model
        self._lock = InnerLock()
        self.is_switching = False
        self.generation = 0
        self._make = partial(IndexSync, store, agent_id)
        # Two threads may make one at the same time, and one of these is used: only that is loaded.
        self._plain = options._replace(
            choose_source=None, progress=None, unloaded=None, is_lazy=True
        )
        self.active = self._make(model, options)
        self._syncs = {State.ACTIVE: self.active}

    def of(self, state: State) -> IndexSync:
        """Return the index of a state."""
        if state is State.ACTIVE:
            return self.active
        known = self._known(state)
        while known is None:
            model, is_switching = self._model, self.is_switching
            made = self._make(model, self._plain, state, is_switching=is_switching)
            with self._lock:
                if (model, is_switching) == (self._model, self.is_switching):
                    known = self._syncs.setdefault(state, made)
            if known is not made:
                made.stop()
        return known

    def _known(self, state: State) -> IndexSync | None:
        with self._lock:
            known = self._syncs.get(state)
            if known is None or known.own.model.vectors is self._model:
                return known
            del self._syncs[state]
        known.stop()
        return None

    def set_switching(self, *, is_switching: bool) -> None:
        """Go on with the indexes while the agent's model changes, or end that as it did not.

        Args:
            is_switching: See `IndexSync.own`.
        """
        with self._lock:
            self.is_switching = is_switching
            for sync in self.built():
                sync.own.is_switching = is_switching

    def adopt(self, model: VectorModel, taken: Callable[[], object]) -> None:
        """Replace the indexes by those of another model's vectors, which the agent has now.

        Args:
            model: The model.
            taken: Called as soon as they are in place; must be short.
        """

        @contextmanager
        def swapping() -> Generator[None, None, None]:
            self.generation += 1
            try:
                yield
                if self.active.own.model.vectors is model:
                    self._model = model
                    self.is_switching = False
                    taken()
            finally:
                self.generation += 1

        self.active.change.adopt(model, swapping)

    def is_changed(self, generation: int) -> bool:
        """Return whether an answer that began with a generation must not be used."""
        return generation % 2 == 1 or generation != self.generation

    def built(self) -> list[IndexSync]:
        """Return the indexes built so far."""
        return list(self._syncs.values())

    def stop(self) -> None:
        """End all work in the background."""
        with self._lock:
            syncs = self.built()
        for sync in syncs:
            sync.stop()
