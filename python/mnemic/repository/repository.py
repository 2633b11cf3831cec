"""Repository: one agent's memories over store, index and embedder, one method for each operation.

Methods take a checked scope. `mnemic.memory` and `mnemic.compat.long_term` give them their public
names and arguments.
"""

import os
from functools import partial
from typing import TYPE_CHECKING

from mnemic.index.choice import source_choice
from mnemic.model import Scope
from mnemic.model.time_zones import checked_time_zone, system_time_zone
from mnemic.observability.events import Events
from mnemic.observability.table import EMBEDDED
from mnemic.observability.telemetry import MemoryTelemetry, Meter
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.adding import Adder, NewVectors
from mnemic.repository.agent_index import IndexSettings
from mnemic.repository.database_search import loads_on_opening
from mnemic.repository.deleting import Deleter
from mnemic.repository.entry_cache import EntryCache
from mnemic.repository.find import Finder
from mnemic.repository.index_pool import SHARED, indexes_of
from mnemic.repository.index_sync import IndexSet
from mnemic.repository.limits import Limits
from mnemic.repository.listing import Lister
from mnemic.repository.maintenance import Maintenance, Transfer
from mnemic.repository.parts import Part, Shared, UserHints
from mnemic.repository.query_vectors import QueryVectors
from mnemic.repository.readiness import Freshness, Readiness
from mnemic.repository.reading import Reader
from mnemic.repository.reembedding import Reembedding
from mnemic.repository.searching import Searcher
from mnemic.repository.settings import Settings
from mnemic.repository.updating import Linker, Updater
from mnemic.repository.vector_index import VectorIndexReader
from mnemic.repository.vector_model import CurrentModel
from mnemic.store import Store, open_store
from mnemic.store.operations import AgentFacts, EntryCount
from mnemic.threads.sync_bridge import run_blocking

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mnemic.embed.base import Embedder
    from mnemic.repository.recall_guard import RecallGuard


def _opened(settings: Settings) -> Shared:
    """Open the store of an agent; return what belongs to the agent."""
    store = open_store(
        settings.url,
        read_only=settings.read_only,
        max_stale=settings.max_stale,
        row_security=settings.row_security,
        encryption=settings.encryption,
    )
    try:
        agent_id = store.stored_agent_id(settings.named.agent_id)
        store.check_key(agent_id)
        return _shared(settings, store, agent_id)
    except BaseException:
        if settings.embedder is not None:
            settings.embedder.close()
        store.close()
        raise


def _shared(settings: Settings, store: Store, agent_id: str) -> Shared:
    clock, embedder = settings.clock, settings.embedder
    telemetry = MemoryTelemetry(
        agent_id, Events(), clock, Meter(agent_id, clock), shows_queries=settings.log_content
    )
    if embedder is not None:
        embedder.calls.on_embedded = partial(telemetry.meter.measure, EMBEDDED)
    stored = settings.time_zone or store.read(AgentFacts(agent_id)).time_zone
    cache = EntryCache(store, agent_id)
    models = CurrentModel(
        store, agent_id, embedder, settings.embedding_model, may_wait=settings.reembed
    )
    options = _index_settings(settings, store, Scope(agent_id, all_users=True))
    indexes = IndexSet(store, agent_id, models.now, options._replace(unloaded=cache.clear))
    return Shared(
        store=store,
        agent_id=agent_id,
        # Without the embedder, of which a memory lets go when it changes to another one.
        settings=settings._replace(embedder=None),
        time_zone=checked_time_zone(stored) or system_time_zone(),
        indexes=indexes,
        models=models,
        cache=cache,
        limits=Limits(settings, store, agent_id, telemetry),
        accesses=AccessCounter(settings, store, agent_id, indexes),
        telemetry=telemetry,
        user_hints=UserHints(store, indexes.active, telemetry, clock),
    )


def _index_settings(settings: Settings, store: Store, everyone: Scope) -> IndexSettings:
    choose_source = source_choice(
        settings.chosen_index, lambda: store.read(EntryCount(everyone, now=settings.clock()))
    )
    pool = SHARED if settings.index_pool is None and store.is_remote else settings.index_pool
    return IndexSettings(
        language=settings.language,
        can_write=not settings.read_only,
        pool=None if pool is None else indexes_of(pool),
        keeps_snapshots=settings.snapshots,
        choose_source=choose_source
        if settings.make_source is None
        else lambda: settings.make_source,
        progress=settings.progress,
        clock=settings.clock,
        is_lazy=not loads_on_opening(store, everyone, settings.search_in),
    )


class Repository(Part):
    """One agent's memories in one store, which is opened.

    Args:
        settings: The store, the agent, and the options of the memory.

    Attributes:
        shared: What belongs to the agent.
        now: Its clock.
        reader: Reads memories by id.
        finder: Finds them.
        searcher: Finds them for a program.
        lister: Lists them.
        adder: Adds memories.
        updater: Changes them.
        deleter: Deletes them.
        reembedding: Changes the model of their vectors.
        maintenance: Copies and checks what they are stored in.
        freshness: Says how fresh the memories are that a search sees.
        readiness: Builds the index ahead.
        linker: Links memories.
        transfer: Exports and imports them.
        vector_index: Looks into the index of vectors.
    """

    def __init__(self, settings: Settings) -> None:
        self.shared = shared = _opened(settings)
        super().__init__(shared)
        self.now = settings.clock
        self._process = os.getpid()
        guard, new_vectors = _guard_of(shared), NewVectors(shared)
        self.reader = Reader(shared)
        self.finder = Finder(shared, QueryVectors(shared, self._models.now), guard)
        self.searcher = Searcher(shared, self.finder)
        self.lister = Lister(shared)
        self.adder = Adder(shared, new_vectors, guard)
        self.updater = Updater(shared, new_vectors)
        self.deleter = Deleter(shared)
        self.reembedding = Reembedding(shared, self.finder, partial(QueryVectors, shared))
        self.maintenance = Maintenance(shared)
        self.freshness = Freshness(shared)
        self.readiness = Readiness(shared, self.finder)
        self.linker = Linker(shared)
        self.transfer = Transfer(shared, self.adder)
        self.vector_index = VectorIndexReader(shared)
        if self._models.is_waiting:
            self.reembedding.begin()
        self._telemetry.opened(self._store)

    @property
    def executor(self) -> "Executor":
        """The store's threads, for blocking work of the asynchronous interfaces."""
        return self._store.executor

    @property
    def events(self) -> Events:
        """The listeners of events."""
        return self._telemetry.events

    @property
    def agent_id(self) -> str:
        """The agent."""
        return self._agent_id

    @property
    def embedder(self) -> "Embedder | None":
        """The embedder."""
        embedder = self._models.embedder
        return None if embedder is None else embedder.embedder

    async def close(self) -> None:
        """Finish writing and release the file. Repeated calls have no effect.

        A forked process has nothing to finish, and its locks may never be released.
        """
        if os.getpid() != self._process:
            self._store.close()
            return
        self._telemetry.meter.closed()
        if self._models.has_loop:
            await run_blocking(self._models.close)  # it waits for what is cancelled
        self._models.close()
        await run_blocking(self.reembedding.stop)
        self._indexes.stop()
        await run_blocking(self._store.close)


def _guard_of(shared: Shared) -> "RecallGuard | None":
    if shared.settings.on_recalled == "store":
        return None
    from mnemic.repository.recall_guard import RecallGuard  # noqa: PLC0415 - rarely used

    return RecallGuard(shared)
