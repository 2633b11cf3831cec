"""Changes memories, one or many, and links between them."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from typing import get_args
from uuid import UUID

import msgspec

from mnemic.arrays import Float32Array
from mnemic.errors import (
    EmbeddingError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    VersionConflictError,
)
from mnemic.model import (
    LinkType,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryLink,
    OnEmbedError,
    Scope,
    UpdateResult,
    validation,
)
from mnemic.model.filter import Criteria, references
from mnemic.model.link import Direction
from mnemic.model.new_entry import NO_VECTORS, ON_EMBED_ERROR, OwnVectors
from mnemic.model.results import written
from mnemic.model.update import checked_expiry
from mnemic.model.validation import items, word
from mnemic.observability.spans import RECORD_COUNT, embedding, records, traced
from mnemic.observability.table import NOT_EMBEDDED
from mnemic.repository.adding import NewVectors
from mnemic.repository.parts import Erasure, Part, Shared
from mnemic.store import Store
from mnemic.store.operations import AddLinks, EntriesById, Link, Links, SetExpiry, Unlink, Update
from mnemic.store.values import StoredLink, UpdatedEntries
from mnemic.threads.sync_bridge import arrived, run_blocking


class Updater(Part):
    """Changes memories of one agent.

    Args:
        shared: What it shares with the others.
        vectors: Gives them vectors of the program's own.
    """

    def __init__(self, shared: Shared, vectors: NewVectors) -> None:
        super().__init__(shared)
        self._vectors = vectors
        self._can_write = not shared.settings.read_only

    @traced("update_memory", lambda updated, given: records(given[1:2] if updated else ()))
    async def update(
        self,
        scope: Scope,
        entry_id: UUID,
        update: MemoryEntryUpdate,
        *,
        if_version: int | None = None,
        own: OwnVectors = NO_VECTORS,
        on_embed_error: OnEmbedError = "raise",
    ) -> MemoryEntry | None:
        """Change a memory of a scope; return its new state, or None if there is none.

        Args:
            scope: The scope.
            entry_id: Id of the memory.
            update: The change.
            if_version: Only if the memory has this version; None is any.
            own: Vectors of the program's own, or texts to embed in place of the content.
            on_embed_error: Whether a new content is stored without vectors where the embedder
                fails.

        Raises:
            VersionConflictError: If a version is given, and the memory has another one.
        """
        self._limits.require_storing()
        validation.of_kind("update", MemoryEntryUpdate, "a MemoryEntryUpdate", update)
        if if_version is not None:
            validation.whole("if_version", if_version, minimum=1)
        validation.word("on_embed_error", on_embed_error, ON_EMBED_ERROR)
        now = self._now()
        if update.is_empty and not own.are_given:
            found = self._store.read(EntriesById(scope, [entry_id], now))
            return _of_version(found[entry_id].entry, if_version) if found else None
        wanted = Update(
            scope,
            Criteria([entry_id]),
            change=lambda stored: update.applied_to(
                _of_version(stored, if_version), now, has_vectors=own.embedding is not None
            ),
            now=now,
            replace_vectors=own.are_given,
            include_archived=update.status is not None,
        )
        updated = await self._updated(
            wanted,
            (lambda: self._vectors.of_own(scope.agent_id, entry_id, own, self._now()))
            if own.are_given
            else (lambda: self._embedded(scope, update.content, on_embed_error)),
            content_changed=update.content is not None,
        )
        return None if updated.last is None else written(updated.last, updated.evicted)

    async def raise_importance(self, scope: Scope, entry_id: UUID, by: float) -> MemoryEntry | None:
        """Add to a memory's importance, up to 1; return its new state."""
        self._limits.require_storing()
        now = self._now()

        def raised(stored: MemoryEntry) -> MemoryEntry:
            update = MemoryEntryUpdate(importance=min(1.0, stored.importance + by))
            return update.applied_to(stored, now)

        wanted = Update(scope, Criteria([entry_id]), change=raised, now=now)
        updated = await arrived(self._store.write(wanted))
        await self._follow(updated, content_changed=False)
        return updated.last

    async def touch(
        self, scope: Scope, ids: Sequence[UUID], expires_at: object | None = None
    ) -> None:
        """Count an access of the memories with these ids in a scope, and renew their expiry."""
        self._limits.require_storing()
        now = self._now()
        if expires_at is not None:
            expiry = checked_expiry(expires_at)
            until = expiry if isinstance(expiry, datetime) else None
            wanted = SetExpiry(scope, Criteria(ids), until, self._now())
            if await arrived(self._store.write(wanted)):
                await self._active.refresh()
        if not self._can_write:
            return
        found = await run_blocking(lambda: self._cache.get(scope, ids, now), self._store)
        self._accesses.count([row for row, _ in found.values()], now)

    async def _updated(
        self,
        wanted: Update,
        embed: Callable[[], Awaitable[tuple[str, Float32Array] | None]],
        *,
        content_changed: bool,
    ) -> UpdatedEntries:
        """Embed and write; seal what is to be sealed, and let index and listeners follow.

        Args:
            wanted: The change, as it was asked for.
            embed: Returns model and vectors of a new content; called again if the model changes.
            content_changed: Whether a content was given.
        """
        sealing = _Sealing(self._store)

        def change(stored: MemoryEntry) -> MemoryEntry:
            return sealing.marked(stored, wanted.change(stored))

        while True:
            model = self._models.now
            try:
                embedded = await embed()
                complete = msgspec.structs.replace(
                    wanted, change=change, embedded=embedded, quotas=self._limits.quotas
                )
                updated = await sealing.arrived(self._store.write(complete))
                break
            except EmbeddingModelMismatchError:
                if not await run_blocking(partial(self._models.has_changed_from, model)):
                    raise
        await self._follow(updated, content_changed=content_changed)
        await sealing.finish()
        if content_changed and self._models.now.embedder is not None:
            self._active.note_stored(is_pending=embedded is None)
        return updated

    async def _follow(self, updated: UpdatedEntries, *, content_changed: bool) -> None:
        """Let the index and listeners follow a change."""
        await self._active.refresh()
        await self._telemetry.updated(updated, content_changed=content_changed)
        await self._limits.report_evicted(updated.evicted)
        if updated and content_changed:
            await self._limits.warn()

    async def _embedded(
        self, scope: Scope, content: str | None, on_error: OnEmbedError
    ) -> tuple[str, Float32Array] | None:
        """Return the model and the vectors of a new content; None for no vectors."""
        embedder = self._models.now.embedder
        if content == "":
            none = OwnVectors(embed=())
            return await self._vectors.of_own(scope.agent_id, _ANY_ID, none, self._now())
        if content is None or embedder is None:
            return None
        try:
            with embedding(embedder):
                (chunks,) = await embedder.embed_awaited([content], self._store)
        except EmbeddingError as error:
            if on_error == "raise":
                raise
            self._telemetry.record(NOT_EMBEDDED, count=1, error=str(error))
            return None
        return embedder.model, chunks

    @traced("update_memory", lambda updated, _: {RECORD_COUNT: int(updated)})
    async def update_all(
        self,
        scope: Scope,
        criteria: Criteria,
        update: MemoryEntryUpdate,
        *,
        on_embed_error: OnEmbedError = "raise",
    ) -> UpdateResult:
        """Change the selected memories of a scope, all or none; return their number."""
        self._limits.require_storing()
        validation.word("on_embed_error", on_embed_error, ON_EMBED_ERROR)
        if update.is_empty:
            return UpdateResult(0)
        await self._accesses.write_for(criteria)
        now = self._now()
        tests_status = criteria.expression is not None and references(criteria.expression, "status")
        wanted = Update(
            scope,
            criteria,
            change=lambda stored: update.applied_to(stored, now),
            now=now,
            include_archived=update.status is not None or tests_status,
        )
        updated = await self._updated(
            wanted,
            lambda: self._embedded(scope, update.content, on_embed_error),
            content_changed=update.content is not None,
        )
        return UpdateResult(len(updated), evicted=updated.evicted)


class _Sealing:
    """Marks the changed entries of one write that are to be sealed.

    Args:
        store: Seals them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_sealed = False
        self._erasure: Erasure[UpdatedEntries] | None = None

    async def arrived(self, written: Future[UpdatedEntries]) -> UpdatedEntries:
        """Wait for the result of the write."""
        self._erasure = Erasure(self._store, written, lambda _: self._has_sealed)
        return await arrived(written)

    async def finish(self) -> None:
        """Wait for the erasure of what the last write has sealed."""
        if self._erasure is not None:
            await self._erasure.finish()

    def marked(self, before: MemoryEntry, after: MemoryEntry) -> MemoryEntry:
        """Return the entry after a change, marked if what it says now is to be sealed."""
        said = [(entry.content, entry.tags, entry.metadata) for entry in (before, after)]
        if said[0] == said[1]:
            return after
        marked = self._store.marked(after)
        self._has_sealed |= marked.is_encrypted and not before.is_encrypted
        return marked


_ANY_ID = UUID(int=0)


def _of_version(stored: MemoryEntry, wanted: int | None) -> MemoryEntry:
    """Return a stored memory if it has the wanted version; None is any."""
    if wanted is not None and stored.version != wanted:
        raise VersionConflictError(stored.id, stored.version, wanted)
    return stored


_DIRECTIONS: tuple[str, ...] = get_args(Direction)


class Linker(Part):
    """Links memories of one agent."""

    async def link(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str, strength: float
    ) -> MemoryLink:
        """Write a link between two memories of a scope; return its new state."""
        self._limits.require_storing()
        link = MemoryLink(from_id, to_id, _own_type(kind), strength, self._now())
        return await self._write(Link(scope, link, link.created_at))

    async def link_all(self, scope: Scope, links: Sequence[MemoryLink]) -> int:
        """Write the links between memories of a scope that are missing; return their number.

        Links to memories that are not in the scope are skipped.
        """
        self._limits.require_storing()
        if not links:
            return 0
        new = [StoredLink(link, scope.user_id) for link in links]
        return await self._write(AddLinks(scope, new))

    async def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str | None
    ) -> int:
        """Delete links from one memory of a scope to another; return their number."""
        self._limits.require_storing()
        own_type = None if kind is None else _own_type(kind)
        return await self._write(Unlink(scope, from_id, to_id, own_type))

    async def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType | str] | None,
    ) -> list[MemoryLink]:
        """Return the links of a memory of a scope, oldest first."""
        self._limits.require_storing()
        word("direction", direction, _DIRECTIONS)
        types = None if kinds is None else {LinkType.parse(kind) for kind in items("types", kinds)}
        wanted = Links(scope, self._now(), entry_id, direction, types)
        found = await run_blocking(lambda: self._store.read(wanted), self._store)
        return [linked.link for linked in found]


def _own_type(kind: LinkType | str) -> LinkType:
    """Return a link type that callers may write and delete."""
    parsed = LinkType.parse(kind)
    if parsed is LinkType.SUPERSEDES:
        raise InvalidArgumentError(
            "links of type SUPERSEDES come from the field of that name alone: store the new "
            "memory with supersedes= the old one's id"
        )
    return parsed
