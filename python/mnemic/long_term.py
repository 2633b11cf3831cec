"""LongTermMemory: one agent's memories, stored for good and found by meaning (document 003)."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    InvalidEntryError,
    MnemicError,
    StorageQuotaExceededError,
    StoreError,
)
from mnemic.events import Events
from mnemic.index import NativeIndex
from mnemic.licensing import LONG_TERM, SEMANTIC_RETRIEVAL, License, LicenseTier
from mnemic.model import (
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemorySearchResult,
    MemorySortOrder,
    MemoryType,
    RowBatch,
    Scope,
    UuidFactory,
    parse_filter,
)
from mnemic.model.checks import name, optional_uuid
from mnemic.protocols import Clock, IdFactory, system_clock
from mnemic.store import SqliteStore
from mnemic.telemetry import Teller
from mnemic.waiting import computed, drive

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

RETENTION = timedelta(days=90)
"""How long a forgotten memory can be restored (R034, C097)."""

MAX_LIMIT = 1000  # C102

# Ranking so many components takes about 200 µs: from there on it goes to a thread (C176).
_LONG_SEARCH = 2_000_000

# Reading an entry takes about 30 µs; more of them at once go to a thread.
_FEW_IDS = 16


class Found(NamedTuple):
    """A memory that was ranked, and its cosine with the query in float64."""

    entry: MemoryEntry
    score: float


class LongTermMemory:
    """One agent's memories in one store.

    Example:
        >>> memory = await LongTermMemory.open("agent.db", agent_id="aide")  # doctest: +SKIP
        >>> entry_id = await memory.store(entry)  # doctest: +SKIP

    Methods are coroutines and may be called from any event loop and from several at once. What
    computes or waits for long runs in other threads. A cancelled write may have happened or not;
    repeating it with the same id is safe (C177).

    Between users there are walls: a call that names no user sees memories stored without one;
    `all_users=True` takes the walls down. Ids open nothing by themselves.

    Args:
        url: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memory it is. Agents in one store never see each other's memories.
        embedder: Anything with `model`, `dimensions` and `embed(texts)`; the local MiniLM unless
            given. With None, memories are stored and read, and searching by meaning is refused.
        license: What the caller's user may do; everything unless a tier is named. What the tier
            does not include is refused with `LicenseRestrictionError`, and what it does not leave
            room for with `StorageQuotaExceededError`.
        clock: Gives the time, aware and in UTC.
        id_factory: Makes an id for a time.
        log_content: Show queries in logs and events; otherwise only how long they are.

    Attributes:
        events: Tells listeners what happens to memories; see `mnemic.events`.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        embedder: "Embedder | Literal['minilm'] | None" = "minilm",
        license: License | LicenseTier | None = None,  # noqa: A002 - the field's name everywhere
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
        log_content: bool = False,
    ) -> None:
        self.license = License.of(license)
        self._agent = Scope(agent_id)
        self._everyone = Scope(agent_id, all_users=True)
        self.embedder = _local_embedder() if embedder == "minilm" else embedder
        if self.embedder is not None:
            _check_embedder(self.embedder)
        self.now = clock
        self.id_factory = id_factory or UuidFactory()
        self.events = Events()
        self._teller = Teller(agent_id, self.events, clock, tells_content=log_content)
        self._catching_up = threading.Lock()
        self._unembedded: set[int] = set()
        self._counting = threading.Lock()
        self._embedded = 0
        self._embedding_seconds = 0.0
        self._store = SqliteStore(url)
        self.path = self._store.path
        self._index = None if self.embedder is None else NativeIndex(self.embedder.dimensions)
        try:
            self._load()
        except BaseException:
            drive(self.close())
            raise
        self._teller.opened()

    @classmethod
    async def open(
        cls,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        embedder: "Embedder | Literal['minilm'] | None" = "minilm",
        license: License | LicenseTier | None = None,  # noqa: A002 - the field's name everywhere
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
        log_content: bool = False,
    ) -> Self:
        """Open a memory without holding up the event loop; for the arguments see the class."""
        return await computed(
            lambda: cls(
                url,
                agent_id=agent_id,
                embedder=embedder,
                license=license,
                clock=clock,
                id_factory=id_factory,
                log_content=log_content,
            )
        )

    @property
    def agent_id(self) -> str:
        """Whose memory this is (R011)."""
        return self._agent.agent_id

    async def store(self, entry: MemoryEntry) -> UUID:
        """Store a memory; when this returns it is on disk, and the next search can find it.

        An entry without an embedding gets one (R022). Its user, project and session are its scope.

        Raises:
            InvalidEntryError: If it is no entry of this agent.
            DuplicateEntryError: If the agent already has a memory with its id, forgotten or not.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: If it brings a vector of another model.
            StoreError: If the store cannot be written; nothing is stored then.
        """
        return (await self.add([self._checked(entry)]))[0].id

    async def store_batch(self, entries: Sequence[MemoryEntry]) -> list[UUID]:
        """Store memories, all or none; return their ids in the given order (C095).

        Raises:
            As `store`; an entry that cannot be stored is named by its place in the list.
        """
        checked = []
        for at, entry in enumerate(entries):
            try:
                checked.append(self._checked(entry))
            except InvalidEntryError as error:
                raise InvalidEntryError(f"memory {at} of the list: {error}") from error
        return [entry.id for entry in await self.add(checked)]

    async def add(self, entries: list[MemoryEntry]) -> list[MemoryEntry]:
        """Store checked entries of this agent, all or none; return them with their embeddings."""
        self._check_license()
        if not entries:
            return []
        try:
            await self._refuse_what_cannot_fit(entries)
            begun = time.perf_counter()
            embedded = await computed(lambda: self._with_embeddings(entries))
            took = (time.perf_counter() - begun) * 1000
            batch = await self._store.add(self.agent_id, embedded, self.license.quota)
        except MnemicError as error:
            self._teller.failed_to_store(error)
            raise
        if not self._take_in(batch):
            await self._follow()
        bare = {entry.id for entry in entries if entry.embedding is None}
        await self._teller.stored(embedded, bare, took)
        await self._warn_of_quota()
        return embedded

    async def retrieve(
        self,
        entry_id: UUID | str,
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> MemoryEntry | None:
        """Return a memory without its embedding, or None if there is none of this id (R028).

        Args:
            entry_id: Which one.
            user_id: Whose it is; None is those stored without a user.
            all_users: Whoever it belongs to.
            include_forgotten: Forgotten, archived and superseded ones too (C096).
        """
        found = await self.retrieve_batch(
            [entry_id],
            user_id=user_id,
            all_users=all_users,
            include_forgotten=include_forgotten,
        )
        return next(iter(found.values()), None)

    async def retrieve_batch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories of these ids that there are, as `retrieve` does (R029)."""
        scope = self.scope_of(user_id, all_users=all_users)
        ids = [required_uuid(entry_id) for entry_id in entry_ids]
        return await self.retrieve_in(scope, ids, include_forgotten=include_forgotten)

    async def retrieve_in(
        self, scope: Scope, ids: Sequence[UUID], *, include_forgotten: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories of these ids that a scope has."""
        self._check_license()

        async def read() -> dict[UUID, MemoryEntry]:
            return await self._store.get(scope, ids, include_forgotten=include_forgotten)

        # Begun where it runs: a call that is cancelled before leaves no coroutine behind.
        found = await (read() if len(ids) <= _FEW_IDS else computed(lambda: drive(read())))
        for entry in found.values():
            await self._teller.retrieved(entry)
        return found

    async def search_semantic(
        self,
        query: str,
        limit: int = 10,
        min_similarity: float = 0.6,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemorySearchResult]:
        """Find the memories whose meaning is nearest to a query (R030).

        Every memory of the scope is ranked, exactly. Order: similarity, then newest, then smallest
        id; a smaller limit always gives the head of what a larger one gives (C193).

        Args:
            query: What to look for, not empty.
            limit: How many at most, 1 to 1,000.
            min_similarity: The least cosine, 0 to 1, inclusive.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            InvalidArgumentError: If an argument is outside its range.
            EmbedderRequiredError: If the memory was opened with `embedder=None`.
            EmbeddingError: If the embedder fails.
        """
        _check_limit(limit)
        if not isinstance(min_similarity, int | float) or not 0 <= min_similarity <= 1:
            raise InvalidArgumentError(
                f"min_similarity must be from 0 to 1, got {min_similarity!r}"
            )
        found = await self.nearest(query, self.scope_of(user_id, all_users=all_users), limit)
        near = [hit for hit in found if max(0.0, hit.score) >= min_similarity]
        return [
            MemorySearchResult(hit.entry, min(1.0, max(0.0, hit.score)), rank)
            for rank, hit in enumerate(near, start=1)
        ]

    async def nearest(self, query: str, scope: Scope, limit: int) -> list[Found]:
        """Return the memories of a scope that are nearest to a query, best first."""
        begun = time.perf_counter()
        found = await self._nearest(query, scope, limit)
        await self._teller.searched(query, len(found), (time.perf_counter() - begun) * 1000)
        return found

    async def _nearest(self, query: str, scope: Scope, limit: int) -> list[Found]:
        self._check_license()
        self.license.require(SEMANTIC_RETRIEVAL, "Semantic search requires Teams tier or higher")
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError(f"query must be a text that is not empty, got {query!r}")
        embedder, index = self.embedder, self._index
        if embedder is None or index is None:
            raise EmbedderRequiredError(
                "this memory was opened with embedder=None, and searching by meaning needs one; "
                "open it with an embedder, or read by id"
            )
        if limit == 0:
            return []
        vector = (await computed(lambda: self._embed([query])))[0]
        if self._unembedded or not self._is_current(index):
            await computed(self._catch_up)
        if len(index) * embedder.dimensions < _LONG_SEARCH:
            return self._ranked(index, vector, scope, limit)
        return await computed(lambda: self._ranked(index, vector, scope, limit))

    async def search_by_filter(
        self,
        filter: MemoryFilter | Mapping[str, Any],  # noqa: A002 - the document's name
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemoryEntry]:
        """Return the memories that match a filter (R031); nothing of meaning is asked.

        Archived and superseded ones are left out unless the filter asks for a status. Reading a
        memory this way does not count as an access (C090).

        Args:
            filter: Fields, or a dict in the grammar of docs/filters.md, which gives the newest 100.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Returns:
            In the order the filter names; ties go to the newest, then to the smallest id.

        Raises:
            FilterError: If the filter cannot be understood; the message names the place.
        """
        self._check_license()
        page = filter if isinstance(filter, MemoryFilter) else MemoryFilter(where=filter)
        expression = parse_filter(page)
        scope = self.scope_of(user_id, all_users=all_users)
        # Filters may look at every memory of the agent.
        return await computed(lambda: drive(self._store.matching(scope, expression, page)))

    async def get_by_type(
        self,
        type: MemoryType | str,  # noqa: A002 - the field's name everywhere
        limit: int = 100,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemoryEntry]:
        """Return the newest memories of a type (R038)."""
        wanted = MemoryFilter(types=(MemoryType.parse(type),), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_by_tag(
        self, tag: str, limit: int = 100, *, user_id: str | None = None, all_users: bool = False
    ) -> list[MemoryEntry]:
        """Return the newest memories that carry a tag (R039)."""
        wanted = MemoryFilter(tags=(tag,), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_recent(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> list[MemoryEntry]:
        """Return the memories accessed last; after them those never accessed, newest first (R040).

        Nothing counts accesses yet, so this is the newest first, but for entries stored with a
        `last_accessed_at` of their own.
        """
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_important(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> list[MemoryEntry]:
        """Return the most important memories (R041)."""
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.IMPORTANCE_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def update(
        self,
        entry_id: UUID | str,
        update: MemoryEntryUpdate,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> bool:
        """Change a memory; return False if there is none of this id (R032).

        A new content is embedded. If anything fails the memory stays as it was (C098).

        Raises:
            EmbeddingError: If the embedder fails.
            StoreError: If the store cannot be written.
        """
        scope = self.scope_of(user_id, all_users=all_users)
        return await self.changed(required_uuid(entry_id), update, scope) is not None

    async def changed(
        self, entry_id: UUID, update: MemoryEntryUpdate, scope: Scope
    ) -> MemoryEntry | None:
        """Change a memory of a scope; return it as it is then, or None if there is none."""
        self._check_license()
        if not isinstance(update, MemoryEntryUpdate):
            raise InvalidArgumentError(f"update must be a MemoryEntryUpdate, got {update!r}")
        if update.is_empty:
            return (await self._store.get(scope, [entry_id])).get(entry_id)
        content, embedder, embedded = update.content, self.embedder, None
        if content is not None and embedder is not None:
            vectors = await computed(lambda: self._embed([content]))
            embedded = embedder.model, vectors[0]
        now = self.now()
        entry = await self._store.update(
            scope,
            entry_id,
            lambda stored: update.applied_to(stored, now),
            embedded,
            self.license.quota,
        )
        await self._follow()
        if entry is not None:
            await self._teller.updated(entry, content_changed=update.content is not None)
            await self._warn_of_quota()
        return entry

    async def forget(
        self,
        entry_id: UUID | str,
        permanent: bool = False,  # noqa: FBT001, FBT002 - the document's signature (R033)
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> bool:
        """Forget a memory: from now on it is not found; return False if there is none (R033).

        Forgetting a forgotten memory again changes nothing and returns True (C097). For 90 days it
        can be restored; then `purge_expired` deletes it.

        Args:
            entry_id: Which one.
            permanent: Delete it at once, with its vectors and links, also if it is forgotten
                already; it cannot be restored.
            user_id: Whose it is; None is those stored without a user.
            all_users: Whoever it belongs to.
        """
        scope = self.scope_of(user_id, all_users=all_users)
        return await self.forget_in(scope, required_uuid(entry_id), permanent=permanent)

    async def forget_in(self, scope: Scope, entry_id: UUID, *, permanent: bool = False) -> bool:
        """Forget a memory of a scope, or delete it for good; return False if there is none."""
        self._check_license()
        if permanent:
            was_there = await self._store.delete(scope, entry_id)
        else:
            was_there = await self._store.forget(scope, entry_id, self.now())
        await self._follow()
        if was_there:
            await self._teller.forgotten(entry_id, permanent=permanent)
        return was_there

    async def restore(
        self, entry_id: UUID | str, *, user_id: str | None = None, all_users: bool = False
    ) -> bool:
        """Take a memory back that was forgotten within the last 90 days (R036).

        Returns:
            False if there is none of this id, if it is not forgotten, or if that was too long ago.
        """
        scope = self.scope_of(user_id, all_users=all_users)
        return await self.restore_in(scope, required_uuid(entry_id))

    async def restore_in(self, scope: Scope, entry_id: UUID) -> bool:
        """Take a memory of a scope back; return False if there is none to take back."""
        self._check_license()
        restored = await self._store.restore(scope, entry_id, self.now() - RETENTION)
        await self._follow()
        return restored

    async def delete_all(self, *, user_id: str | None, permanent: bool = False) -> int:
        """Forget all memories of a user, archived and superseded ones included (C187).

        Args:
            user_id: Whose; None is those stored without a user.
            permanent: Delete them for good, and those forgotten before too.

        Returns:
            How many memories that were.
        """
        return await self.delete_all_in(
            self.scope_of(user_id, all_users=False), permanent=permanent
        )

    async def delete_all_in(self, scope: Scope, *, permanent: bool) -> int:
        """Forget all memories of a scope, or delete them for good; return how many."""
        self._check_license()
        if permanent:
            count = await self._store.delete_all(scope)
        else:
            count = await self._store.forget_all(scope, self.now())
        await self._follow()
        self._teller.emptied(scope, count, permanent=permanent)
        return count

    async def purge_expired(self) -> int:
        """Delete for good what was forgotten more than 90 days ago, of all users.

        Returns:
            How many memories that were.
        """
        self._check_license()
        return await self._store.purge(self.agent_id, self.now() - RETENTION)

    async def count(self) -> int:
        """Return how many memories of the agent, of all users, can be found (R020)."""
        return await self.count_in(self._everyone)

    async def count_in(self, scope: Scope) -> int:
        """Return how many memories a scope has."""
        self._check_license()
        return await self._store.count(scope)

    async def get_stats(self) -> LongTermMemoryStats:
        """Return what the agent's memory holds, all users together (R037)."""
        self._check_license()
        stored = await computed(lambda: drive(self._store.stats(self.agent_id)))
        milliseconds = self._embedding_seconds * 1000
        return msgspec.structs.replace(
            stored,
            storage_bytes_limit=self.license.storage_limit,
            average_embedding_time_ms=milliseconds / self._embedded if self._embedded else 0.0,
            total_embeddings_generated=self._embedded,
        )

    async def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        await self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"LongTermMemory({self.path!r}, {self._agent})"

    def scope_of(self, user_id: str | None, *, all_users: bool) -> Scope:
        """Return the scope of one of the agent's users, of nobody, or of all."""
        return Scope(self.agent_id, user_id, all_users=all_users)

    async def _refuse_what_cannot_fit(self, entries: list[MemoryEntry]) -> None:
        """Look at the quota before embedding (R076); the write itself looks again, for certain."""
        quota = self.license.quota
        if quota is not None:
            used = await self._store.used_bytes(self.agent_id)
            size = sum(len(entry.content.encode()) for entry in entries)
            if used + size > quota.limit:
                raise StorageQuotaExceededError(used, quota.limit, quota.tier)

    async def _warn_of_quota(self) -> None:
        limit = self.license.storage_limit
        if limit is not None:
            await self._teller.used(await self._store.used_bytes(self.agent_id), limit)

    def _check_license(self) -> None:
        """Refuse every operation where long-term memory is not included (R013, R014)."""
        self.license.require(LONG_TERM, "Upgrade to WriterPro for persistent memory")

    def _checked(self, entry: object) -> MemoryEntry:
        if not isinstance(entry, MemoryEntry):
            raise InvalidEntryError(f"entry must be a MemoryEntry, got {type(entry).__name__}")
        return checked_record(entry, self._agent)

    def _ranked(
        self, index: NativeIndex, vector: NDArray[np.float32], scope: Scope, limit: int
    ) -> list[Found]:
        wanted = limit
        while True:
            ranked = index.search(vector, scope, wanted)
            entries = drive(self._store.get_rows(scope, [row for row, _ in ranked]))
            if len(entries) >= limit or len(ranked) < wanted:
                found = [Found(entries[row], score) for row, score in ranked if row in entries]
                return found[:limit]
            # Some were deleted between the ranking and the reading: look further down.
            wanted = 2 * wanted + 8

    def _load(self) -> None:
        if self.embedder is None:
            return
        known = drive(self._store.embedding_model(self.agent_id))
        mine = (self.embedder.model, self.embedder.dimensions)
        if known is not None and known != mine:
            raise EmbeddingModelMismatchError(
                f"{self.path}: agent {self.agent_id!r} has vectors of {known[0]!r} with "
                f"{known[1]} dimensions, and the embedder is {mine[0]!r} with {mine[1]}; open the "
                "file with the embedder it was made with, or store the memories in a new file"
            )
        self._catch_up()

    async def _follow(self) -> None:
        """Take in what was just written; if that fails, the next search does it or says why."""
        if self._index is not None:
            with suppress(StoreError):
                await computed(self._apply_changes)

    def _take_in(self, batch: RowBatch) -> bool:
        """Apply a batch if it follows where the index stands."""
        if self._index is None or not self._index.apply(batch):
            return False
        self._unembedded.difference_update(batch.gone, [facts.row for facts in batch.facts])
        self._unembedded.update(batch.unembedded)
        return True

    def _catch_up(self) -> None:
        """Bring the index to the store's last change, and embed what lacks a vector."""
        self._apply_changes()
        if self._unembedded:
            with self._catching_up:
                self._embed_missing()
            self._apply_changes()

    def _apply_changes(self) -> None:
        index, embedder = self._index, self.embedder
        if index is None or embedder is None or self._is_current(index):
            return
        with self._catching_up:
            while not self._is_current(index):
                since = self._store.rows_since(
                    self.agent_id, embedder.model, embedder.dimensions, index.seq
                )
                # Once is enough: what others write from now on is not waited for.
                if self._take_in(drive(since)):
                    return

    def _is_current(self, index: NativeIndex) -> bool:
        return drive(self._store.seq(self.agent_id)) == index.seq

    def _embed_missing(self) -> None:
        """Embed memories that were stored while no embedder was at hand."""
        if not self._unembedded or self.embedder is None:
            return
        contents = drive(self._store.contents(self.agent_id, sorted(self._unembedded)))
        if contents:
            vectors = self._embed(list(contents.values()))
            drive(
                self._store.add_embeddings(
                    self.agent_id, self.embedder.model, list(contents), vectors
                )
            )
        self._unembedded.clear()

    def _with_embeddings(self, entries: list[MemoryEntry]) -> list[MemoryEntry]:
        if self.embedder is None:
            return entries
        for entry in entries:
            _check_embedding(entry, self.embedder)
        bare = [at for at, entry in enumerate(entries) if entry.embedding is None]
        vectors = self._embed([entries[at].content for at in bare])
        embedded = list(entries)
        for at, vector in zip(bare, vectors, strict=True):
            embedded[at] = entries[at].with_embedding(vector, self.embedder.model)
        return embedded

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        if self.embedder is None or not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            begun = time.perf_counter()
            with np.errstate(over="ignore"):  # what overflows float32 is refused below
                vectors = np.asarray(self.embedder.embed(texts), dtype=np.float32)
        except MnemicError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embedder {self.embedder.model!r} failed: {error}") from error
        with self._counting:  # several threads embed at once
            self._embedded += len(texts)
            self._embedding_seconds += time.perf_counter() - begun
        expected = (len(texts), self.embedder.dimensions)
        if vectors.shape != expected:
            raise EmbeddingError(
                f"the embedder {self.embedder.model!r} returned shape {vectors.shape} for "
                f"{len(texts)} texts; it should be {expected}"
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"the embedder {self.embedder.model!r} returned NaN or infinity")
        return vectors


def required_uuid(value: UUID | str) -> UUID:
    """Return an id that a caller gave as a UUID or as its text."""
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def _check_limit(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidArgumentError(f"limit must be an int from 1 to {MAX_LIMIT}, got {limit!r}")


def checked_record(entry: MemoryEntry, scope: Scope) -> MemoryEntry:
    """Return a record that may be stored from within a scope."""
    if entry.agent_id != scope.agent_id:
        raise InvalidEntryError(f"its agent is {entry.agent_id!r}, not {scope.agent_id!r}")
    named = scope.narrowed(entry.user_id, entry.project_id, entry.session_id)
    if named != Scope(entry.agent_id, entry.user_id, entry.project_id, entry.session_id):
        raise InvalidEntryError(f"a record is stored in its own scope, which is not {named}")
    for field in ("expires_at", "supersedes"):
        if getattr(entry, field) is not None:
            raise InvalidEntryError(f"{field} is not supported yet, and would not be honoured")
    if entry.is_encrypted:
        raise InvalidEntryError("encrypted records are not supported yet")
    return entry


def _local_embedder() -> "Embedder":
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

    return MiniLmEmbedder()


def _check_embedder(embedder: object) -> None:
    """Refuse what cannot be an embedder before a file is made for it."""
    model, dimensions = getattr(embedder, "model", None), getattr(embedder, "dimensions", None)
    if (
        not isinstance(dimensions, int)
        or dimensions < 1
        or not callable(getattr(embedder, "embed", None))
    ):
        raise InvalidArgumentError(
            "embedder must have a model (a name), dimensions (an int of at least 1) and "
            f"embed(texts), or be 'minilm' or None; got {embedder!r}"
        )
    name("the embedder's model", model)


def _check_embedding(entry: MemoryEntry, embedder: "Embedder") -> None:
    """Refuse a vector that comes along and is not one of this embedder's."""
    if entry.embedding is None:
        return
    given, mine = (
        (entry.embedding_model, entry.embedding.size),
        (embedder.model, embedder.dimensions),
    )
    if given != mine:
        raise EmbeddingModelMismatchError(
            f"memory {entry.id} comes with a vector of {given[0]!r} with {given[1]} dimensions, "
            f"and the embedder is {mine[0]!r} with {mine[1]}; leave its embedding out"
        )
