"""Stores new memories: embed them, write them, index them, publish them."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError, MnemicError
from mnemic.model import MemoryEntry, NewEntry, OnDuplicate, OnEmbedError, Scope
from mnemic.observability.telemetry import Telemetry, milliseconds_since
from mnemic.protocols import Clock
from mnemic.repository.index_set import IndexSet
from mnemic.repository.limits import Limits
from mnemic.store import Store
from mnemic.store.values import Stored
from mnemic.sync_bridge import arrived, run_blocking


class Added(NamedTuple):
    """The outcome of an addition.

    Attributes:
        given: The entries, with their embeddings.
        stored: What the store did with each.
        fresh: Those that were not stored already.
    """

    given: Sequence[NewEntry]
    stored: Stored
    fresh: list[MemoryEntry]


class Adder:
    """Adds memories of one agent.

    Args:
        store: Where they are written to.
        agent_id: Whose memories.
        embedder: Gives them vectors; None gives none.
        indexes: Take them in.
        limits: Check their size.
        clock: Gives the time.
        telemetry: Publishes them.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder | None,
        *,
        indexes: IndexSet,
        limits: Limits,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self._everyone = Scope(agent_id, all_users=True)
        self._embedder = embedder
        self._indexes = indexes
        self._limits = limits
        self._now = clock
        self._telemetry = telemetry

    async def add(
        self,
        entries: Sequence[NewEntry],
        on_duplicate: OnDuplicate,
        on_embed_error: OnEmbedError,
        *,
        is_import: bool = False,
    ) -> Added:
        """Store checked entries, all or none.

        Args:
            entries: Of one agent.
            on_duplicate: What becomes of an entry whose text is stored already.
            on_embed_error: Whether entries are stored without vectors where the embedder fails.
            is_import: Whether ids that are stored already are passed over.
        """
        started = time.perf_counter()
        try:
            if on_duplicate == "keep":
                await self._limits.check_room(entries)
            begun = time.perf_counter()
            embedded = await self._with_embeddings(entries, on_embed_error)
            milliseconds = milliseconds_since(begun)
            stored = await arrived(
                self._store.add(
                    self._agent_id,
                    embedded,
                    now=self._now(),
                    quota=self._limits.quota,
                    on_duplicate=on_duplicate,
                    is_import=is_import,
                )
            )
        except MnemicError as error:
            self._telemetry.store_failed(error)
            raise
        await self._indexes.active.apply(stored.batch)
        self._telemetry.record_store(started)
        fresh = [new.entry for new, is_new in zip(embedded, stored.is_new, strict=True) if is_new]
        bare = {(new.entry.user_id, new.entry.id) for new in entries if new.entry.embedding is None}
        await self._telemetry.stored(fresh, bare, milliseconds)
        if stored.changed:
            await self._publish_changed(stored.changed)
        await self._limits.warn()
        return Added(embedded, stored, fresh)

    async def entries_of(self, added: Added) -> list[MemoryEntry]:
        """Return each entry as it is stored now: as given, or as it was stored before."""
        if len(added.fresh) == len(added.given):
            return added.fresh
        ids, rows, is_new, *_ = added.stored
        known = [row for row, was_new in zip(rows, is_new, strict=True) if not was_new]
        found = self._present(known)
        return [
            new.entry
            if was_new
            else found.get(row) or msgspec.structs.replace(new.entry, id=entry_id)
            for new, entry_id, row, was_new in zip(added.given, ids, rows, is_new, strict=True)
        ]

    def is_model(self, model: str | None, dimensions: int) -> bool:
        """Return whether vectors of a model fit the embedder; without an embedder all do."""
        embedder = self._embedder
        return embedder is None or (model, dimensions) == (embedder.model, embedder.dimensions)

    async def _publish_changed(self, rows: Sequence[int]) -> None:
        """Publish memories that others were merged into, or that were superseded."""
        for entry in self._present(rows).values():
            await self._telemetry.updated(entry, content_changed=False)

    def _present(self, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        return self._store.get_rows(self._everyone, rows, now=self._now(), include_deleted=True)

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
            vectors = await run_blocking(lambda: embedder.embed_chunked(texts), self._store)
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
