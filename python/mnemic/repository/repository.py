"""Repository: one agent's memories over store, index and embedder, one method for each operation.

Methods take a checked scope. `mnemic.memory` and `mnemic.compat.long_term` give them their public
names and arguments.
"""

import os
import time
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args
from uuid import UUID

import msgspec

from mnemic.crypto import KeyProvider, MasterKey
from mnemic.errors import EmbedderRequiredError
from mnemic.index.choice import source_choice
from mnemic.licensing import (
    SEARCHING_BY_MEANING,
    STORING,
    Need,
)
from mnemic.model import (
    AddedMemories,
    CheckedEntry,
    MemoryAudit,
    MemoryEntry,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    ReembedReport,
    Scope,
    SearchResults,
    VerifyReport,
    validation,
)
from mnemic.model.audit import AuditRequest
from mnemic.model.new_entry import ON_EMBED_ERROR, NewEntry
from mnemic.model.passage import MOST_READ, Passage, is_long, passage_of
from mnemic.model.results import Lineage
from mnemic.model.search import Search
from mnemic.model.time_zones import LOCAL, checked_time_zone, system_time_zone
from mnemic.model.update import checked_expiry
from mnemic.model.validation import flag
from mnemic.observability.events import Events
from mnemic.observability.metrics import Meter
from mnemic.observability.table import READ, REPEATED, RETRIEVED
from mnemic.observability.telemetry import MemoryTelemetry, milliseconds_since
from mnemic.reporting.progress import Progress, checked_progress, reporting
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.adding import Adder, AdditionResult
from mnemic.repository.agent_index import IndexSettings
from mnemic.repository.chosen_embedder import chosen_embedder
from mnemic.repository.current_model import CurrentModel
from mnemic.repository.database_search import loads_on_opening
from mnemic.repository.deleting import Deleter
from mnemic.repository.entry_cache import EntryCache
from mnemic.repository.entry_vectors import EntryVectorReader
from mnemic.repository.find import Finder
from mnemic.repository.found import Expansion, Find, SearchOutcome
from mnemic.repository.freshness import Freshness
from mnemic.repository.index_pool import SHARED, indexes_of
from mnemic.repository.index_set import IndexSet
from mnemic.repository.key_rotation import KeyRotation
from mnemic.repository.limits import Limits
from mnemic.repository.lineage import LineageReader
from mnemic.repository.linking import Linker
from mnemic.repository.listing import Lister
from mnemic.repository.new_vectors import NewVectors
from mnemic.repository.parts import Part, Shared
from mnemic.repository.query_vectors import QueryVectors
from mnemic.repository.readiness import Readiness
from mnemic.repository.reembedding import Reembedding
from mnemic.repository.settings import Settings
from mnemic.repository.statistics import Statistics
from mnemic.repository.transfer import Transfer
from mnemic.repository.updating import Updater
from mnemic.repository.user_hints import UserHints
from mnemic.repository.vector_index import VectorIndexReader
from mnemic.store import Store, open_store
from mnemic.store.changes import ChangeListener
from mnemic.store.operations import AgentFacts, BuildVectorIndex, EntriesById, EntryCount
from mnemic.store.values import EntryRow, Selection
from mnemic.threads.sync_bridge import run_blocking

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mnemic.context.redaction import RedactionPattern
    from mnemic.embed.base import AnyEmbedder, Embedder
    from mnemic.repository.recall_guard import RecallGuard


_ON_CONFLICT: tuple[str, ...] = get_args(OnConflict)
_ON_DUPLICATE: tuple[str, ...] = get_args(OnDuplicate)

# Reading an entry takes about 30 µs; more of them at once go to a thread.
_FEW_IDS = 16


class SimilaritySearch(NamedTuple):
    """A search for the memories most similar to one.

    Attributes:
        search: The stored vectors of that memory are its query.
        entry: That memory.
    """

    search: Search
    entry: MemoryEntry


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
        embedder.calls.on_embedded = telemetry.meter.embedded
    stored = settings.time_zone or store.read(AgentFacts(agent_id)).time_zone
    zone = checked_time_zone(stored) or system_time_zone()
    cache = EntryCache(store, agent_id)
    models = CurrentModel(
        store, agent_id, embedder, settings.embedding_model, may_wait=settings.reembed
    )
    everyone = Scope(agent_id, all_users=True)
    choose_source = source_choice(
        settings.chosen_index, lambda: store.read(EntryCount(everyone, now=clock()))
    )
    pool = SHARED if settings.index_pool is None and store.is_remote else settings.index_pool
    options = IndexSettings(
        language=settings.language,
        can_write=not settings.read_only,
        pool=None if pool is None else indexes_of(pool),
        keeps_snapshots=settings.snapshots,
        choose_source=choose_source
        if settings.make_source is None
        else lambda: settings.make_source,
        progress=settings.progress,
        clock=clock,
        unloaded=cache.clear,
        is_lazy=not loads_on_opening(store, agent_id, settings.search_in),
    )
    indexes = IndexSet(store, agent_id, models.now, options)
    return Shared(
        store=store,
        agent_id=agent_id,
        # Without the embedder, of which a memory lets go when it changes to another one.
        settings=settings._replace(embedder=None, time_zone=zone),
        indexes=indexes,
        models=models,
        cache=cache,
        limits=Limits(settings, store, agent_id, telemetry),
        accesses=AccessCounter(settings, store, agent_id, indexes),
        telemetry=telemetry,
        user_hints=UserHints(store, indexes.active, telemetry, clock),
    )


class Repository(Part):
    """One agent's memories in one store, which is opened.

    Args:
        settings: The store, the agent, and the options of the memory.

    Attributes:
        shared: What belongs to the agent.
    """

    def __init__(self, settings: Settings) -> None:
        self.shared = shared = _opened(settings)
        super().__init__(shared)
        self.agent = Scope(shared.agent_id)
        self.now = settings.clock
        self._process = os.getpid()
        self._make_readers(shared)
        self._make_writers(shared)
        self._telemetry.opened(self._store)

    def _make_readers(self, shared: Shared) -> None:
        self.vectors = EntryVectorReader(shared)
        self.finder = Finder(shared, QueryVectors(shared, self._models.now))
        self.freshness = Freshness(shared)
        self.readiness = Readiness(shared, self.finder)
        self.lister = Lister(shared)
        self.vector_index = VectorIndexReader(shared)
        self.statistics = Statistics(shared)
        self._guard = self._guard_of(shared)

    def _guard_of(self, shared: Shared) -> "RecallGuard | None":
        if shared.settings.on_recalled == "store":
            return None
        from mnemic.repository.recall_guard import RecallGuard  # noqa: PLC0415 - rarely used

        return RecallGuard(shared, self.finder)

    def _make_writers(self, shared: Shared) -> None:
        new_vectors = NewVectors(shared)
        self._adder = Adder(shared, new_vectors)
        self.key_rotation = KeyRotation(shared)
        self.linker = Linker(shared)
        self.deleter = Deleter(shared)
        self.updater = Updater(shared, new_vectors)
        self.transfer = Transfer(shared, self._adder)
        self.reembedding = Reembedding(shared, self.finder, partial(QueryVectors, shared))
        if self._models.is_waiting:
            self.reembedding.begin()

    @property
    def time_zone(self) -> str:
        """The name of the memory's time zone, for calls that name none."""
        return self.shared.settings.time_zone or LOCAL

    @property
    def logs_content(self) -> bool:
        """Whether logs and events may show queries."""
        return self.shared.settings.log_content

    @property
    def meter(self) -> Meter:
        """The meter, for services."""
        return self._telemetry.meter

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

    @property
    def embedder_model(self) -> str | None:
        """Name of the embedder's model; None without an embedder."""
        embedder = self._models.embedder
        return None if embedder is None else embedder.model

    async def add(
        self,
        entries: Sequence[NewEntry],
        *,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
        may_repeat: bool = False,
        instead_of: Selection | None = None,
    ) -> AddedMemories:
        """Store checked entries of this agent, all or none.

        Args:
            entries: The entries.
            on_conflict: Treatment of an id that is stored already.
            on_duplicate: Treatment of a text that is stored already.
            on_embed_error: Treatment of a failing embedder.
            progress: Gets the number of embedded entries.
            may_repeat: Whether they may repeat memories that were returned lately.
            instead_of: Memories that they take the place of.

        Returns:
            The entries with their embeddings, or the existing ones, in the given order.
        """
        self._limits.require_storing()
        validation.word("on_conflict", on_conflict, _ON_CONFLICT)
        validation.word("on_duplicate", on_duplicate, _ON_DUPLICATE)
        validation.word("on_embed_error", on_embed_error, ON_EMBED_ERROR)
        checked_progress(progress)
        if not entries:
            return AddedMemories()
        repeats = {}
        if self._guard is not None and not may_repeat:
            repeats = await self._guard.repeated(entries, on_duplicate)
        with reporting(progress, "add_many") as report:
            added = await self._adder.add(
                entries,
                on_duplicate,
                on_embed_error,
                on_conflict=on_conflict,
                instead_of=instead_of,
                report=report,
            )
            report(len(entries), len(entries))
        stored = await self._adder.entries_of(added)
        if repeats:
            stored = await self._flagged(added, stored, repeats)
        return AddedMemories(stored, added.stored.evicted)

    async def _flagged(
        self, added: AdditionResult, stored: list[MemoryEntry], repeats: dict[int, UUID]
    ) -> list[MemoryEntry]:
        """Flag those of stored entries that repeat others; those stored before are not."""
        for place, memory_id in repeats.items():
            if added.stored.is_new[place] or place in added.stored.replaced:
                entry = CheckedEntry.of(stored[place], repeats=memory_id)
                stored[place] = entry
                await self._telemetry.emit(REPEATED, entry_id=entry.id, repeats=memory_id)
        return stored

    def note_returned(self, entries: Mapping[int, MemoryEntry]) -> None:
        """Note memories that are returned to the program, for the guard against recall loops."""
        if self._guard is not None:
            self._guard.note(entries)

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, include_deleted: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories with these ids in a scope, and count accesses."""
        self._limits.require_storing()
        started, now = time.perf_counter(), self._now()
        if flag("include_forgotten", include_deleted):
            found = await run_blocking(
                lambda: self._store.read(EntriesById(scope, ids, now=now, include_deleted=True)),
                self._store,
            )
        elif len(ids) <= _FEW_IDS:
            found = self._cache.get(scope, ids, now)
        else:
            found = await run_blocking(lambda: self._cache.get(scope, ids, now), self._store)
        self._telemetry.record(READ, latency_ms=milliseconds_since(started))
        self._accesses.show_pending(dict(found.values()))
        if self.shared.settings.track_access:
            self._accesses.count(
                [row for row, entry in found.values() if entry.is_active(now)], now
            )
        entries = {entry_id: entry for entry_id, (_, entry) in found.items()}
        for entry in entries.values() if self._telemetry.is_enabled(RETRIEVED) else ():
            await self._telemetry.emit(
                RETRIEVED, entry_id=entry.id, type=entry.type, was_decrypted=entry.is_encrypted
            )
        return entries

    async def search(
        self, scope: Scope, search: Search, *, with_passages: bool = True
    ) -> SearchResults:
        """Return the best memories of a scope, best first.

        Args:
            scope: The scope.
            search: The request.
            with_passages: Whether long memories have passages, which take longer than the search.
        """
        started = time.perf_counter()
        outcome = await self.found(scope, search)
        found = await self._results(outcome, search.text) if with_passages else outcome.results()
        milliseconds = milliseconds_since(started)
        if not found and search.limit > 0 and search.offset == 0:
            hint = await self._user_hints.of("search", scope)
            found = msgspec.structs.replace(found, hint=hint)
        search_type = "keyword" if found.degraded else search.search_type
        await self._telemetry.searched(search_type, search.text or "", len(found), milliseconds)
        return found

    async def similar(self, scope: Scope, entry_id: UUID, search: Search) -> SearchResults | None:
        """Return the memories of a scope most similar to one of it; None if it is not in the scope.

        The stored vectors of that memory are the query; reading it does not count as an access.

        Args:
            scope: The scope.
            entry_id: Id of the memory.
            search: The request; its text becomes the memory's content.
        """
        like = await self.like(scope, entry_id, search)
        if like is None:
            return None
        started = time.perf_counter()
        found = await self._results(await self.found(scope, like.search), like.search.text)
        milliseconds = milliseconds_since(started)
        await self._telemetry.searched(
            "similar",
            like.entry.content,
            len(found),
            milliseconds,
            is_sensitive=like.entry.hides_content,
        )
        return found

    async def _results(self, found: SearchOutcome, query: str | None) -> SearchResults:
        """Return found memories as a result, the long ones with their passages."""
        if query is None and any(hit.similarity is not None for hit in found.hits):
            query = ""  # they were found by a vector
        chunks = {hit.row: hit.chunk for hit in found.hits}
        passages = await self.passages(chunks, found.entries, query)
        return found._replace(passages=passages).results()

    async def passages(
        self,
        chunks: Mapping[int, int | None],
        entries: Mapping[int, MemoryEntry],
        query: str | None,
    ) -> Mapping[int, Passage]:
        """Return the passages of the long ones of found memories, by row.

        Args:
            chunks: The rows, best first, each with the number of the chunk nearest to the query.
            entries: The memories of these rows.
            query: What they were found by; None was no query, and there are no passages.
        """
        long = [] if query is None else [row for row in chunks if is_long(entries[row].content)]
        read = accumulate(len(entries[row].content) + len(query or "") for row in long)
        long = [row for row, characters in zip(long, read, strict=True) if characters <= MOST_READ]
        if query is None or not long:
            return {}
        return await run_blocking(
            lambda: {row: self._passage(entries[row], query, chunks[row]) for row in long},
            self._store,
        )

    def _passage(self, entry: MemoryEntry, query: str, chunk: int | None) -> Passage:
        embedder = self._models.now.embedder
        near = None
        if embedder is not None and chunk is not None:
            near = embedder.chunk_span(entry.content, chunk)
        return passage_of(entry, query, near)

    async def like(self, scope: Scope, entry_id: UUID, search: Search) -> SimilaritySearch | None:
        """Return the search for the memories most similar to one of a scope, without itself.

        Args:
            scope: The scope.
            entry_id: Id of the memory; None is returned if it is not in the scope.
            search: The request; its text becomes the memory's content.
        """
        located = await self.locate(scope, entry_id)
        if located is None:
            return None
        row, entry = located
        exclude = (entry_id, *search.exclude)
        search = msgspec.structs.replace(search, text=entry.content, exclude=exclude, like=row)
        return SimilaritySearch(self.vectors.like(search, row), entry)

    def found(
        self, scope: Scope, search: Search, find: Find | None = None
    ) -> Awaitable[SearchOutcome]:
        """Return the best memories of a scope, without blocking an event loop.

        Args:
            scope: The scope.
            search: The request, which those that are awaited together know of each other.
            find: Finds the memories; `find` for the verbs of a memory, unless given.
        """
        # One piece of work: each change to another thread takes as long as a short search.
        return run_blocking(
            lambda: (
                self.find(scope, search, SEARCHING_BY_MEANING)
                if find is None
                else find(scope, search)
            ),
            self._store,
            announced=self.finder.vectors.announced(scope, search),
        )

    def find(
        self,
        scope: Scope,
        search: Search,
        *needs: Need,
        expansion: Expansion | None = None,
        is_returned: bool = True,
    ) -> SearchOutcome:
        """Return the best memories of a scope, best first; runs in the caller's thread.

        The only way to a ranking: license, index, vectors, ranking, memories. It publishes no event
        and counts no access.

        Args:
            scope: Only its memories are ranked.
            search: The query, the filters and the ranking.
            needs: Licensed features, where the search compares vectors.
            expansion: Neighbours to find with them; see `Finder.find`.
            is_returned: Whether the program gets the memories.

        Raises:
            DeadlineExceededError: If the search's deadline passes.
            EmbedderRequiredError: If it compares vectors, and there is no embedder.
            EmbeddingError: If the embedder fails, and the search does not fall back to keywords.
            LicenseRestrictionError: If the license policy does not allow it.
            StoreError: If the store cannot be read.
        """
        by_meaning = search.uses_meaning
        self._limits.require(STORING, *(needs if by_meaning else ()))
        if search.needs_embedder:
            self.check_embedder()
        is_wanted = search.limit or search.with_total
        if not is_wanted:
            return SearchOutcome([], {}, None)
        found = self.finder.find(scope, search, expansion)
        if self._guard is not None and is_returned:
            self._guard.note(found.entries)
        return found

    def lineages(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        max_versions: int,
        deadline: float | None = None,
    ) -> list[Lineage]:
        """Return each memory with its earlier versions; see `LineageReader.lineages`."""
        self._limits.require_storing()
        return LineageReader(self.shared).lineages(scope, entries, max_versions, deadline)

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change that this process commits; see `Store.watch`."""
        self._store.watch(listener)

    async def stored(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, MemoryEntry]:
        """Return the memories with these ids in a scope, in any state, without counting that."""
        self._limits.require_storing()
        found = await run_blocking(
            lambda: self._store.read(
                EntriesById(scope, ids, now=self._now(), include_deleted=True)
            ),
            self._store,
        )
        return {entry_id: entry for entry_id, (_, entry) in found.items()}

    async def locate(self, scope: Scope, entry_id: UUID) -> EntryRow | None:
        """Return a memory of a scope and its row without counting that as an access."""
        return self._store.read(EntriesById(scope, [entry_id], now=self._now())).get(entry_id)

    async def touch(
        self, scope: Scope, ids: Sequence[UUID], expires_at: object | None = None
    ) -> None:
        """Count an access of the memories with these ids in a scope, and renew their expiry."""
        self._limits.require_storing()
        now = self._now()
        if expires_at is not None:
            await self.updater.set_expiry(scope, ids, checked_expiry(expires_at))
        if self.shared.settings.read_only:
            return
        found = await run_blocking(lambda: self._cache.get(scope, ids, now), self._store)
        self._accesses.count([row for row, _ in found.values()], now)

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

    async def create_vector_index(self) -> bool:
        """Build the approximate index of the store; see `BuildVectorIndex`."""
        self._limits.require_storing()
        if not self._store.searches_vectors:
            return False
        return await run_blocking(
            lambda: self._store.write(BuildVectorIndex(self.agent_id)).result(), self._store
        )

    async def backup(
        self, target: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Copy everything in the file, all agents', as of one moment, to a new file."""
        self._limits.require_storing()
        file = validation.path("path", target)
        with reporting(progress, "backup") as report:
            await self._accesses.write()
            await run_blocking(lambda: self._store.backup(file, report=report), self._store)

    async def rotate_key(
        self, key: bytes | MasterKey | KeyProvider, *, progress: Progress | None = None
    ) -> int:
        """Seal under another key from now on, and all that is sealed; return how many."""
        self._limits.require_storing()
        with reporting(progress, "rotate_key") as report:
            return await self.key_rotation.rotate(key, report)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Read the whole file and compare it with its checksums; see `Store.verify`."""
        self._limits.require_storing()
        flag("repair", repair)
        with reporting(progress, "verify") as report:
            return await run_blocking(
                lambda: self._store.verify(repair=repair, report=report), self._store
            )

    async def audit(
        self,
        scope: Scope,
        request: AuditRequest,
        patterns: Sequence["str | RedactionPattern"],
        *,
        progress: Progress | None = None,
    ) -> MemoryAudit:
        """Count the memories of a scope that may need attention; see `Memory.audit`."""
        from mnemic.repository.audit import Audit  # noqa: PLC0415 - rarely needed
        from mnemic.repository.secret_scan import SecretScan  # noqa: PLC0415 - as above

        self._limits.require_storing()
        secrets = SecretScan(patterns)
        with reporting(progress, "audit") as report:
            await self._accesses.write()
            audited = await run_blocking(
                lambda: Audit(self.shared, scope, request, secrets).run(report), self._store
            )
        if audited.stored:
            return audited
        return msgspec.structs.replace(audited, hint=await self._user_hints.of("audit", scope))

    async def reembed(
        self,
        embedder: "AnyEmbedder | Literal['minilm'] | None",
        embedding_model: str | None,
        *,
        progress: Progress | None,
        skip_failed: bool,
    ) -> ReembedReport:
        """Embed all memories by another embedder, and use its vectors; see `Memory.reembed`."""
        validation.optional_name("embedding_model", embedding_model)
        flag("skip_failed", skip_failed)
        checked_progress(progress)
        chosen = None if embedder is None else chosen_embedder(embedder, embedding_model)
        return await self.reembedding.run(chosen, progress, skip_failed=skip_failed)

    def check_embedder(self) -> None:
        """Raise EmbedderRequiredError if there is no embedder."""
        if self._models.embedder is None:
            raise EmbedderRequiredError(
                "this memory was opened with embedder=None, and searching by meaning needs one; "
                "open it with an embedder, give the query's vector, or search by keywords"
            )
