"""Changes memories: many at once, with a new content embedded once, and the importance of one."""

from uuid import UUID

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.model import MemoryEntry, MemoryEntryUpdate, Scope
from mnemic.model.filter import references
from mnemic.observability.telemetry import Telemetry
from mnemic.protocols import Clock
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.index_set import IndexSet
from mnemic.repository.limits import Limits
from mnemic.store import Store
from mnemic.store.values import Criteria
from mnemic.sync_bridge import arrived, run_blocking


class Updater:
    """Changes memories of one agent.

    Args:
        store: Where the memories are.
        embedder: Embeds a new content; None embeds none.
        indexes: Follow the store.
        limits: Check the license and the quota.
        clock: Gives the time.
        telemetry: Reports changes.
        accesses: Are written before a filter tests them.
    """

    def __init__(
        self,
        store: Store,
        embedder: ValidatedEmbedder | None,
        *,
        indexes: IndexSet,
        limits: Limits,
        clock: Clock,
        telemetry: Telemetry,
        accesses: AccessCounter,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexes = indexes
        self._limits = limits
        self._now = clock
        self._telemetry = telemetry
        self._accesses = accesses

    async def update_all(self, scope: Scope, criteria: Criteria, update: MemoryEntryUpdate) -> int:
        """Change the selected memories of a scope, all or none; return their number."""
        self._limits.require_storing()
        if update.is_empty:
            return 0
        await self._accesses.write_for(criteria)
        content, embedder, embedded = update.content, self._embedder, None
        if content is not None and embedder is not None:
            (chunks,) = await run_blocking(lambda: embedder.embed_chunked([content]), self._store)
            embedded = embedder.model, chunks
        now = self._now()
        tests_status = criteria.expression is not None and references(criteria.expression, "status")
        written = self._store.update_all(
            scope,
            criteria,
            lambda stored: update.applied_to(stored, now),
            embedded,
            now=now,
            quota=self._limits.quota,
            user_quota=self._limits.user_quota,
            include_archived=update.status is not None or tests_status,
        )
        updated = await arrived(written)
        await self._indexes.active.refresh()
        await self._telemetry.updated_all(updated, content_changed=content is not None)
        await self._limits.warn()
        return len(updated)

    async def raise_importance(self, scope: Scope, entry_id: UUID, by: float) -> MemoryEntry | None:
        """Add to a memory's importance, up to 1; return its new state."""
        self._limits.require_storing()
        now = self._now()

        def raised(stored: MemoryEntry) -> MemoryEntry:
            update = MemoryEntryUpdate(importance=min(1.0, stored.importance + by))
            return update.applied_to(stored, now)

        entry = await arrived(self._store.update(scope, entry_id, raised, now=now))
        await self._indexes.active.refresh()
        if entry is not None:
            await self._telemetry.updated(entry, content_changed=False)
        return entry
