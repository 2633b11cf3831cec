"""Index synchronisation: an index catches up with the changes of its store."""

import weakref
from contextlib import suppress
from functools import partial

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import BusyThreadError, MnemicError, StoreError
from mnemic.index import NativeIndex, choice
from mnemic.model.deadline import check_deadline
from mnemic.model.rows import RowBatch, State
from mnemic.reporting.logs import logger
from mnemic.repository import index_snapshots
from mnemic.repository.agent_index import AgentIndex, IndexSettings
from mnemic.repository.index_accesses import IndexAccesses
from mnemic.repository.index_loading import IndexLoading
from mnemic.repository.index_model import ModelChange
from mnemic.repository.index_saving import IndexSaving
from mnemic.repository.missing_vectors import PATIENCE_SECONDS
from mnemic.repository.vector_model import VectorModel
from mnemic.store import LogPosition, Store
from mnemic.threads.calls import shared_in_turn
from mnemic.threads.sync_bridge import run_blocking

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
