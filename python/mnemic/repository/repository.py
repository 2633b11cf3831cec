"""One agent's memories: what joins store, index and embedder, one method for each thing done.

Methods take a scope that is checked already. The doors above give them their documented names and
arguments: `mnemic.long_term` those of document 003, `mnemic.memory` those of everyday use.
"""

import base64
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypedDict, cast, get_args
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.description import described, quoted
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    FilterError,
    InvalidArgumentError,
    MnemicError,
    StorageQuotaExceededError,
)
from mnemic.index import Index, LinkedRow, LinkSearch, RankedRow, RankRequest
from mnemic.licensing import (
    SEARCHING_BY_MEANING,
    STORING,
    LicensePolicy,
    Need,
    Quota,
    checked_policy,
)
from mnemic.model import (
    DeleteResult,
    Expression,
    ImportResult,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryLink,
    MemoryPage,
    NewEntry,
    OnDuplicate,
    OnEmbedError,
    Scope,
    Search,
    SearchHit,
    SearchResults,
    State,
    UuidFactory,
    VerifyReport,
    Weights,
    parse_filter,
    validation,
)
from mnemic.model.validation import flag, items, optional_uuid
from mnemic.new_files import typed
from mnemic.observability.events import Events
from mnemic.observability.metrics import Meter
from mnemic.observability.telemetry import Telemetry, milliseconds_since
from mnemic.protocols import Clock, IdFactory, Progress, Source, Target, system_clock
from mnemic.repository.access_buffer import AccessSpacing
from mnemic.repository.entry_cache import EntryCache
from mnemic.repository.index_sync import IndexSync
from mnemic.store import Direction, LogPosition, PageCursor, SqliteStore
from mnemic.store.base import LinkEnd, Located, Stored
from mnemic.store.sqlite.row_codec import from_microseconds, to_microseconds
from mnemic.sync_bridge import run_blocking, run_sync

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

_MICROSECOND = timedelta(microseconds=1)

RETENTION = timedelta(days=90)
"""How long a forgotten memory can be restored (R034, C097)."""


_ON_DUPLICATE: tuple[str, ...] = get_args(OnDuplicate)
_ON_EMBED_ERROR: tuple[str, ...] = get_args(OnEmbedError)
_DIRECTIONS: tuple[str, ...] = get_args(Direction)

MIN_NORM = 1e-10
"""A vector shorter than this is like none (R261)."""

MAX_ROUNDS = 4
"""How often memories of several states are looked at while others keep changing them."""

# Reading an entry takes about 30 µs; more of them at once go to a thread.
_FEW_IDS = 16


class Options(TypedDict, total=False):
    """What a memory may be opened with.

    Attributes:
        embedder: Anything with `model`, `dimensions` and `embed(texts)`; the local MiniLM unless
            given. With None, memories are stored and read, and searching by meaning is refused.
        license: The host's license policy, such as `DocumentedLicenses(tier)`. What it does not
            include is refused with `LicenseRestrictionError`, and what its quota leaves no room
            for with `StorageQuotaExceededError`. With None nothing is checked.
        quota: How many bytes of content an agent may store; of two limits the smaller one holds.
            None is no limit beside the license's.
        clock: Gives the time, aware and in UTC.
        id_factory: Makes an id for a time.
        log_content: Show queries in logs and events, cut to 50 characters; otherwise only how long
            they are. Nothing else of a memory is shown, and nothing at all of a sensitive one.
        track_access: Count reading a memory by its id as an access (C090). True unless given.
        read_only: Change nothing of the file, which must be there: writes are refused with
            `ReadOnlyError`, and accesses are not counted.
    """

    embedder: "Embedder | Literal['minilm'] | None"
    license: LicensePolicy | None
    quota: int | None
    clock: Clock
    id_factory: IdFactory | None
    log_content: bool
    track_access: bool
    read_only: bool


class _AddResult(NamedTuple):
    """What was given, and what became of it."""

    given: Sequence[NewEntry]
    stored: Stored
    fresh: list[MemoryEntry]


class Searchable(Protocol):
    """A memory or a view of one, as services take it."""

    @property
    def repository(self) -> "Repository":
        """What joins its store and its index."""
        ...

    @property
    def scope(self) -> Scope:
        """Whose memories it sees."""
        ...


def checked_memory(memory: object) -> Searchable:
    """Return what a service is made for, if it is a memory or a view of one."""
    of = getattr(memory, "repository", None), getattr(memory, "scope", None)
    if not (isinstance(of[0], Repository) and isinstance(of[1], Scope)):
        raise InvalidArgumentError(
            "memory must be a Memory, an AsyncMemory, a LongTermMemory or a view of one, got "
            f"{described(memory)}"
        )
    return cast("Searchable", memory)


class FoundPage(NamedTuple):
    """What a search found, as an answer that is kept needs it.

    Attributes:
        ranked: Rows, best first, with what their scores are made of.
        entries: The memories of these rows.
        total: How many match in all; None unless that was asked for.
        degraded: Whether the embedder failed, so that a hybrid search was answered by keywords.
    """

    ranked: list[RankedRow]
    entries: dict[int, MemoryEntry]
    total: int | None
    degraded: bool = False


class LinkedPage(NamedTuple):
    """What links lead to.

    Attributes:
        reached: Rows, the strongest path first.
        entries: The memories of these rows.
        total: How many there are.
    """

    hits: list[LinkedRow]
    entries: dict[int, MemoryEntry]
    total: int


class Repository:
    """One agent's memories in one store.

    Args:
        url: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memories.
        embedder: See `Options`, and for all that follow.
        license: As above.
        quota: As above.
        clock: As above.
        id_factory: As above.
        log_content: As above.
        track_access: As above.
        read_only: As above.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        agent_id: str,
        *,
        embedder: "Embedder | Literal['minilm'] | None" = "minilm",
        license: LicensePolicy | None = None,  # noqa: A002 - the field's name everywhere
        quota: int | None = None,
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
        log_content: bool = False,
        track_access: bool = True,
        read_only: bool = False,
    ) -> None:
        validation.path("path", url)
        validation.function("clock", clock)
        validation.optional_function("id_factory", id_factory)
        self.license = checked_policy(license)
        self._own_quota = (
            None if quota is None else Quota(validation.whole("quota", quota, minimum=0))
        )
        named = Scope(agent_id)
        self.now = clock
        self.id_factory = UuidFactory() if id_factory is None else id_factory
        self.events = Events()
        self._logs_content = flag("log_content", log_content)
        given = _local_embedder() if embedder == "minilm" else embedder
        self._embedder = None if given is None else ValidatedEmbedder(given)
        self._is_read_only = flag("read_only", read_only)
        self._track_access = flag("track_access", track_access) and not read_only
        self._store = SqliteStore(url, read_only=read_only)
        self.path = self._store.path
        try:
            self.agent = Scope(run_sync(self._store.stored_agent_id(named.agent_id)))
            self._telemetry = Telemetry(
                self.agent_id, self.events, clock, logs_content=self._logs_content
            )
            if self._embedder is not None:
                self._embedder.on_embedded = self._telemetry.record_embedding
            self._cache = EntryCache(self._store, self.agent_id)
            self._sync = self._new_sync(State.ACTIVE)
        except BaseException:
            self._close_embedder()
            run_sync(self._store.close())
            raise
        self._syncs = {State.ACTIVE: self._sync}
        self._syncs_lock = threading.Lock()
        self._spacing = AccessSpacing()
        self._telemetry.opened(self._store)

    def _close_embedder(self) -> None:
        if self._embedder is not None:
            self._embedder.close()

    def _new_sync(self, state: State) -> IndexSync:
        can_write = not self._is_read_only
        return IndexSync(
            self._store, self.agent_id, self._embedder, can_write=can_write, state=state
        )

    def _sync_of(self, state: State) -> IndexSync:
        """Return the follower of a state; those of what is no more are made when they are asked."""
        with self._syncs_lock:
            if state not in self._syncs:
                self._syncs[state] = self._new_sync(state)
            return self._syncs[state]

    @property
    def logs_content(self) -> bool:
        """Whether logs and events may show queries."""
        return self._logs_content

    @property
    def meter(self) -> Meter:
        """What measures, for services that do so too."""
        return self._telemetry.meter

    @property
    def agent_id(self) -> str:
        """Whose memories these are."""
        return self.agent.agent_id

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors."""
        return None if self._embedder is None else self._embedder.embedder

    @property
    def similarity_floor(self) -> float | None:
        """The embedder's own least cosine of what is similar (C151); None where it has none."""
        floor: float | None = getattr(self.embedder, "similarity_floor", None)
        return floor

    async def add(
        self,
        entries: Sequence[NewEntry],
        *,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> list[MemoryEntry]:
        """Store checked entries of this agent, all or none.

        Returns:
            Them with their embeddings, or what was there already, in the given order.
        """
        self._check_license()
        _check_choice("on_duplicate", on_duplicate, _ON_DUPLICATE)
        _check_choice("on_embed_error", on_embed_error, _ON_EMBED_ERROR)
        if not entries:
            return []
        added = await self._add(entries, on_duplicate, on_embed_error)
        if len(added.fresh) == len(entries):
            return added.fresh
        return await self._stored_entries(added)

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, include_forgotten: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories of these ids that a scope has, and count that as an access."""
        self._check_license()
        begun, now = time.perf_counter(), self.now()
        # Coroutines of the store begin where they run: a call that is cancelled leaves none behind.
        if flag("include_forgotten", include_forgotten):
            found = await run_blocking(
                lambda: run_sync(self._store.located(scope, ids, now=now, include_forgotten=True))
            )
        elif len(ids) <= _FEW_IDS:
            found = self._cache.get(scope, ids, now)
        else:
            found = await run_blocking(lambda: self._cache.get(scope, ids, now))
        self._telemetry.record_retrieval(begun)
        if self._track_access:
            self._count([row for row, entry in found.values() if entry.is_active(now)], now)
        entries = {entry_id: entry for entry_id, (_, entry) in found.items()}
        for entry in entries.values():
            await self._telemetry.retrieved(entry)
        return entries

    async def search(self, scope: Scope, search: Search) -> SearchResults:
        """Return the best memories of a scope, best first.

        Args:
            scope: Where to look.
            search: What to look for, and by what to rank.
        """
        found, milliseconds = await self._timed(search, lambda: self._search(scope, search))
        search_type = "keyword" if found.degraded else search.search_type
        await self._telemetry.searched(search_type, search.text or "", len(found), milliseconds)
        return found

    async def similar(self, scope: Scope, entry_id: UUID, search: Search) -> SearchResults | None:
        """Return the memories of a scope nearest to one of it, without itself; None if it has not.

        Its stored vectors are the query. That it was looked up is no access.

        Args:
            scope: Where to look.
            entry_id: Nearest to what.
            search: By what to rank; the memory's content is its text.
        """
        located = await self.locate(scope, entry_id)
        if located is None:
            return None
        row, entry = located
        search = msgspec.structs.replace(search, text=entry.content, exclude=(entry_id,))
        found, milliseconds = await self._timed(search, lambda: self._search(scope, search, row))
        await self._telemetry.searched(
            "similar", entry.content, len(found), milliseconds, is_sensitive=entry.sensitive
        )
        return found

    async def _timed(
        self, search: Search, searched: Callable[[], SearchResults]
    ) -> tuple[SearchResults, float]:
        """Return what a search that is allowed finds, and the milliseconds it takes."""
        begun = time.perf_counter()
        needs = (STORING, SEARCHING_BY_MEANING) if search.uses_meaning else (STORING,)
        self.require(*needs)
        if search.uses_meaning:
            self.check_embedder()
        # All in one piece of work: each change to another thread takes as long as a short search.
        found = await run_blocking(searched) if search.limit else SearchResults(())
        return found, milliseconds_since(begun)

    async def matching(
        self, scope: Scope, wanted: MemoryFilter | Mapping[str, Any]
    ) -> list[MemoryEntry]:
        """Return the memories of a scope that match a filter, in the order it names."""
        self._check_license()
        if not isinstance(wanted, MemoryFilter | Mapping):
            raise FilterError(f"filter must be a MemoryFilter or a dict, got {described(wanted)}")
        page = wanted if isinstance(wanted, MemoryFilter) else MemoryFilter(where=wanted)
        expression = parse_filter(page)
        now = self.now()
        await self.write_accesses()
        # Filters may look at every memory of the agent.
        return await run_blocking(
            lambda: run_sync(self._store.matching(scope, expression, page, now=now))
        )

    async def page(
        self,
        scope: Scope,
        *,
        limit: int,
        cursor: str | None,
        wanted: MemoryFilter | Mapping[str, Any] | None,
        include_forgotten: bool,
    ) -> MemoryPage:
        """Return the memories of a scope from a cursor on, newest first."""
        self._check_license()
        check_limit(limit)
        flag("include_forgotten", include_forgotten)
        after = None if cursor is None else _place(cursor)
        expression = parse_filter(wanted)
        if isinstance(wanted, MemoryFilter):
            include_forgotten = include_forgotten or wanted.include_forgotten
        now = self.now()
        await self.write_accesses()
        entries = await run_blocking(
            lambda: run_sync(
                self._store.page(
                    scope,
                    expression,
                    after,
                    limit + 1,
                    now=now,
                    include_forgotten=include_forgotten,
                )
            )
        )
        shown = tuple(entries[:limit])
        has_more = len(entries) > limit
        return MemoryPage(shown, _cursor(scope, shown[-1]) if has_more else None)

    async def update(
        self, scope: Scope, entry_id: UUID, update: MemoryEntryUpdate
    ) -> MemoryEntry | None:
        """Change a memory of a scope; return it as it is then, or None if there is none."""
        self._check_license()
        if not isinstance(update, MemoryEntryUpdate):
            raise InvalidArgumentError(
                f"update must be a MemoryEntryUpdate, got {described(update)}"
            )
        now = self.now()
        if update.is_empty:
            return (await self._store.get(scope, [entry_id], now=now)).get(entry_id)
        content, embedder, embedded = update.content, self._embedder, None
        if content is not None and embedder is not None:
            (parts,) = await run_blocking(lambda: embedder.embed_chunked([content]))
            embedded = embedder.model, parts
        entry = await self._store.update(
            scope,
            entry_id,
            lambda stored: update.applied_to(stored, now),
            embedded,
            now=now,
            quota=self.quota,
            include_archived=update.status is not None,
        )
        await self._sync.refresh()
        if entry is not None:
            await self._telemetry.updated(entry, content_changed=update.content is not None)
            if self.quota is not None:
                await self._warn_of_quota(self.quota)
        return entry

    async def forget(
        self, scope: Scope, entry_id: UUID, *, permanent: bool = False
    ) -> DeleteResult:
        """Forget a memory of a scope, or delete it for good; return how many that were."""
        self._check_license()
        is_new: bool | None
        if flag("permanent", permanent):
            is_new = bool(await self._store.delete(scope, entry_id)) or None
        else:
            is_new = await self._store.forget(scope, entry_id, self.now())
        await self._sync.refresh()
        if is_new:
            await self._telemetry.forgotten(entry_id, permanent=permanent)
        return await self._delete_result(int(is_new is not None), permanent=permanent)

    async def forget_all(self, scope: Scope, *, permanent: bool) -> DeleteResult:
        """Forget all memories of a scope, or delete them for good; return how many."""
        self._check_license()
        if flag("permanent", permanent):
            ids = await self._store.delete_all(scope)
        else:
            ids = await self._store.forget_all(scope, self.now())
        await self._sync.refresh()
        await self._telemetry.emptied(scope, ids, permanent=permanent)
        return await self._delete_result(len(ids), permanent=permanent)

    async def restore(self, scope: Scope, entry_id: UUID) -> bool:
        """Take a memory of a scope back; return False if there is none to take back."""
        self._check_license()
        now = self.now()
        restored = await self._store.restore(scope, entry_id, oldest=now - RETENTION, now=now)
        await self._sync.refresh()
        return restored

    async def purge(self, scope: Scope) -> DeleteResult:
        """Delete for good what a scope forgot, or what expired, too long ago; return how many."""
        self._check_license()
        ids = await self._store.purge(scope, self.now() - RETENTION)
        await self._sync.refresh()
        await self._telemetry.purged(ids)
        return await self._delete_result(len(ids), permanent=True)

    async def raise_importance(self, scope: Scope, entry_id: UUID, by: float) -> MemoryEntry | None:
        """Add to a memory's importance, to 1 at most; return it as it is then."""
        self._check_license()
        now = self.now()

        def raised(stored: MemoryEntry) -> MemoryEntry:
            update = MemoryEntryUpdate(importance=min(1.0, stored.importance + by))
            return update.applied_to(stored, now)

        entry = await self._store.update(scope, entry_id, raised, now=now)
        await self._sync.refresh()
        if entry is not None:
            await self._telemetry.updated(entry, content_changed=False)
        return entry

    async def peek(self, scope: Scope, entry_id: UUID) -> MemoryEntry | None:
        """Return a memory of a scope without counting that as an access."""
        found = await self.locate(scope, entry_id)
        return None if found is None else found.entry

    async def locate(self, scope: Scope, entry_id: UUID) -> Located | None:
        """Return a memory of a scope and its row without counting that as an access."""
        return (await self._store.located(scope, [entry_id], now=self.now())).get(entry_id)

    def record_accesses(self, rows: Sequence[int]) -> None:
        """Count accesses of memories that were found; nothing where they are not tracked.

        Args:
            rows: Those of the memories.
        """
        if self._track_access and rows:
            self._count(rows, self.now())

    def record_spaced_accesses(
        self, accessed: Mapping[int, datetime | None], interval: timedelta
    ) -> None:
        """Count accesses of memories, but none within an interval after the last that counted.

        Of calls that come at once one counts. Accesses through another opening of the file are
        known once they are written down.

        Args:
            accessed: When each row was last read, as the caller read it; None is never.
            interval: How long no further access counts.
        """
        if not (self._track_access and accessed):
            return
        last = {row: None if at is None else to_microseconds(at) for row, at in accessed.items()}
        with self._spacing.lock:
            for sync in list(self._syncs.values()):
                for row, at in zip(last, sync.last_accesses(list(last)), strict=True):
                    last[row] = _later(last[row], at)
            now = self.now()
            rows = self._spacing.due(last, to_microseconds(now), interval // _MICROSECOND)
            if rows:
                self._count(rows, now)

    def _count(self, rows: Sequence[int], now: datetime) -> None:
        for sync in list(self._syncs.values()):  # before they may be on disk
            sync.record_accesses(rows, to_microseconds(now))
        self._store.touch(self.agent_id, rows, now)

    async def touch(self, scope: Scope, ids: Sequence[UUID]) -> None:
        """Count an access of those of these memories that a scope has."""
        self._check_license()
        now = self.now()
        if self._is_read_only:
            return
        found = await run_blocking(lambda: self._cache.get(scope, ids, now))
        self._count([row for row, _ in found.values()], now)

    async def link(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str, strength: float
    ) -> MemoryLink:
        """Write a link between two memories of a scope; return it as it is then."""
        self._check_license()
        wanted = MemoryLink(from_id, to_id, _own_type(kind), strength, self.now())
        written = await self._store.link(scope, wanted, now=wanted.created_at)
        await self._sync.refresh()
        return written

    async def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str | None
    ) -> int:
        """Delete links from one memory of a scope to another; return how many."""
        self._check_license()
        own_type = None if kind is None else _own_type(kind)
        deleted = await self._store.unlink(scope, from_id, to_id, own_type)
        await self._sync.refresh()
        return deleted

    async def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType | str] | None,
    ) -> list[MemoryLink]:
        """Return the links of a memory of a scope, oldest first."""
        self._check_license()
        _check_choice("direction", direction, _DIRECTIONS)
        types = None if kinds is None else {LinkType.parse(kind) for kind in items("types", kinds)}
        return await self._store.links(scope, entry_id, direction, types, now=self.now())

    async def export(
        self,
        scope: Scope,
        target: Target,
        *,
        include_forgotten: bool,
        embeddings: bool,
        overwrite: bool,
        progress: Progress | None,
    ) -> int:
        """Write the memories of a scope and the links between them; return how many memories."""
        try:
            from mnemic.repository.export import Part, export  # noqa: PLC0415 - slow to import, rarely needed
        except OSError as error:  # no descriptor is left to read it by
            raise typed(error, str(target)) from error

        self._check_license()
        flag("include_forgotten", include_forgotten)
        flag("embeddings", embeddings)
        flag("overwrite", overwrite)
        validation.optional_function("progress", progress)
        if embeddings and self._embedder is None:
            raise EmbedderRequiredError(
                "this memory was opened with embedder=None, and which vectors to export is told by "
                "the embedder; open it with one, or leave embeddings out"
            )
        await self.write_accesses()
        model = self._embedder.model if embeddings and self._embedder is not None else None
        part = Part(scope, self.now(), include_forgotten, model)
        return await run_blocking(
            lambda: export(self._store, part, target, overwrite=overwrite, progress=progress)
        )

    async def import_(
        self, scope: Scope, source: Source, *, progress: Progress | None
    ) -> ImportResult:
        """Store what an export holds and this memory has not; all of it is checked before."""
        from mnemic.repository.export import Importer  # noqa: PLC0415 - as above

        self._check_license()
        validation.optional_function("progress", progress)

        async def add(entries: Sequence[NewEntry]) -> int:
            return len((await self._add(entries, "keep", "raise", is_import=True)).fresh)

        importer = Importer(self._store, scope, add, self._is_model)
        return await importer.read(source, self.now(), progress)

    async def count(self, scope: Scope) -> int:
        """Return how many memories of a scope a search can find."""
        self._check_license()
        return await self._store.count(scope, now=self.now())

    async def stats(self, scope: Scope) -> LongTermMemoryStats:
        """Return what a scope holds; what the embedder did is told with all users alone."""
        self._check_license()
        now, quota = self.now(), self.quota
        stored = await run_blocking(lambda: run_sync(self._store.stats(scope, now=now)))
        if quota is not None:
            used = await self._store.used_bytes(self.agent_id)
            stored = msgspec.structs.replace(
                stored, storage_bytes_used=used, storage_bytes_limit=quota.limit
            )
        if self._embedder is None or not scope.all_users:
            return stored
        return msgspec.structs.replace(
            stored,
            average_embedding_time_ms=self._embedder.average_ms,
            total_embeddings_generated=self._embedder.embedded,
        )

    async def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        self._telemetry.closed()
        if self._embedder is not None and self._embedder.has_loop:
            await run_blocking(self._close_embedder)  # it waits for what is cancelled
        self._close_embedder()
        with self._syncs_lock:
            syncs = list(self._syncs.values())
        for sync in syncs:
            sync.stop()
        await self._store.close()

    async def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy everything in the file, all agents', as of one moment, to a new file."""
        self._check_license()
        validation.path("path", target)
        await self.write_accesses()
        await self._store.backup(target)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Walk through the whole file and compare it with its checksums; see `Store.verify`."""
        self._check_license()
        flag("repair", repair)
        validation.optional_function("progress", progress)
        return await self._store.verify(repair=repair, progress=progress)

    async def write_accesses(self) -> None:
        """Write down the accesses noted so far."""
        if not self._is_read_only:
            await self._store.write_accesses()

    async def _delete_result(self, count: int, *, permanent: bool) -> DeleteResult:
        """Return a count of deleted memories, and whether their bytes are gone (C175)."""
        if permanent and count:
            await self._reset_quota_warnings()
        # Asked even if nothing was deleted now: an earlier deletion may have left its bytes.
        return DeleteResult(count, erased=permanent and await self._store.erase())

    async def erase_pending(self) -> bool:
        """Erase the bytes that earlier deletions left; return whether none are left now."""
        self._check_license()
        return await self._store.erase()

    def check_embedder(self) -> None:
        """Refuse what needs vectors where there is no embedder.

        Raises:
            EmbedderRequiredError: If there is none.
        """
        if self._embedder is None:
            raise EmbedderRequiredError(
                "this memory was opened with embedder=None, and searching by meaning needs one; "
                "open it with an embedder, or search by keywords"
            )

    def rank(self, scope: Scope, search: Search, like: int | None = None) -> FoundPage:
        """Return the best memories of a scope, told to nobody; runs in the caller's thread.

        Args:
            scope: Where to look.
            search: What to look for, and by what to rank.
            like: The row of a memory whose stored vectors are the query, in place of the text's.
        """
        position = self._sync.catch_up(with_accesses=search.uses_accesses)
        now = self.now()
        try:
            wanted = self._request(scope, search, to_microseconds(now), like)
        except EmbeddingError as error:
            fallback = search.fallback
            if fallback is None:
                raise
            self._telemetry.falls_back(error)
            return self.rank(scope, fallback)._replace(degraded=True)
        if wanted.vectors is not None and self._sync.has_retries:
            # The embedder has just answered: memories that it failed on are found at once.
            position = self._sync.catch_up(with_accesses=search.uses_accesses)
        others = [state for state in search.states if state is not State.ACTIVE]
        if not others:
            return self._rank_active(scope, wanted, now, position)

        def looked(wanted: RankRequest, position: LogPosition) -> FoundPage:
            living = self._rank_active(scope, wanted, now, position)
            of_others = [self._rank_state(scope, state, wanted, now) for state in others]
            return _merged([living, *of_others], wanted)

        if search.is_relative:  # no index knows the best match of all
            found = looked(_best_match_request(wanted), position).ranked
            best = found[0].score if found and found[0].score > 0 else None
            wanted = msgspec.structs.replace(wanted, best_match=best)
        page = looked(wanted, position)
        for _ in range(MAX_ROUNDS - 1):
            if self.position().seq == position.seq:
                break
            # What changed its state between two looks would be in neither answer.
            position = self._sync.catch_up(with_accesses=search.uses_accesses)
            page = looked(wanted, position)
        return page

    def _rank_active(
        self, scope: Scope, wanted: RankRequest, now: datetime, position: LogPosition
    ) -> FoundPage:
        limit = wanted.limit
        while True:
            answer = self._sync.index.rank(wanted)
            ranked = answer.ranked
            entries = self._ranked_entries(scope, ranked, now, position)
            if len(entries) >= limit or len(ranked) < wanted.limit:
                there = [hit for hit in ranked if hit.row in entries]
                return FoundPage(there[:limit], entries, answer.total)
            # Some were deleted between the ranking and the reading: look further down.
            wanted = msgspec.structs.replace(wanted, limit=2 * wanted.limit + 8)

    def _rank_state(
        self, scope: Scope, state: State, wanted: RankRequest, now: datetime
    ) -> FoundPage:
        """Return the best memories of a state; of what is no more, nothing is kept in memory."""
        sync = self._sync_of(state)
        sync.catch_up(with_accesses=True)
        answer = sync.index.rank(wanted)
        rows = [hit.row for hit in answer.ranked]
        found = run_sync(self._store.get_rows(scope, rows, now=now, include_forgotten=True))
        entries = _with_accesses(found, sync.index)
        return FoundPage(
            [hit for hit in answer.ranked if hit.row in entries], entries, answer.total
        )

    def linked(
        self,
        scope: Scope,
        row: int,
        kinds: Collection[LinkType] | None,
        direction: Direction,
        *,
        depth: int,
        limit: int,
        where: Expression | None,
        with_accesses: bool,
    ) -> LinkedPage:
        """Return the living memories of a scope that links lead to.

        Args:
            scope: Only memories of it are walked through, and found.
            row: That of the memory where to begin, one of the scope; see `row_of`.
            kinds: Only links of these types; None follows all.
            direction: Which way.
            depth: Most links on a path, 1 to 3.
            limit: How many memories at most.
            where: Only memories that match are found, and walked through; the first need not.
            with_accesses: Whether they show accesses that are not written down yet (C158).
        """
        position = self._sync.catch_up(with_accesses=with_accesses)
        now = self.now()
        wanted = LinkSearch(
            scope=scope,
            now=to_microseconds(now),
            row=row,
            direction=direction,
            kinds=sum(1 << kind for kind in (LinkType if kinds is None else set(kinds))),
            depth=depth,
            limit=limit,
            where=where,
        )
        hits, total = self._sync.index.linked(wanted)
        entries = self._ranked_entries(scope, hits, now, position)
        return LinkedPage([hit for hit in hits if hit.row in entries], entries, total)

    def row_of(self, scope: Scope, entry_id: UUID, *, include_outdated: bool = False) -> int | None:
        """Return the row of a living memory of a scope, of a present one if asked for."""
        now = self.now()
        if not include_outdated:
            return run_sync(self._store.row_of(scope, entry_id, now=now))
        found = run_sync(self._store.located(scope, [entry_id], now=now, include_forgotten=True))
        return next((row for row, entry in found.values() if entry.is_present(now)), None)

    def present(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the memories of these rows that a scope has, archived and superseded ones too."""
        now = self.now()
        found = run_sync(self._store.get_rows(scope, rows, now=now, include_forgotten=True))
        return {row: entry for row, entry in found.items() if entry.is_present(now)}

    def link_ends(
        self, scope: Scope, row: int, direction: Direction, kinds: Collection[LinkType] | None
    ) -> list[LinkEnd]:
        """Return what the links of a memory lead to among present ones, the oldest link first."""
        return run_sync(self._store.link_ends(scope, row, direction, kinds, now=self.now()))

    def related(
        self, scope: Scope, query: str, texts: list[tuple[str, float]], limit: int
    ) -> list[tuple[str, float]]:
        """Return words that belong to a query by what texts say, best first."""
        return self._sync.index.related(query, texts, scope, limit)

    def key_phrases(self, scope: Scope, text: str, limit: int) -> list[tuple[str, float]]:
        """Return phrases of a text that the user's memories hold, best first."""
        self._sync.catch_up()
        return self._sync.index.key_phrases(text, scope, limit)

    def similarity(self, row: int, text: str) -> float | None:
        """Return the cosine of a memory with a text; None where it lacks a vector."""
        embedder = self._embedder
        stored = None if embedder is None else self._stored_vectors(row, embedder)
        if embedder is None or stored is None:
            return None
        given = embedder.embed_chunked([text])[0]
        mine, theirs = (np.linalg.norm(rows, axis=1) for rows in (stored, given))
        lengths = mine[:, None] * theirs
        cosines = (stored @ given.T) / np.where(lengths > 0, lengths, 1)
        has_direction = (mine[:, None] >= MIN_NORM) & (theirs >= MIN_NORM)
        return float(np.where(has_direction, cosines, 0.0).max())

    def position(self) -> LogPosition:
        """Return where the agent's contents and accesses stand."""
        return run_sync(self._store.position(self.agent_id))

    def position_and_revision(self, scope: Scope) -> tuple[LogPosition, int]:
        """Return the agent's position, and a number that changes within a scope's walls raise."""
        return run_sync(self._store.position_and_revision(scope))

    def next_expiry(
        self, scope: Scope, since: datetime, states: Sequence[State] = (State.ACTIVE,)
    ) -> datetime | None:
        """Return when the first of the user's memories of some states found last expires."""
        now = to_microseconds(since)
        found = [self._sync_of(state).index.next_expiry(scope, now) for state in states]
        first = min((time for time in found if time is not None), default=None)
        return None if first is None else from_microseconds(first)

    def entries(
        self, scope: Scope, rows: Iterable[int], position: LogPosition, now: datetime
    ) -> dict[int, MemoryEntry]:
        """Return the living memories of these rows that a scope has.

        Accesses that are not written down yet are not shown (C158).
        """
        return self._cache.get_rows(scope, rows, now, position)

    def _ranked_entries(
        self,
        scope: Scope,
        hits: Sequence[RankedRow | LinkedRow],
        now: datetime,
        position: LogPosition,
    ) -> dict[int, MemoryEntry]:
        rows = [hit.row for hit in hits]
        entries = self._cache.get_rows(scope, rows, now, position)
        return _with_accesses(entries, self._sync.index)

    def _search(self, scope: Scope, search: Search, like: int | None = None) -> SearchResults:
        page = self.rank(scope, search, like)
        # Clamping is for display; the order was decided before (C156).
        hits = [
            SearchHit(page.entries[hit.row], min(1.0, max(0.0, hit.score)), hit.components)
            for hit in page.ranked
        ]
        return SearchResults(hits, degraded=page.degraded)

    def _request(self, scope: Scope, search: Search, now: int, like: int | None) -> RankRequest:
        vectors, context = self._vectors_of(scope, search, now, like)
        return RankRequest(
            scope=scope,
            now=now,
            limit=search.limit,
            ranking=search.ranking,
            text=search.text,
            vectors=vectors,
            context=context,
            where=search.where,
            exclude=[entry_id.bytes for entry_id in search.exclude],
            min_similarity=search.min_similarity,
            min_score=search.min_score,
            with_total=search.with_total,
            order=search.order,
            min_salience=search.min_salience,
            best_match=0.0 if search.is_relative else None,
            explain=search.explain,
        )

    def _vectors_of(
        self, scope: Scope, search: Search, now: int, like: int | None
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """Return the vectors of the query, shape (m, dim), and of the context, (dim,)."""
        embedder = self._embedder
        if embedder is None or not search.uses_meaning:
            return None, None
        stored = None if like is None else self._stored_vectors(like, embedder)
        texts = self._query_texts(scope, search, now) if stored is None else []
        if search.context is None or search.ranking.weights.context == 0:
            return _combined(embedder.embed_chunked(texts) if texts else [stored], search), None
        *embedded, of_context = embedder.embed_chunked([*texts, search.context])
        return _combined(embedded if texts else [stored], search), of_context

    def _stored_vectors(self, row: int, embedder: ValidatedEmbedder) -> NDArray[np.float32] | None:
        stored = run_sync(self._store.vectors(self.agent_id, row, embedder.model))
        return stored if len(stored) else None  # it may still lack them (C172)

    def _query_texts(self, scope: Scope, search: Search, now: int) -> list[str]:
        """Return what must be embedded to know a query's meaning."""
        text = search.text
        if text is None or search.ranking.similarity == 0:
            return []
        if search.ranking.leaves_names_out:
            text = self._sync.index.in_first_person(text, scope, now)
        return [text, *search.also]

    async def _add(
        self,
        entries: Sequence[NewEntry],
        on_duplicate: OnDuplicate,
        on_embed_error: OnEmbedError,
        *,
        is_import: bool = False,
    ) -> _AddResult:
        started = time.perf_counter()
        try:
            quota = self.quota
            if quota is not None and on_duplicate == "keep":
                await self._check_quota(entries, quota)
            begun = time.perf_counter()
            embedded = await self._with_embeddings(entries, on_embed_error)
            took = (time.perf_counter() - begun) * 1000
            stored = await self._store.add(
                self.agent_id,
                embedded,
                now=self.now(),
                quota=quota,
                on_duplicate=on_duplicate,
                is_import=is_import,
            )
        except MnemicError as error:
            self._telemetry.store_failed(error)
            raise
        await self._sync.apply(stored.batch)
        self._telemetry.record_store(started)
        fresh = [new.entry for new, is_new in zip(embedded, stored.is_new, strict=True) if is_new]
        bare = {(new.entry.user_id, new.entry.id) for new in entries if new.entry.embedding is None}
        await self._telemetry.stored(fresh, bare, took)
        if stored.changed:
            await self._publish_changed(stored.changed)
        if quota is not None:
            await self._warn_of_quota(quota)
        return _AddResult(embedded, stored, fresh)

    async def _publish_changed(self, rows: Sequence[int]) -> None:
        """Tell of memories that others were merged into, or that were superseded (C098)."""
        everyone = Scope(self.agent_id, all_users=True)
        changed = await self._store.get_rows(everyone, rows, now=self.now(), include_forgotten=True)
        for entry in changed.values():
            await self._telemetry.updated(entry, content_changed=False)

    def _is_model(self, model: str | None, dimensions: int) -> bool:
        embedder = self._embedder
        return embedder is None or (model, dimensions) == (embedder.model, embedder.dimensions)

    async def _with_embeddings(
        self, entries: Sequence[NewEntry], on_error: OnEmbedError
    ) -> Sequence[NewEntry]:
        embedder = self._embedder
        if embedder is None:
            return entries
        for new in entries:
            embedder.check_vector_of(new.entry)
        bare = [at for at, new in enumerate(entries) if new.entry.embedding is None]
        if not bare:
            return entries
        texts = [entries[at].entry.content for at in bare]
        try:
            vectors = await run_blocking(lambda: embedder.embed_chunked(texts))
        except EmbeddingError as error:
            if on_error == "raise":
                raise
            self._telemetry.embedding_deferred(len(texts), error)
            return entries
        embedded = list(entries)
        for at, (first, *more) in zip(bare, vectors, strict=True):
            new = entries[at]
            entry = new.entry.with_embedding(first, embedder.model)
            # Copied as the first one is: an embedder may use its array again.
            embedded[at] = NewEntry(entry, new.key, tuple(vector.copy() for vector in more))
        return embedded

    async def _stored_entries(self, added: _AddResult) -> list[MemoryEntry]:
        """Return each entry, or the one that was there already as it is now."""
        ids, rows, is_new, *_ = added.stored
        known = [row for row, was_new in zip(rows, is_new, strict=True) if not was_new]
        everyone = Scope(self.agent_id, all_users=True)
        found = await self._store.get_rows(everyone, known, now=self.now(), include_forgotten=True)
        return [
            new.entry
            if was_new
            else found.get(row) or msgspec.structs.replace(new.entry, id=entry_id)
            for new, entry_id, row, was_new in zip(added.given, ids, rows, is_new, strict=True)
        ]

    async def _check_quota(self, entries: Sequence[NewEntry], quota: Quota) -> None:
        """Look at the quota before embedding (R076); the write itself looks again, for certain.

        What may be there already, by its key, takes no room then, and is left to the write.
        """
        size = sum(len(new.entry.content.encode()) for new in entries if new.key is None)
        if size:
            used = await self._store.used_bytes(self.agent_id)
            if used + size > quota.limit:
                raise StorageQuotaExceededError(used, quota.limit, quota.tier)

    async def _warn_of_quota(self, quota: Quota) -> None:
        await self._telemetry.used(await self._store.used_bytes(self.agent_id), quota.limit)

    async def _reset_quota_warnings(self) -> None:
        """Let warnings of the quota come again after what took room was deleted."""
        quota = self.quota
        if quota is not None:
            self._telemetry.freed(await self._store.used_bytes(self.agent_id), quota.limit)

    @property
    def quota(self) -> Quota | None:
        """How many bytes of content the agent may store: the smaller of two limits."""
        licensed = None if self.license is None else self.license.quota
        if self._own_quota is None or licensed is None:
            return self._own_quota or licensed
        return min(self._own_quota, licensed, key=attrgetter("limit"))

    def require(self, *needs: Need) -> None:
        """Raise LicenseRestrictionError if a license policy does not allow what a call needs."""
        if self.license is not None:
            self.license.require(*needs)

    def _check_license(self) -> None:
        """Refuse every operation where long-term memory is not included."""
        self.require(STORING)


def _with_accesses(entries: dict[int, MemoryEntry], index: Index) -> dict[int, MemoryEntry]:
    """Let memories that nobody else has show the accesses that are not written down yet."""
    accesses = index.accesses(list(entries))
    for entry, access in zip(entries.values(), accesses, strict=True):
        if access is not None and access[1] > entry.access_count:
            last, count = access
            entry.record_accesses(None if last is None else from_microseconds(last), count)
    return entries


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _best_match_request(wanted: RankRequest) -> RankRequest:
    """Return what asks for the best match, whatever else counts."""
    ranking = msgspec.structs.replace(wanted.ranking, weights=Weights())
    return msgspec.structs.replace(
        wanted,
        ranking=ranking,
        context=None,
        limit=1,
        min_score=None,
        with_total=False,
        best_match=None,
    )


def _merged(parts: Sequence[FoundPage], wanted: RankRequest) -> FoundPage:
    """Return the best of several answers; an order's ties are decided by salience first."""
    entries = {row: entry for part in parts for row, entry in part.entries.items()}

    def place(hit: RankedRow) -> tuple[float, float, float, bytes, str]:
        salience = 0.0 if wanted.order is None else hit.components["salience"]
        entry = entries[hit.row]
        created_at, user = to_microseconds(entry.created_at), entry.user_id or ""
        return -hit.score, -salience, -created_at, hit.id, user

    # What was archived or came back meanwhile may be in two parts; it is one memory all the same.
    hits = {hit.row: hit for part in parts for hit in part.ranked}
    ranked = sorted(hits.values(), key=place)
    total = sum(part.total or 0 for part in parts) if wanted.with_total else None
    return FoundPage(ranked[: wanted.limit], entries, total)


def _combined(
    parts: Sequence[NDArray[np.float32] | None], search: Search
) -> NDArray[np.float32] | None:
    """Return the vectors of a query and of what means the same, (m, dim), or None without any."""
    given = [vectors for vectors in parts if vectors is not None]
    if len(given) < 2:  # noqa: PLR2004 - a query, and something beside it
        return given[0] if given else None
    if search.blend is None:
        return np.concatenate(given)
    query, others = given[0].mean(axis=0), np.concatenate(given[1:]).mean(axis=0)
    blended: NDArray[np.float32] = (1 - search.blend) * query + search.blend * others
    return blended[None]


def required_uuid(value: UUID | str) -> UUID:
    """Return an id that a caller gave as a UUID or as its text."""
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def required_uuids(field: str, values: Iterable[UUID | str]) -> list[UUID]:
    """Return a list of ids that a caller gave."""
    return [required_uuid(value) for value in items(field, values)]


def check_limit(limit: object) -> None:
    """Refuse a limit outside 1 to 1,000 (C102)."""
    validation.limit("limit", limit)


def _check_choice(field: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InvalidArgumentError(
            f"{field} must be one of {', '.join(known)}, got {quoted(given)}"
        )


def _own_type(kind: LinkType | str) -> LinkType:
    """Return the type of a link that callers may write and delete themselves."""
    parsed = LinkType.parse(kind)
    if parsed is LinkType.SUPERSEDES:
        raise InvalidArgumentError(
            "links of type SUPERSEDES come from the field of that name alone: store the new "
            "memory with supersedes= the old one's id"
        )
    return parsed


def _cursor(scope: Scope, entry: MemoryEntry) -> str:
    place = to_microseconds(entry.created_at).to_bytes(8, "big", signed=True) + entry.id.bytes
    if scope.all_users and entry.user_id is not None:  # who may have given the same id as others
        place += entry.user_id.encode()
    return base64.urlsafe_b64encode(place).decode()


def _place(cursor: object) -> PageCursor:
    with suppress(ValueError, OverflowError):
        if isinstance(cursor, str):
            place = base64.b64decode(cursor, altchars=b"-_", validate=True)
            created_at = from_microseconds(int.from_bytes(place[:8], "big", signed=True))
            user_id = validation.optional_name("user_id", place[24:].decode() or None)
            return PageCursor(created_at, UUID(bytes=place[8:24]), user_id)
    raise InvalidArgumentError(
        f"cursor must be one that an earlier page gave, or None; got {quoted(cursor)}"
    )


def _local_embedder() -> "Embedder":
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

    return MiniLmEmbedder()
